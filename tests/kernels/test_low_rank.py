"""Matrices of low rank against dense ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf_cli.kernels import symmetric
from dpmf_cli.kernels.symmetric import eigen_of_low_rank, leading_eigenpairs, rank_k
from tests.kernels.test_covariance import unpacked
from tests.kernels.test_symmetric import matrix


def clean(
    triangle: NDArray[np.float32], n: int, scaling: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A ← D⁻¹·(D·A·D)_k·D⁻¹ in place, D = diag(scaling); (values, F) with A = F·diag(values)·Fᵀ."""
    values, vectors = leading_eigenpairs(triangle, n, k, scaling=scaling)
    rank_k(triangle, n, values, vectors, scaling)
    return values, vectors / scaling[:, None]


@settings(deadline=None, max_examples=60)
@given(n=st.integers(1, 90), k=st.integers(1, 7), scaled=st.booleans(), seed=st.integers(0, 10**6))
def test_the_triangle_holds_the_sum_of_outer_products(n: int, k: int, scaled: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, vectors = rng.normal(size=k), rng.normal(size=(n, k))
    scaling = rng.uniform(0.5, 3, n) if scaled else None
    triangle, _ = matrix(seed, n)
    rank_k(triangle, n, values, vectors, scaling)
    expected = (vectors * values) @ vectors.T
    if scaling is not None:
        expected /= np.outer(scaling, scaling)
    assert unpacked(triangle, n) == pytest.approx(expected, rel=0, abs=2e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 37, 64])
def test_of_full_rank_cleaning_changes_nothing(n: int) -> None:
    triangle, dense = matrix(n, n)
    scaling = np.random.default_rng(n).uniform(0.5, 3, n)
    values, factors = clean(triangle, n, scaling, n)
    assert unpacked(triangle, n) == pytest.approx(dense, abs=2e-5)
    assert (factors * values) @ factors.T == pytest.approx(dense, abs=1e-5)


@pytest.mark.parametrize("small", [0, 400])
def test_cleaning_keeps_the_best_approximation_of_the_scaled_matrix(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eckart and Young: singular values of D·A·D, whatever their sign. By Lanczos and densely."""
    monkeypatch.setattr(symmetric, "SMALL", small)
    n, k = 60, 5
    triangle, dense = matrix(7, n)
    scaling = np.random.default_rng(1).uniform(0.5, 3, n)
    left, singular, right = np.linalg.svd(dense * np.outer(scaling, scaling))
    expected = (left[:, :k] * singular[:k]) @ right[:k] / np.outer(scaling, scaling)
    values, factors = clean(triangle, n, scaling, k)
    assert (values.shape, factors.shape) == ((k,), (n, k))
    assert (values < 0).any()
    assert np.abs(values).tolist() == sorted(np.abs(values), reverse=True)
    assert unpacked(triangle, n) == pytest.approx(expected, abs=1e-3)
    assert (factors * values) @ factors.T == pytest.approx(unpacked(triangle, n), abs=1e-5)


def test_cleaning_twice_is_cleaning_once() -> None:
    triangle, _ = matrix(3, 50)
    scaling = np.random.default_rng(1).uniform(0.5, 3, 50)
    clean(triangle, 50, scaling, 6)
    once = triangle.copy()
    clean(triangle, 50, scaling, 6)
    assert triangle == pytest.approx(once, abs=1e-5)


def test_pairs_of_a_factored_matrix_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(4)
    values, factors = np.array([3.0, -2, 0.5]), rng.normal(size=(30, 3))
    found, vectors = eigen_of_low_rank(values, factors)
    dense = (factors * values) @ factors.T
    expected = np.linalg.eigvalsh(dense)
    assert found == pytest.approx(expected[np.argsort(-np.abs(expected))][:3])
    assert (vectors * found) @ vectors.T == pytest.approx(dense, abs=1e-10)
    assert vectors.T @ vectors == pytest.approx(np.eye(3), abs=1e-12)


def test_pairs_of_orthonormal_factors_are_themselves() -> None:
    triangle, _ = matrix(5, 40)
    values, vectors = leading_eigenpairs(triangle, 40, 4)
    found = eigen_of_low_rank(values, vectors)
    assert found[0] == pytest.approx(values)
    assert found[1] == pytest.approx(vectors, abs=1e-10)

"""Packed symmetric matrices, and matrices of low rank, against dense ones."""

from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, eigsh

from dpmf_cli.kernels import covariance
from dpmf_cli.kernels.covariance import (
    Which,
    eigen_of_low_rank,
    leading_eigenpairs,
    multiply,
    rank_k,
    triangle_size,
)
from tests.kernels.test_covariance import packed, unpacked


def matrix(seed: int, n: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """A random triangle and its dense matrix."""
    triangle = np.random.default_rng(seed).normal(size=triangle_size(n)).astype(np.float32)
    return triangle, unpacked(triangle, n)


def with_spectrum(values: NDArray[np.float64], n: int) -> NDArray[np.float32]:
    """The triangle of an n × n matrix with these eigenvalues, and 0 for the others."""
    basis, _ = np.linalg.qr(np.random.default_rng(n).normal(size=(n, len(values))))
    return packed((basis * values) @ basis.T)


@pytest.fixture
def lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes no matrix count as small."""
    monkeypatch.setattr(covariance, "SMALL", 0)


@settings(max_examples=60)
@given(n=st.integers(1, 90), b=st.integers(1, 4), scaled=st.booleans(), seed=st.integers(0, 10**6))
def test_products_are_those_of_the_dense_matrix(n: int, b: int, scaled: bool, seed: int) -> None:
    triangle, dense = matrix(seed, n)
    before, rng = triangle.copy(), np.random.default_rng(seed + 1)
    vectors, scaling = rng.normal(size=(n, b)), rng.uniform(0.5, 3, n) if scaled else None
    scale = 1 if scaling is None else scaling[:, None]
    expected = scale * (dense @ (scale * vectors))
    found = multiply(triangle, vectors, scaling=scaling)
    assert (found.dtype, found.shape) == (np.dtype(np.float64), (n, b))
    assert found == pytest.approx(expected, rel=0, abs=1e-5 * (1 + n**0.5))
    assert np.array_equal(triangle, before)


def test_products_over_several_blocks_of_columns() -> None:
    """More columns than one block takes, in sums that would lose digits in float32."""
    n = 2 * covariance.COLUMNS + 37
    triangle = np.ones(triangle_size(n), np.float32)
    vectors = np.stack([np.ones(n), np.arange(n, dtype=np.float64)], axis=1)
    expected = np.broadcast_to(vectors.sum(axis=0), (n, 2))
    assert multiply(triangle, vectors) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("which", ["magnitude", "largest"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("n", "k", "small"), [(1, 1, 400), (3, 3, 400), (40, 5, 400), (300, 8, 0)])
def test_pairs_are_those_of_the_dense_matrix(
    n: int, k: int, small: int, scaled: bool, which: Which, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Densely, and by Lanczos. Half of the eigenvalues of a random matrix are negative: "magnitude" takes both ends."""
    monkeypatch.setattr(covariance, "SMALL", small)
    triangle, dense = matrix(2 if small == 0 else n, n)
    scaling = np.random.default_rng(0).uniform(0.5, 3, n) if scaled else None
    if scaling is not None:
        dense = dense * np.outer(scaling, scaling)
    expected = np.linalg.eigvalsh(dense)
    order = np.argsort(-np.abs(expected) if which == "magnitude" else -expected)[:k]
    assert which == "largest" or n == 1 or (expected[order] < 0).any()
    values, vectors = leading_eigenpairs(triangle, n, k, scaling=scaling, which=which)
    assert values == pytest.approx(expected[order], rel=1e-5, abs=1e-5)
    assert dense @ vectors == pytest.approx(vectors * values, abs=2e-4 * np.abs(values).max())
    assert vectors.T @ vectors == pytest.approx(np.eye(k), abs=1e-8)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(k)] > 0).all()


@pytest.mark.usefixtures("lanczos")
@pytest.mark.skipif("rng" not in signature(eigsh).parameters, reason="SciPy restarts from a state of its own")
@pytest.mark.parametrize("values", [[5.0, -3, 1, 0, 0, 0], [0.0] * 6])
@pytest.mark.parametrize("diagonal", [False, True])
def test_a_matrix_of_lower_rank_than_asked(diagonal: bool, values: list[float]) -> None:
    """ARPACK restarts from random vectors there, the diagonal one for sure: they too are the same each time."""
    dense = np.diag([*values, *[0.0] * 194])
    triangle = packed(dense) if diagonal else with_spectrum(np.array(values[:3]), 200)
    first, second = (leading_eigenpairs(triangle, 200, 6) for _ in range(2))
    assert first[0] == pytest.approx(values, abs=1e-5)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert first[1].T @ first[1] == pytest.approx(np.eye(6), abs=1e-8)


@pytest.mark.usefixtures("lanczos")
@pytest.mark.parametrize("which", ["magnitude", "largest"])
def test_where_arpack_gives_up_a_block_krylov_space_answers(
    which: Which, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gives_up(*_: object, **__: object) -> None:
        raise ArpackError(-1)

    triangle = 1e6 * with_spectrum(np.array([9.0, -8, 7, -6, 5, 4, 0.1, -0.1]), 120)
    expected = leading_eigenpairs(triangle, 120, 3, which=which)
    monkeypatch.setattr(covariance, "eigsh", gives_up)
    found = leading_eigenpairs(triangle, 120, 3, which=which)
    assert found[0] == pytest.approx([9e6, -8e6, 7e6] if which == "magnitude" else [9e6, 7e6, 5e6], rel=1e-5)
    assert found[1] == pytest.approx(expected[1], abs=1e-4)


def test_more_pairs_than_there_are_are_all() -> None:
    values, vectors = leading_eigenpairs(np.array([2, 0, 1], np.float32), 2, 9)
    assert (values.tolist(), vectors.tolist()) == ([2.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])


@settings(max_examples=60)
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


def test_pairs_of_a_factored_matrix_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(4)
    values, factors = np.array([3.0, -2, 0.5]), rng.normal(size=(30, 3))
    found, vectors = eigen_of_low_rank(values, factors)
    dense = (factors * values) @ factors.T
    expected = np.linalg.eigvalsh(dense)
    assert found == pytest.approx(expected[np.argsort(-np.abs(expected))][:3])
    assert (vectors * found) @ vectors.T == pytest.approx(dense, abs=1e-10)
    assert vectors.T @ vectors == pytest.approx(np.eye(3), abs=1e-12)

"""Packed triangles of weighted products, against matrices by hand and dense ones."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import (
    Raters,
    mean_ratios,
    place,
    shrink,
    triangle_size,
    weighted_products,
)
from dpmf_cli.ratings import Ratings, Scale
from tests.conftest import make_ratings


def unpacked(triangle: NDArray[np.floating], n_items: int) -> NDArray[np.float64]:
    """The symmetric matrix of a packed triangle."""
    dense = np.zeros((n_items, n_items))
    dense[np.triu_indices(n_items)] = triangle
    return dense + np.triu(dense, 1).T


def packed(dense: NDArray[np.float64]) -> NDArray[np.float32]:
    return dense[np.triu_indices(len(dense))].astype(np.float32)


def test_three_users_and_three_items_by_hand() -> None:
    """Rows (1, 2, ·), (·, 3, −1), (·, ·, 5) with weights 1/2, 1/4, 1."""
    ratings = Ratings(
        np.array([0, 0, 1, 1, 2], np.int32),
        np.array([0, 1, 1, 2, 2], np.int32),
        np.array([1, 2, 3, -1, 5], np.float32),
        3,
        3,
        Scale(-10, 10),
    )
    found = weighted_products(
        ratings, Raters.of(ratings), ratings.values.astype(float), np.array([0.5, 0.25, 1])
    )
    # (0,0) ½·1·1; (0,1) ½·1·2; (0,2) nobody; (1,1) ½·2·2 + ¼·3·3; (1,2) ¼·3·(−1); (2,2) ¼·1 + 5·5
    assert found.tolist() == [0.5, 1.0, 0.0, 4.25, -0.75, 25.25]


@pytest.mark.parametrize("seed", range(3))
def test_products_are_those_of_the_dense_matrix(seed: int) -> None:
    ratings = make_ratings(seed, n_users=40, n_items=17)
    ratings = ratings.select((ratings.users != 4) & (ratings.items != 9))
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, len(ratings))
    weights = rng.random(ratings.n_users)
    dense = np.zeros((ratings.n_users, ratings.n_items))
    dense[ratings.users, ratings.items] = values
    found = weighted_products(ratings, Raters.of(ratings), values, weights)
    assert unpacked(found, 17) == pytest.approx(dense.T @ (weights[:, None] * dense), abs=1e-12)


def test_every_unordered_pair_has_one_place() -> None:
    places = np.array([[place(i, j, 7) for j in range(7)] for i in range(7)])
    assert (places == places.T).all()
    assert places[np.triu_indices(7)].tolist() == list(range(triangle_size(7)))


@pytest.mark.parametrize("n", [2, 6, 41])
def test_mean_ratios_are_least_squares_slopes(n: int) -> None:
    rng = np.random.default_rng(1)
    weight, covariance = rng.random((n, n)), rng.normal(size=(n, n))
    on, off = mean_ratios(packed(covariance), packed(weight), n)
    above = np.triu_indices(n, 1)
    slope_on = np.linalg.lstsq(np.diag(weight)[:, None], np.diag(covariance), rcond=None)[0][0]
    slope_off = np.linalg.lstsq(weight[above][:, None], covariance[above], rcond=None)[0][0]
    assert (on, off) == pytest.approx((slope_on, slope_off), rel=1e-5)


def test_mean_ratios_without_weights_are_zero() -> None:
    assert mean_ratios(np.ones(3, np.float32), np.zeros(3, np.float32), 2) == (0.0, 0.0)


def test_entries_are_shrunk_to_their_own_average() -> None:
    """(Cov + 2·0.5)/(Wgt + 2) on the diagonal, (Cov + 3·0.1)/(Wgt + 3) off it; three items."""
    covariance, weight = np.array([4, 1, 2, 8, 3, 0], np.float32), np.array([6, 0, 1, 2, 5, 0], np.float32)
    shrink(covariance, weight, 3, 2.0, 3.0, 0.5, 0.1)
    assert covariance == pytest.approx([5 / 8, 1.3 / 3, 2.3 / 4, 9 / 4, 3.3 / 8, 1 / 2])

"""Packed triangles of weighted products, against matrices by hand and dense ones.

Products of several models, released row by row, against clean triangles of each.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import (
    Products,
    mean_ratios,
    measured_together,
    place,
    release_products,
    shrink,
    triangle_size,
    weighted_products,
)
from dpmf_cli.privacy.noise import LaneNoise
from tests.conftest import make_ratings


def unpacked(triangle: NDArray[np.floating], n_items: int) -> NDArray[np.float64]:
    """The symmetric matrix of a packed triangle."""
    dense = np.zeros((n_items, n_items))
    dense[np.triu_indices(n_items)] = triangle
    return dense + np.triu(dense, 1).T


def packed(dense: NDArray[np.float64]) -> NDArray[np.float32]:
    return dense[np.triu_indices(len(dense))].astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_products_are_those_of_the_dense_matrix(seed: int) -> None:
    ratings = make_ratings(seed, n_users=40, n_items=17)
    ratings = ratings.select((ratings.users != 4) & (ratings.items != 9))
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, len(ratings))
    weights = rng.random(ratings.n_users)
    dense = np.zeros((ratings.n_users, ratings.n_items))
    dense[ratings.users, ratings.items] = values
    found = weighted_products(ratings, values, weights)
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
    assert mean_ratios(np.ones(3, np.float32), np.zeros(3, np.float32), 2) == (0.0, 0.0)


def test_entries_are_shrunk_to_their_own_average() -> None:
    """(Cov + 2·0.5)/(Wgt + 2) on the diagonal, (Cov + 3·0.1)/(Wgt + 3) off it; three items."""
    covariance, weight = np.array([4, 1, 2, 8, 3, 0], np.float32), np.array([6, 0, 1, 2, 5, 0], np.float32)
    shrink(covariance, weight, 3, 2.0, 3.0, 0.5, 0.1)
    assert covariance == pytest.approx([5 / 8, 1.3 / 3, 2.3 / 4, 9 / 4, 3.3 / 8, 1 / 2])


EVERYONE = make_ratings(2, n_users=30, n_items=11)
RATINGS = EVERYONE.select((EVERYONE.users != 4) & (EVERYONE.items != 2))


def test_what_is_common_to_all_models_is_summed_once_and_has_the_noise_of_each() -> None:
    rng, scales, size = np.random.default_rng(3), np.array([0.2, 0.0, 1.5]), triangle_size(11)
    unit, weights, averages = (
        rng.normal(size=size),
        rng.random(30),
        (np.full((11, 1), 3.2), np.zeros((30, 1))),
    )
    released = np.full((3, size), np.nan, np.float32)
    of = Products(slice(0, 3), RATINGS, RATINGS.values, weights, *averages, 0.8, released)
    release_products.run(of, LaneNoise(unit, scales))
    assert of.width == 1
    clean = weighted_products(RATINGS, np.clip(RATINGS.values - 3.2, -0.8, 0.8), weights)
    for lane, own in enumerate(scales):
        assert released[lane] == pytest.approx(clean + own * unit, abs=2e-3 * own + 1e-6)


@pytest.mark.parametrize(
    ("n_items", "models"), [(1_000, 8), (3_706, 8), (10_681, 4), (17_770, 1), (60_000, 1)]
)
def test_as_many_models_are_measured_together_as_have_room(n_items: int, models: int) -> None:
    assert measured_together(n_items) == models

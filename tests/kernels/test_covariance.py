"""Packed triangles of weighted products, against matrices by hand and dense ones."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import (
    Raters,
    Triangle,
    mean_ratios,
    place,
    shrink,
    triangle_size,
    weighted_products,
    with_noise,
)
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Release, Witness
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
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


def noisy(measured: list[float], unit: list[float], scale: float, witness: Witness | None = None) -> Triangle:
    """A triangle with that noise, which is of the second of three ε."""
    triangle = Triangle(np.array(measured), np.zeros(len(measured), np.float32), 1)
    curator = Curator(Ledger([1.0] * 3), Streams(0, "data", "test", 0, 0), witness)
    entry = curator.ledger.spend(
        "triangle", "test", Sensitivity(1, 1, Neighbours.BOUNDED, "test"), np.ones(3)
    )
    noise = LaneNoise(np.array(unit), np.array([np.nan, scale, np.nan]))
    curator.release(entry, noise).inside(with_noise, triangle)
    return triangle


def test_noise_is_scaled_and_added_before_anything_is_rounded() -> None:
    assert noisy([1, 2, 3 + 2.0**-40], [-1, 0, 2], 0.5).released.tolist() == [0.5, 2, 4]
    # In float32 the sum would be 2²⁴ before the noise, and 1 less after it.
    assert noisy([2.0**24 + 1], [-(2.0**24)], 1.0).released.tolist() == [1.0]


def test_a_witness_sees_every_element_of_a_triangle_once_and_changes_nothing() -> None:
    seen: list[tuple[slice, int, list[list[float]]]] = []

    class Watching(Witness):
        def published(
            self,
            release: Release,
            lanes: slice,
            first: int,
            clean: NDArray[np.floating],
            noisy: NDArray[np.float64],
        ) -> NDArray[np.float64]:
            seen.append((lanes, first, clean.tolist()))
            return noisy

    measured, unit = [0.1, -7.0, 2.0**24 + 1], [1.3, 1e-3, -(2.0**24)]
    plain = noisy(measured, unit, 0.7, Watching())
    assert seen == [(slice(1, 2), 0, [[value] for value in measured])]
    assert plain.released.tobytes() == noisy(measured, unit, 0.7).released.tobytes()


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

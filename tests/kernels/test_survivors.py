"""Unbounded input perturbation: the sampled matrix has the law of the dense one."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.kernels.survivors import draw_survivors, skipped_above
from dpmf_cli.privacy.grid import grid_of, on_grid
from dpmf_cli.privacy.noise import minus_log

N_USERS, N_ITEMS, BOUND, THRESHOLD = 40, 50, 1.0, 0.6
LEVEL = 1e-4


def sampled(key: int, scale: float, rated: float = math.nan) -> np.ndarray:
    """(N_USERS, N_ITEMS) the perturbed matrix as the kernel draws it, NaN where a cell is dropped; all cells are
    blank, or have the residual `rated`."""
    cut = math.exp(-THRESHOLD / scale)
    rating = np.full(N_ITEMS, rated, np.float32)
    places, uniform = np.empty(N_ITEMS + 1, np.int32), np.empty(N_ITEMS + 1)
    noise = np.empty(N_ITEMS + 1)
    matrix = np.full((N_USERS, N_ITEMS), np.nan)
    for user in range(N_USERS):
        count = draw_survivors(np.uint64(key), user * N_ITEMS, rating, cut, places, uniform, noise)
        residual = 0.0 if math.isnan(rated) else rated
        matrix[user, places[:count]] = np.clip(residual + scale * noise[:count], -BOUND, BOUND)
    matrix[np.abs(matrix) <= THRESHOLD] = np.nan
    return matrix


def dense(rng: np.random.Generator, scale: float, rated: float = 0.0) -> np.ndarray:
    """The same, computed literally by Friedman et al. 2016, equation 8."""
    matrix = np.clip(rated + rng.laplace(0, scale, (N_USERS, N_ITEMS)), -BOUND, BOUND)
    matrix[np.abs(matrix) <= THRESHOLD] = np.nan
    return matrix


@pytest.mark.parametrize("rated", [math.nan, 0.8, -0.3])
@pytest.mark.parametrize("scale", [0.15, 0.7, 5.0])
def test_values_counts_and_places_have_the_law_of_the_dense_matrix(scale: float, rated: float) -> None:
    rng = np.random.default_rng(1)
    ours = np.array([sampled(key, scale, rated) for key in range(40)])
    theirs = np.array([dense(rng, scale, 0.0 if math.isnan(rated) else rated) for _ in range(40)])
    values, expected = ours[~np.isnan(ours)], theirs[~np.isnan(theirs)]
    inside, inside_expected = values[np.abs(values) < BOUND], expected[np.abs(expected) < BOUND]
    assert stats.ks_2samp(inside, inside_expected).pvalue > LEVEL
    kinds = [
        [(each == -BOUND).sum(), (each == BOUND).sum(), (np.abs(each) < BOUND).sum(), np.isnan(each).sum()]
        for each in (ours, theirs)
    ]
    assert stats.chi2_contingency(np.array(kinds) + 1).pvalue > LEVEL
    by_place = (~np.isnan(ours)).sum(axis=(0, 1))
    assert stats.chisquare(by_place).pvalue > LEVEL
    counts = (~np.isnan(ours)).sum(axis=(1, 2))
    probability = np.mean(~np.isnan(theirs))
    variance = N_USERS * N_ITEMS * probability * (1 - probability)
    assert 0.3 < counts.var() / variance < 2.5  # binomial: cells survive independently


def test_those_tests_have_power() -> None:
    """A scale that is 1.25 or 0.8 times the right one is detected in the values and in the counts."""
    rng = np.random.default_rng(2)
    ours = np.array([sampled(key, 0.7) for key in range(40)])
    for factor in (0.8, 1.25):
        theirs = np.array([dense(rng, 0.7 * factor) for _ in range(40)])
        kept = [[(~np.isnan(each)).sum(), np.isnan(each).sum()] for each in (ours, theirs)]
        assert stats.chi2_contingency(kept).pvalue < LEVEL


def test_larger_epsilons_see_the_same_noise_and_keep_fewer_cells() -> None:
    small, large = sampled(7, 0.15), sampled(7, 0.7)
    both = ~np.isnan(small)
    assert not np.isnan(large[both]).any()
    unclamped = both & (np.abs(large) < BOUND)
    assert small[unclamped] / large[unclamped] == pytest.approx(
        np.full(unclamped.sum(), 0.15 / 0.7), rel=1e-5
    )


def test_the_logarithm_is_right_at_its_ends_and_between() -> None:
    rng = np.random.default_rng(0)
    v = np.concatenate([[1.0, 2.0**-53, math.sqrt(0.5), np.nextafter(1, 0)], rng.random(100_000)])
    signed = v * rng.choice([-1, 1], len(v))
    out = np.empty(len(v))
    minus_log(signed.copy(), out, len(v))
    assert np.abs(out - -np.log(v) * np.sign(signed)).max() < 1e-13


def test_no_cell_is_skipped_that_a_lane_would_keep() -> None:
    """Cells are skipped before they are rounded, and dropped after it. At the edge only the latter must decide;
    otherwise a model would depend on the larger scales beside it."""
    kept_beyond_the_edge = 0
    for threshold in (0.45, 0.6, 0.7):
        for scale in 1 / (0.7 * np.geomspace(0.1, 20, 50)):
            edge = math.exp(-threshold / scale)
            v = edge * (1 + np.linspace(-1e-3, 1e-3, 401))
            noise = np.empty(len(v))
            minus_log(v.copy(), noise, len(v))
            rounded = on_grid(noise * scale, grid_of(np.array(scale))).astype(np.float32)
            kept = rounded > np.float32(threshold)
            assert (v[kept] < skipped_above(threshold, float(scale))).all()
            kept_beyond_the_edge += int((v[kept] >= edge).sum())
    assert kept_beyond_the_edge > 0  # so that skipping at the edge itself would be wrong

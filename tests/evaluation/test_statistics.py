"""The bootstrap's intervals have their stated coverage, and the measures of spread are those of the textbook."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.evaluation.statistics import (
    expansion,
    percentile_interval,
    prior_variance,
    replicate_means,
    sd_over_folds,
    sd_over_runs,
    surely_positive,
)

FOLDS, RUNS, TRIALS = 10, 5, 1000


def simulated(
    seed: int, *, between_folds: float, between_runs: float, correlation: float = 0.0
) -> NDArray[np.float64]:
    """(TRIALS, FOLDS, RUNS) values of mean 0; `correlation` is that of the folds' effects."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(TRIALS, 1, 1)) * np.sqrt(correlation)
    own = rng.normal(size=(TRIALS, FOLDS, 1)) * np.sqrt(1 - correlation)
    values: NDArray[np.float64] = between_folds * (common + own) + between_runs * rng.normal(
        size=(TRIALS, FOLDS, RUNS)
    )
    return values


def coverage(values: NDArray[np.float64], *, partition: int | None) -> float:
    """The share of trials whose interval covers the true mean, 0."""
    covered = 0
    for trial, cells in enumerate(values):
        rng = np.random.default_rng(trial)
        drawn = replicate_means(cells[:, :, None], rng=rng, replicates=400, partition=partition)
        low, high = percentile_interval(drawn.curves[:, 0])
        covered += bool(low <= 0 <= high)
    return covered / len(values)


@pytest.mark.parametrize(("between_folds", "between_runs"), [(1.0, 0.2), (1.0, 1.0), (0.05, 1.0)])
def test_intervals_over_independent_folds_cover_95_percent(between_folds: float, between_runs: float) -> None:
    """The intervals have their coverage whichever noise prevails. Three standard errors of 1000 trials are 2 %.
    Ignoring the folds fails the first case (cover: 0.6), resampling the runs twice the last (0.99), and leaving
    out the small-sample factor all (0.90)."""
    values = simulated(1, between_folds=between_folds, between_runs=between_runs)
    assert coverage(values, partition=None) == pytest.approx(0.95, abs=0.021)
    assert coverage(values, partition=values.shape[1]) > 0.98


def test_the_overlap_correction_restores_the_coverage_of_dependent_folds() -> None:
    """With the correlation that Nadeau & Bengio assume, n_test/n = 1/k."""
    values = simulated(2, between_folds=1.0, between_runs=0.2, correlation=1 / FOLDS)
    assert coverage(values, partition=values.shape[1]) == pytest.approx(0.95, abs=0.021)
    assert coverage(values, partition=None) < 0.88


def test_one_fold_is_resampled_over_runs_and_covers_95_percent() -> None:
    values = np.random.default_rng(3).normal(size=(TRIALS, 1, 8))
    assert replicate_means(values[0][:, :, None], rng=np.random.default_rng(0), partition=10).over == "runs"
    assert coverage(values, partition=10) == pytest.approx(0.95, abs=0.021)


def test_the_expansion_is_the_product_of_its_three_factors() -> None:
    """By hand for ten folds: t(9, 0.975) = 2.262157, z = 1.959964."""
    alone = np.sqrt(10 / 9) * 2.262157 / 1.959964
    assert expansion(10, partition=None) == pytest.approx(alone, rel=1e-6)
    assert expansion(10, partition=10) == pytest.approx(alone * np.sqrt(1 + 10 / 9), rel=1e-6)
    some = expansion(3, partition=None)
    assert expansion(3, partition=10) == pytest.approx(some * np.sqrt(1 + 3 / 9), rel=1e-6)


def test_replicates_are_whole_curves_around_the_mean() -> None:
    """A shift common to all ε of a fold is drawn as a shift, so replicates keep the curve's shape."""
    shape = np.array([3.0, 2.0, 1.0])
    values = shape + np.random.default_rng(4).normal(size=(6, 3, 1))
    drawn = replicate_means(values, rng=np.random.default_rng(5), partition=6).curves
    np.testing.assert_allclose(np.diff(drawn, axis=1), -1.0)
    assert drawn.mean() == pytest.approx(values.mean(), abs=0.1)


def test_percentiles_are_samples_and_may_be_infinite() -> None:
    samples = np.concatenate([np.full(60, -np.inf), np.arange(1880.0), np.full(60, np.inf)])
    low, high = percentile_interval(np.random.default_rng(0).permutation(samples))
    assert (float(low), float(high)) == (-np.inf, np.inf)
    low, high = percentile_interval(np.arange(2000.0))
    assert (float(low), float(high)) == (49.0, 1950.0)


def test_standard_deviations_by_hand() -> None:
    values = np.array([[[1.0], [3.0]], [[4.0], [6.0]]])  # fold means 2 and 5; variance 2 within each fold
    assert sd_over_folds(values) == pytest.approx([np.sqrt(4.5)])
    assert sd_over_runs(values) == pytest.approx([np.sqrt(2.0)])
    assert np.isnan(sd_over_folds(values[:1])).all()
    assert np.isnan(sd_over_runs(values[:, :1])).all()


def families(folds: int, difference: float, *, chosen: bool = False) -> NDArray[np.bool_]:
    """(TRIALS, 40) what is sure of 40 methods that are all worse by this than a fixed one, or, if it is `chosen`, than
    that of them and one more which has the lowest error. Training sets overlap; variances differ, by a prior of four
    degrees of freedom."""
    rng = np.random.default_rng(5)
    deviations = np.sqrt(4 / rng.chisquare(4, (TRIALS, 1, 1, 41)))
    common, own = (rng.normal(size=(TRIALS, n, 1, 41)) for n in (1, folds))
    values = difference + deviations * (np.sqrt(1 / 5) * common + np.sqrt(4 / 5) * own)
    if not chosen:
        return np.array([surely_positive(each[..., :40], partition=5) for each in values])
    firsts = values.mean(axis=(1, 2)).argmin(axis=1)
    return np.array(
        [
            surely_positive(np.delete(each, first, axis=2) - each[..., [first]], partition=5)
            for each, first in zip(values, firsts, strict=True)
        ]
    )


@pytest.mark.parametrize("folds", [2, 5])
def test_the_chance_of_a_wrong_claim_is_at_most_five_percent(
    folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of forty claims about a method that was named beforehand; and, if the leader is chosen, that a given one of
    equally good methods is called worse."""
    assert families(folds, 0.0).any(axis=1).mean() < 0.03
    assert families(folds, 0.0, chosen=True).mean(axis=1).mean() < 0.01
    assert families(folds, -5.0).mean() < 1e-3
    assert families(folds, 15.0).mean() > 0.9
    if folds == 2:  # what the limit of the prior is for
        monkeypatch.setattr("dpmf_cli.evaluation.statistics.MOST_FREEDOM", np.inf)
        assert families(folds, 0.0).any(axis=1).mean() > 0.055


def test_a_prior_that_is_fitted_to_many_variances_is_that_which_they_came_from() -> None:
    rng = np.random.default_rng(6)
    true = 3.0 * 2 / rng.chisquare(2, 20_000)
    assert prior_variance(true * rng.chisquare(2, 20_000) / 2, 2) == pytest.approx((3.0, 2.0), rel=0.1)
    assert prior_variance(np.full(9, 3.0), 10**6) == pytest.approx((3.0, 4.0))
    assert prior_variance(true[:2], 2) == (0.0, 0.0)


def test_without_differences_or_a_second_fold_and_run_nothing_is_sure() -> None:
    assert not surely_positive(np.zeros((3, 1, 5)), partition=5).any()
    assert not surely_positive(np.ones((1, 1, 5)), partition=5).any()
    assert surely_positive(np.ones((3, 1, 5)), partition=5).all()
    runs = np.array([1.0, 1.1, 0.9, 1.0])[None, :, None]
    assert surely_positive(runs, partition=2).all()

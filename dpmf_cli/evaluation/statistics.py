"""The bootstrap behind every interval: how certain a mean over folds and runs is.

What is resampled
    A value x[f, r] of fold f and run r is mean + fold effect (sd σ_F) + run effect (sd σ_R), so the mean
    over k folds of R runs has variance (σ_F² + σ_R²/R)/k. The fold means x̄_f have exactly the variance
    σ_F² + σ_R²/R. Folds are therefore resampled with replacement, as clusters, each with all its runs as they are.
    Resampling the runs again would count their noise twice (Davison & Hinkley 1997, section 3.8), and treating the
    k·R values as independent would nearly ignore the noise of the folds.

How far the replicates are spread
    Percentiles of a resampled mean of n values are too narrow for small n. Deviations are multiplied by
    sqrt(n/(n − 1))·t/z, in the manner of the expanded percentile interval (Hesterberg, What teachers should know
    about the bootstrap, The American Statistician 69, 2015).

    The folds of a cross-validation are dependent, since their training sets overlap. If fold means have
    variance σ² and correlation ρ, then Var(x̄) = σ²·(ρ + (1 − ρ)/k), while their sample variance S² has
    expectation σ²·(1 − ρ); so

        Var(x̄) / E[S²] = 1/k + ρ/(1 − ρ).

    Nadeau & Bengio (Inference for the generalization error, Machine Learning 52, 2003) take
    ρ = n_test/(n_test + n_train), which makes this 1/k + n_test/n_train. With k folds n_test/n_train is
    1/(k − 1), and against the S²/k of independent folds the deviation grows by

        sqrt(1 + k/(k − 1)):    1.45 for ten folds, 1.73 for two.

    Where only n of the k folds are held out, S²/n stands for S²/k and the factor is sqrt(1 + n/(k − 1)).

    This correction is a convention that errs on the side of wide intervals: no unbiased estimate of the variance
    exists for a single cross-validation (Bengio & Grandvalet, JMLR 5, 2004).

One fold
    Runs are resampled instead, without the correction for overlap, and the interval is marked as over runs. With one
    fold and one run there is none.

Many comparisons
    Whether each of many methods is worse than the one with the lowest error is asked of all of them together. The
    p-values are those of the t-test with the same correction for overlap (Nadeau & Bengio 2003), times the number of
    methods. So the method that is best in truth is called worse with a chance of 5 % at most, whichever leads by
    chance, by the union of what may be said of it and each other one; Holm's step-down keeps its level only against a
    reference that was named beforehand. Two or five folds say little about one variance, but the methods say much, so
    each is moderated: averaged with a prior that is fitted to all of them (Smyth 2004, section 6.2).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, ndtri, polygamma, stdtr, stdtrit

from dpmf_cli.core.arrays import Doubles, Flags

#: Confidence level of every interval.
LEVEL = 0.95
#: Bootstrap replicates of every interval.
REPLICATES = 2000

#: What an interval was resampled over.
Over = Literal["folds", "runs", "none"]


@dataclass(frozen=True)
class Replicates:
    """A mean curve (E,) over folds and runs with its bootstrap replicates `curves` (B, E); B is 0 over "none"."""

    mean: Doubles
    curves: Doubles
    over: Over

    @property
    def interval(self) -> tuple[Doubles, Doubles]:
        """(E,), (E,) the `LEVEL` percentile interval of the mean; NaN where there is none."""
        if self.over == "none":
            return np.full_like(self.mean, np.nan), np.full_like(self.mean, np.nan)
        return percentile_interval(self.curves)


def expansion(units: int, *, partition: int | None) -> float:
    """The factor on a replicate's deviation from the mean, for `units` (> 1) resampled folds or runs.

    `partition` is the number of folds of the cross-validation, `units` of which were held out. It adds Nadeau &
    Bengio's correction for overlapping training sets; None is for independent units. See the module docstring.
    """
    tail = (1 + LEVEL) / 2
    small_sample = np.sqrt(units / (units - 1)) * stdtrit(units - 1, tail) / ndtri(tail)
    overlap = np.sqrt(1 + units / (partition - 1)) if partition is not None else 1.0
    return float(small_sample * overlap)


def replicate_means(
    values: Doubles, *, rng: np.random.Generator, partition: int | None, replicates: int = REPLICATES
) -> Replicates:
    """The mean over folds and runs of finite `values` (folds, runs, E), with its bootstrap replicates.

    Folds are resampled where there are several, else runs. All columns share the draws, so a replicate is a
    complete curve. `partition` is the number of folds of the cross-validation, some or all of which were held out;
    None is for independent folds, as in a simulation.
    """
    folds, runs, _ = values.shape
    over: Over = "folds" if folds > 1 else "runs" if runs > 1 else "none"
    if over == "none":
        return Replicates(values.mean(axis=(0, 1)), np.empty((0, values.shape[2])), over)
    units = values.mean(axis=1) if over == "folds" else values[0]
    count = len(units)
    drawn = units[rng.integers(count, size=(replicates, count))].mean(axis=1)
    mean = units.mean(axis=0)
    factor = expansion(count, partition=partition if over == "folds" else None)
    return Replicates(values.mean(axis=(0, 1)), mean + factor * (drawn - mean), over)


def surely_positive(values: Doubles, *, partition: int) -> Flags:
    """(M,) whether the mean of each of M series `values` (folds, runs, M) is above 0, with a chance of at most
    1 − `LEVEL` that this is wrong of any. The units are folds, or the runs of one fold; one of each decides nothing.
    """
    folds, _, count = values.shape
    units = values.mean(axis=1) if folds > 1 else values[0]
    own = len(units) - 1
    if not own:
        return np.zeros(count, np.bool_)
    variances = units.var(axis=0, ddof=1)
    prior, strength = prior_variance(variances[variances > 0], own)
    share = own / (strength + own)
    moderated = (1 - share) * prior + share * variances
    freedom = min(strength + own, own * count)
    widening = 1 / len(units) + (1 / (partition - 1) if folds > 1 else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.nan_to_num(
            2 * stdtr(freedom, -units.mean(axis=0) / np.sqrt(moderated * widening)), nan=1
        )
    return np.asarray(chances * count <= 1 - LEVEL)


def prior_variance(variances: Doubles, freedom: int) -> tuple[float, float]:
    """The prior of variances that were each estimated with so many degrees of freedom, and how many it counts as: 0
    for fewer than three variances, and at most `MOST_FREEDOM`."""
    if len(variances) < 3:
        return 0.0, 0.0
    logarithms = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    spread, half = float(logarithms.var(ddof=1) - polygamma(1, freedom / 2)), 1e6
    if spread > polygamma(1, half):
        half = float(brentq(lambda each: polygamma(1, each) - spread, 1e-9, half))
    prior = float(np.exp(logarithms.mean() + digamma(half) - np.log(half)))
    return prior, min(2 * half, MOST_FREEDOM)


MOST_FREEDOM = 4.0
"""What a prior may count as, because its own degrees of freedom are uncertain (see the tests)."""


def percentile_interval(samples: Doubles) -> tuple[Doubles, Doubles]:
    """The `LEVEL` percentile interval along axis 0 of `samples` (B, …), B > 0.

    Both ends are samples (no interpolation), so ±inf may be among them.
    """
    ordered = np.sort(samples, axis=0)
    low, high = percentile_places(len(ordered))
    return ordered[low], ordered[high]


def percentile_places(count: int) -> tuple[int, int]:
    """The indices, among `count` ordered samples, of the two ends of the `LEVEL` percentile interval."""
    last, outside = count - 1, (1 - LEVEL) / 2
    return int(np.floor(last * outside)), int(np.ceil(last * (1 - outside)))


def sd_over_folds(values: Doubles) -> Doubles:
    """(E,) sample standard deviation of the fold means of `values` (folds, runs, E); NaN for one fold."""
    folds, _, points = values.shape
    if folds < 2:
        return np.full(points, np.nan)
    sd: Doubles = values.mean(axis=1).std(axis=0, ddof=1)
    return sd


def sd_over_runs(values: Doubles) -> Doubles:
    """(E,) standard deviation between the runs of one fold, pooled over folds; NaN for one run."""
    _, runs, points = values.shape
    if runs < 2:
        return np.full(points, np.nan)
    sd: Doubles = np.sqrt(values.var(axis=1, ddof=1).mean(axis=0))
    return sd

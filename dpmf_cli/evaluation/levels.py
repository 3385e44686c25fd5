"""The values of curves, RMSE or another metric, with their intervals: at each ε of a grid, or at any one ε."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import curve_stream, is_complete, spent_at
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.interpolation import value_range
from dpmf_cli.evaluation.metrics import BESIDE
from dpmf_cli.evaluation.statistics import Over, Replicates, percentile_interval, replicate_means


@dataclass(frozen=True)
class LevelAt:
    """The value of one curve at an ε, or of a baseline: RMSE in rating units, or another metric.

    epsilon       inf for a baseline
    claimed, provable, over   as in `Crossing`
    value         None where a task has no result, inf where the model diverged
    beside        the errors `BESIDE` by key, interpolated as `value` is; one that was not measured is not there
    low, high     95 % interval of `value`, including what interpolation leaves open; None where there is none
    """

    experiment: Experiment
    curve: Measured
    epsilon: float
    claimed: float
    provable: float
    value: float | None = None
    beside: Mapping[str, float] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    over: Over = "none"

    @property
    def interpolated(self) -> bool:
        """Whether the ε is between two points of the curve's grid."""
        return self.epsilon not in self.curve.epsilons


def levels_at(experiment: Experiment, epsilon: float) -> list[LevelAt]:
    """The level of every curve at an ε, then of every baseline. Raises DpmfError for an ε outside a curve's grid."""
    for curve in experiment.curves:
        first, last = curve.epsilons[[0, -1]]
        if not first <= epsilon <= last:
            raise DpmfError(
                f"{experiment.name}: ε = {epsilon:g} is outside of the grid of {curve.label}, {first:g} to {last:g}; "
                "ask for an ε within the grid, or add this one to `epsilons` and run the config again"
            )
    curves = [_level(experiment, curve, epsilon) for curve in experiment.curves]
    return [*curves, *(_level(experiment, baseline, math.inf) for baseline in experiment.baselines)]


def band(experiment: Experiment, curve: Measured) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(E,), (E,) the 95 % interval of a complete curve's mean at each ε, from the same draws as its crossings.

    NaN where there is no interval: with one fold and one run, or at an ε at which a model diverged.
    """
    _, drawn = _drawn(experiment, curve)
    if drawn.over == "none":
        return np.full_like(curve.epsilons, np.nan), np.full_like(curve.epsilons, np.nan)
    return percentile_interval(drawn.curves)


def _drawn(experiment: Experiment, curve: Measured) -> tuple[NDArray[np.float64], Replicates]:
    """(E,) the mean of a complete curve, NaN where a model diverged, and its replicates."""
    finite = np.where(np.isfinite(curve.values), curve.values, np.nan)
    drawn = replicate_means(finite, rng=curve_stream(experiment, curve), partition=experiment.partition)
    return finite.mean(axis=(0, 1)), drawn


def _level(experiment: Experiment, curve: Measured, epsilon: float) -> LevelAt:
    grid = curve.epsilons
    claimed, provable = (
        epsilon if curve.is_baseline else spent_at(epsilon, grid, spent)
        for spent in (curve.claimed, curve.provable)
    )
    level = LevelAt(experiment, curve, epsilon, claimed, provable)
    if not is_complete(curve):
        return level
    beside = {each.key: float(value_range(grid, curve.mean(each), epsilon)[0]) for each in BESIDE}
    beside = {key: error for key, error in beside.items() if not math.isnan(error)}
    mean, drawn = _drawn(experiment, curve)
    value = float(value_range(grid, mean, epsilon)[0])
    if math.isnan(value):
        return replace(level, value=math.inf, beside=beside)
    level = replace(level, value=value, beside=beside)
    if drawn.over == "none":
        return level
    _, least, most = value_range(grid, drawn.curves, epsilon)
    low, high = float(percentile_interval(least)[0]), float(percentile_interval(most)[1])
    return replace(level, low=low, high=high, over=drawn.over)

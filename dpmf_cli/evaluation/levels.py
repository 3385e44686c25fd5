"""The values of curves, RMSE or another metric, with their intervals: at each ε of a grid, or at any one ε."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import curve_stream, is_complete, spent_at
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.interpolation import value_range
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.evaluation.statistics import Over, percentile_interval, replicate_means


@dataclass(frozen=True)
class LevelAt:
    """The value of one curve at an ε, or of a baseline: RMSE in rating units, or another metric.

    epsilon       inf for a baseline
    interpolated  whether the ε is between two points of the curve's grid
    value         None where a task has no result, inf where the model diverged
    mae           MAE, interpolated as `value` is; None where it was not measured
    low, high     95 % interval of `value`, including what interpolation leaves open; None where there is none
    claimed, provable, joint, delta, over, folds, runs   as in `Crossing`
    """

    experiment: str
    dataset: str
    neighbours: str
    mode: str
    algorithm: str
    label: str
    epsilon: float
    interpolated: bool
    metric: Metric
    value: float | None
    mae: float | None
    low: float | None
    high: float | None
    claimed: float
    provable: float
    joint: bool
    delta: float
    over: Over
    folds: int
    runs: int
    partial: str


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
    finite = np.where(np.isfinite(curve.values), curve.values, np.nan)
    drawn = replicate_means(finite, rng=curve_stream(experiment, curve), partition=experiment.partition)
    if drawn.over == "none":
        return np.full_like(curve.epsilons, np.nan), np.full_like(curve.epsilons, np.nan)
    return percentile_interval(drawn.curves)


def _level(experiment: Experiment, curve: Measured, epsilon: float) -> LevelAt:
    grid = curve.epsilons
    value, low, high, over = _value(experiment, curve, epsilon)
    folds, runs, _ = curve.values.shape
    return LevelAt(
        experiment=experiment.name,
        dataset=experiment.dataset,
        neighbours=curve.neighbours,
        mode=curve.mode,
        algorithm=curve.algorithm,
        label=curve.label,
        epsilon=epsilon,
        interpolated=epsilon not in grid,
        metric=curve.metric,
        value=value,
        mae=None if value is None else _mae(curve, epsilon),
        low=low,
        high=high,
        claimed=epsilon if curve.is_baseline else spent_at(epsilon, grid, curve.claimed),
        provable=epsilon if curve.is_baseline else spent_at(epsilon, grid, curve.provable),
        joint=curve.joint,
        delta=curve.delta,
        over=over,
        folds=folds,
        runs=runs,
        partial=experiment.partial,
    )


def _mae(curve: Measured, epsilon: float) -> float | None:
    mae = float(value_range(curve.epsilons, curve.mean_absolute(), epsilon)[0])
    return None if math.isnan(mae) else mae


def _value(
    experiment: Experiment, curve: Measured, epsilon: float
) -> tuple[float | None, float | None, float | None, Over]:
    """The value that is shown, the two ends of its interval, and what the interval is resampled over."""
    if not is_complete(curve):
        return None, None, None, "none"
    finite = np.where(np.isfinite(curve.values), curve.values, np.nan)
    value = float(value_range(curve.epsilons, finite.mean(axis=(0, 1)), epsilon)[0])
    drawn = replicate_means(finite, rng=curve_stream(experiment, curve), partition=experiment.partition)
    if math.isnan(value) or drawn.over == "none":
        return math.inf if math.isnan(value) else value, None, None, "none"
    _, least, most = value_range(curve.epsilons, drawn.curves, epsilon)
    return value, float(percentile_interval(least)[0]), float(percentile_interval(most)[1]), drawn.over

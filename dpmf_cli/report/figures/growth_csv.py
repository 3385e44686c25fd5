"""What privacy costs while ratings accumulate, as tidy CSV: a row per portion of the ratings, curve and ε.

The loss is the RMSE of an algorithm minus that of its twin without noise, on the same fold of the same ratings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.crossings import curve_stream, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured, Stage
from dpmf_cli.evaluation.statistics import percentile_interval, replicate_means, sd_over_folds
from dpmf_cli.report.figures.curves_csv import exact
from dpmf_cli.terminal import csv_text

COLUMNS = (
    "label",
    "joint",
    "portion",
    "ratings",
    "users",
    "days",
    "epsilon",
    "theta",
    "delta",
    "rmse",
    "sd_folds",
    "twin_rmse",
    "loss",
    "loss_sd",
    "loss_low",
    "loss_high",
)


@dataclass(frozen=True)
class Loss:
    """What the noise of a curve costs at each ε: (E,) each, in rating units; NaN where unknown.

    sd          over folds and runs
    low, high   95 % interval of the mean, computed as for a curve
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def loss_of(experiment: Experiment, curve: Measured) -> Loss:
    """Returns the loss of a curve, paired by fold with its twin."""
    twin = curve.without_noise()
    if twin is None or not is_complete(curve):
        return Loss(*np.full((4, len(curve.epsilons)), np.nan))
    loss = curve.rmse - twin.rmse
    loss[:, :, ~np.isfinite(loss).all(axis=(0, 1))] = np.nan
    drawn = replicate_means(loss, rng=curve_stream(experiment, curve), partition=experiment.partition)
    ends = percentile_interval(drawn.curves) if drawn.over != "none" else np.full((2, loss.shape[2]), np.nan)
    cells = loss.shape[0] * loss.shape[1]
    sd = loss.std(axis=(0, 1), ddof=1) if cells > 1 else np.full(loss.shape[2], np.nan)
    return Loss(loss.mean(axis=(0, 1)), sd, *ends)


def growth_csv(experiment: Experiment) -> str:
    """Returns a row per portion, curve and ε, then the portion's baselines; columns `COLUMNS`, lines end in \\n.

    `rmse` is the mean over folds and runs, and `sd_folds` its standard deviation over folds. `twin_rmse` is the RMSE
    of the algorithm without noise. The loss is as in `Loss`. An unknown figure is empty.
    """
    rows: list[Sequence[str]] = [COLUMNS]
    for stage in experiment.growth.stages if experiment.growth else ():
        for measured in (*stage.curves, *stage.baselines):
            rows += _rows(experiment, stage, measured)
    return csv_text(rows)


def _rows(experiment: Experiment, stage: Stage, measured: Measured) -> Iterator[list[str]]:
    portion, points = stage.portion, len(measured.epsilons)
    rmse, sd = np.full((2, points), np.nan)
    if is_complete(measured):
        with np.errstate(invalid="ignore"):
            rmse, sd = measured.mean(), sd_over_folds(measured.rmse)
    twin = np.nan if measured.twin is None else float(measured.twin.mean())
    thetas = np.full(points, np.nan) if measured.thetas is None else measured.thetas
    loss = loss_of(experiment, measured)
    days = "" if portion.days is None else exact(portion.days)
    head = [
        measured.label,
        str(measured.joint).lower(),
        exact(portion.share),
        str(portion.ratings),
        str(portion.users),
        days,
    ]
    for at in range(points):
        numbers = [measured.epsilons[at], thetas[at], measured.delta, rmse[at], sd[at], twin]
        yield [*head, *map(exact, [*numbers, loss.mean[at], loss.sd[at], loss.low[at], loss.high[at]])]

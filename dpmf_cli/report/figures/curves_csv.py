"""An experiment's curves as tidy CSV, one row per curve and ε: the numbers behind the figure."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.levels import band
from dpmf_cli.evaluation.statistics import sd_over_folds, sd_over_runs
from dpmf_cli.terminal import csv_text

COLUMNS = (
    "dataset",
    "neighbours",
    "mode",
    "algorithm",
    "label",
    "joint",
    "epsilon",
    "theta",
    "delta",
    "rmse",
    "sd_folds",
    "sd_runs",
    "low",
    "high",
    "claimed",
    "provable",
    "folds",
    "runs",
)


def curves_csv(experiment: Experiment) -> str:
    """Returns curves, then baselines, with the columns `COLUMNS`, and `mae` if it was measured; lines end in \\n.

    If another metric than RMSE is shown, it takes the place of `rmse`. The means of the other metrics follow.

    `sd_folds` and `sd_runs` are standard deviations over folds and over the runs of a fold; `low` and `high`
    are the 95 % interval of the mean (`evaluation.statistics`). Floats are written by `repr`, so the same results
    give the same bytes and no digit is lost. A figure that does not exist (one fold, one run, a task without
    a result) is left empty.
    """
    everything = (*experiment.curves, *experiment.baselines)
    measures_mae = not all(np.isnan(each.mean_absolute()).all() for each in everything)
    columns = [experiment.metric.key if name == "rmse" else name for name in COLUMNS]
    others = [metric.key for metric in experiment.metrics if metric != experiment.metric]
    rows: list[Sequence[str]] = [[*columns, *(["mae"] if measures_mae else []), *others]]
    for measured in everything:
        rows += _rows(experiment, measured, measures_mae)
        twin = measured.without_noise()
        if twin is not None:
            rows += _rows(experiment, twin, measures_mae)
    return csv_text(rows)


def _rows(experiment: Experiment, measured: Measured, measures_mae: bool) -> Iterator[list[str]]:
    folds, runs, points = measured.values.shape
    nothing = np.full(points, np.nan)
    figures, absolute = np.full((5, points), np.nan), nothing
    if is_complete(measured):
        with np.errstate(invalid="ignore"):
            low, high = band(experiment, measured)
            spread = sd_over_folds(measured.values), sd_over_runs(measured.values)
        figures, absolute = np.stack([measured.mean(), *spread, low, high]), measured.mean_absolute()
    others = [
        measured.of(metric).mean(axis=(0, 1)) if measured.has(metric) else nothing
        for metric in experiment.metrics
        if metric != experiment.metric
    ]
    names = [experiment.dataset, measured.neighbours, measured.mode, measured.algorithm, measured.label]
    names.append(str(measured.joint).lower())
    thetas = nothing if measured.thetas is None else measured.thetas
    before = [measured.epsilons, thetas, np.full(points, measured.delta), *figures]
    spent, last = [measured.claimed, measured.provable], [*([absolute] if measures_mae else []), *others]
    for at in range(points):
        numbers, more = ([exact(column[at]) for column in columns] for columns in ([*before, *spent], last))
        yield [*names, *numbers, str(folds), str(runs), *more]


def exact(value: float) -> str:
    """Writes a number without loss of digits; "" for NaN."""
    return "" if math.isnan(value) else repr(float(value))

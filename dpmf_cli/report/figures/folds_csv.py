"""All measurements as tidy CSV, one row per curve, ε, fold and run: for statistics of your own."""

from collections.abc import Iterator, Sequence

import numpy as np

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.report.figures.curves_csv import exact
from dpmf_cli.terminal import csv_text

COLUMNS = (
    *("neighbours", "mode", "algorithm", "label", "joint"),
    *("epsilon", "theta", "delta", "fold", "run", "rmse", "status"),
)


def folds_csv(experiment: Experiment) -> str:
    """Returns curves, then baselines, each followed by its twin without noise; columns `COLUMNS`, lines end in \\n.

    Columns of all other metrics that were measured follow `rmse`.

    Folds and runs count from 0, as in the names of tasks. `status` is "measured", "diverged" if the RMSE is
    infinite, or "missing" if the task has no result and the RMSE is empty.
    """
    *before, status = COLUMNS
    rows: list[Sequence[str]] = [[*before, *(metric.key for metric in experiment.metrics[1:]), status]]
    for measured in (*experiment.curves, *experiment.baselines, *experiment.aside):
        twin = measured.without_noise()
        for each in (measured,) if twin is None else (measured, twin):
            rows += _rows(each, experiment.metrics)
    return csv_text(rows)


def _rows(measured: Measured, metrics: Sequence[Metric]) -> Iterator[list[str]]:
    names = [measured.neighbours, measured.mode, measured.algorithm, measured.label]
    thetas = np.full(len(measured.epsilons), np.nan) if measured.thetas is None else measured.thetas
    grid = [
        [exact(epsilon), exact(theta), exact(measured.delta)]
        for epsilon, theta in zip(measured.epsilons, thetas, strict=True)
    ]
    joint = str(measured.joint).lower()
    columns = [measured.of(metric) if measured.has(metric) else None for metric in metrics]
    for (fold, run, at), value in np.ndenumerate(measured.values if measured.scores_only else measured.rmse):
        status = "missing" if np.isnan(value) else "measured" if np.isfinite(value) else "diverged"
        found = ("" if column is None else exact(float(column[fold, run, at])) for column in columns)
        yield [*names, joint, *grid[at], str(fold), str(run), *found, status]

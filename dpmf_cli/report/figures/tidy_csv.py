"""The numbers behind the figures as tidy CSV. Unknown figures are empty cells, and no digit is lost."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured, Stage
from dpmf_cli.evaluation.levels import band
from dpmf_cli.evaluation.statistics import sd_over_folds, sd_over_runs
from dpmf_cli.report.figures.charts import error_moments, loss_of
from dpmf_cli.report.figures.shown import with_twins
from dpmf_cli.terminal import csv_text, exact

Rows = Iterator[tuple[object, ...]]


def rows_of(shape: tuple[int, ...], *columns: object) -> Rows:
    """Returns rows of columns: arrays that are broadcast to `shape`, and words and numbers that all rows share."""
    return zip(*(_cells(shape, each) for each in columns), strict=True)


def _cells(shape: tuple[int, ...], column: object) -> list[object]:
    values = column if isinstance(column, np.ndarray) else np.array(column, dtype=object)
    return [
        exact(each) if isinstance(each, float) else each
        for each in np.broadcast_to(values, shape).ravel().tolist()
    ]


def _thetas(measured: Measured) -> NDArray[np.float64]:
    return np.full(len(measured.epsilons), np.nan) if measured.thetas is None else measured.thetas


def _names(measured: Measured) -> tuple[str, ...]:
    joint = str(measured.joint).lower()
    return measured.neighbours, measured.mode, measured.algorithm, measured.label, joint


def curves_csv(experiment: Experiment) -> str:
    """Returns a row per curve and ε, then the baselines; `mae` if it was measured; lines end in \\n.

    If another metric than RMSE is shown, it takes the place of `rmse`. The means of the other metrics follow.

    `sd_folds` and `sd_runs` are standard deviations over folds and over the runs of a fold; `low` and `high`
    are the 95 % interval of the mean (`evaluation.statistics`). Floats are written by `repr`, so the same results
    give the same bytes. A figure that does not exist (one fold, one run, a task without a result) is left empty.
    """
    everything = (*experiment.curves, *experiment.baselines)
    mae = [] if all(np.isnan(each.mean_absolute()).all() for each in everything) else ["mae"]
    others = [metric.key for metric in experiment.metrics if metric != experiment.metric]
    header = [
        *("dataset", "neighbours", "mode", "algorithm", "label", "joint", "epsilon", "theta", "delta"),
        *(
            experiment.metric.key,
            "sd_folds",
            "sd_runs",
            "low",
            "high",
            "claimed",
            "provable",
            "folds",
            "runs",
        ),
    ]
    rows = (
        row
        for each in with_twins(everything)
        for row in _curve_rows(experiment, each, measures_mae=bool(mae))
    )
    return csv_text([[*header, *mae, *others], *rows])


def _curve_rows(experiment: Experiment, measured: Measured, *, measures_mae: bool) -> Rows:
    folds, runs, points = measured.values.shape
    nothing = np.full(points, np.nan)
    figures, absolute = np.full((5, points), np.nan), nothing
    if is_complete(measured):
        with np.errstate(invalid="ignore"):
            spread = sd_over_folds(measured.values), sd_over_runs(measured.values)
            figures = np.stack([measured.mean(), *spread, *band(experiment, measured)])
        absolute = measured.mean_absolute()
    others = [
        measured.of(metric).mean(axis=(0, 1)) if measured.has(metric) else nothing
        for metric in experiment.metrics
        if metric != experiment.metric
    ]
    return rows_of(
        (points,), experiment.dataset, *_names(measured), measured.epsilons, _thetas(measured), measured.delta,
        *figures, measured.claimed, measured.provable, folds, runs, *([absolute] if measures_mae else []), *others,
    )  # fmt: skip


def folds_csv(experiment: Experiment) -> str:
    """Returns a row per curve, ε, fold and run, then the baselines, each followed by its twin without noise.

    Columns of all other metrics that were measured follow `rmse`.

    Folds and runs count from 0, as in the names of tasks. `status` is "measured", "diverged" if the RMSE is
    infinite, or "missing" if the task has no result and the RMSE is empty.
    """
    header = [
        "neighbours",
        "mode",
        "algorithm",
        "label",
        "joint",
        "epsilon",
        "theta",
        "delta",
        "fold",
        "run",
        "rmse",
    ]
    rows: list[tuple[object, ...]] = []
    for each in with_twins((*experiment.curves, *experiment.baselines, *experiment.aside)):
        shown = each.values if each.scores_only else each.rmse
        fold, run, _ = np.indices(shown.shape)
        status = np.where(np.isnan(shown), "missing", np.where(np.isfinite(shown), "measured", "diverged"))
        columns = [each.of(metric) if each.has(metric) else "" for metric in experiment.metrics]
        rows += rows_of(
            shown.shape, *_names(each), each.epsilons, _thetas(each), each.delta, fold, run, *columns, status
        )
    return csv_text([[*header, *(metric.key for metric in experiment.metrics[1:]), "status"], *rows])


def growth_csv(experiment: Experiment) -> str:
    """Returns a row per portion of the ratings, curve and ε, then the portion's baselines; lines end in \\n.

    `rmse` is the mean over folds and runs, and `sd_folds` its standard deviation over folds. `twin_rmse` is the RMSE
    of the algorithm without noise. The loss is as in `charts.Loss`. An unknown figure is empty.
    """
    header = (
        *("label", "joint", "portion", "ratings", "users", "days", "epsilon", "theta", "delta", "rmse"),
        *("sd_folds", "twin_rmse", "loss", "loss_sd", "loss_low", "loss_high"),
    )
    rows = (
        row
        for stage in (experiment.growth.stages if experiment.growth else ())
        for measured in (*stage.curves, *stage.baselines)
        for row in _growth_rows(experiment, stage, measured)
    )
    return csv_text([header, *rows])


def _growth_rows(experiment: Experiment, stage: Stage, measured: Measured) -> Rows:
    points, portion = len(measured.epsilons), stage.portion
    rmse, sd = np.full((2, points), np.nan)
    if is_complete(measured):
        with np.errstate(invalid="ignore"):
            rmse, sd = measured.mean(), sd_over_folds(measured.rmse)
    twin = np.nan if measured.twin is None else float(measured.twin.mean())
    return rows_of(
        (points,), measured.label, str(measured.joint).lower(), portion.share, portion.ratings, portion.users,
        "" if portion.days is None else portion.days, measured.epsilons, _thetas(measured), measured.delta,
        rmse, sd, twin, *loss_of(experiment, measured),
    )  # fmt: skip


def error_cdf_csv(experiment: Experiment) -> str:
    """Returns one row per curve or baseline, ε and x: the fraction of absolute errors that are at most x.

    The fraction has its mean and standard deviation over folds × runs. They are empty if a task has no result; the
    deviation of a single number is empty too.
    """
    found = with_twins((*experiment.curves, *experiment.baselines))
    rows = (row for each in found for row in _error_rows(each, each.label))
    return csv_text([("label", "epsilon", "x", "mean", "sd"), *rows])


def swept_error_cdf_csv(experiment: Experiment, parameter: str) -> str:
    """Returns the rows of `error_cdf_csv` for entries that sweep the parameter, each with the parameter's value."""
    found = with_twins((*experiment.curves, *experiment.baselines))
    swept = ((each, each.swept[1]) for each in found if each.swept and each.swept[0] == parameter)
    rows = (row for each, value in swept for row in _error_rows(each, each.line, float(value)))
    return csv_text([("line", parameter, "epsilon", "x", "mean", "sd"), *rows])


def _error_rows(measured: Measured, *names: object) -> Rows:
    mean, sd = error_moments(measured)
    return rows_of(mean.shape, *names, measured.epsilons[:, None], np.array(measured.limits), mean, sd)

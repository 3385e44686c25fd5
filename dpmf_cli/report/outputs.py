"""The files that a run writes beside its manifest: curves, crossings, the ledger, figures and macros.

CSV files are tidy: floats are written by `repr`, so that equal results give equal bytes. A figure that does not exist
(one fold, one run, a task without a result) is an empty field.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpmf_cli.core.terminal import csv_text, exact
from dpmf_cli.evaluation.crossings import Crossing, band, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.metrics import BESIDE
from dpmf_cli.evaluation.statistics import sd_over_folds, sd_over_runs
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.experiment.results.manifest import Maker
from dpmf_cli.privacy.protection import GUARANTEES
from dpmf_cli.report.figures import charts
from dpmf_cli.report.figures.drawings import drawings
from dpmf_cli.report.figures.style import FORMATS
from dpmf_cli.report.tables.crossings import crossings_table, figure_macros, noise_free_table
from dpmf_cli.report.tables.layout import draw
from dpmf_cli.report.tables.ledgers import ledger_csv, records_table
from dpmf_cli.report.tables.papers import learned_nothing_table


def outputs(collected: Collected, crossings: Sequence[Crossing]) -> dict[str, Maker]:
    """The makers of an experiment's files by name: curves, crossings, ledger, figures and macros. The same results
    give the same bytes.

    Curves, crossings and figures are of the metric that the config wants shown.
    """
    experiment, shown = collected.experiment, collected.shown
    files = {
        "curves.csv": curves_csv(shown),
        "folds.csv": folds_csv(shown),
        "crossings.csv": draw(crossings_table(crossings), "csv"),
        "crossings.md": draw(crossings_table(crossings), "md"),
        "figures.tex": figure_macros(shown, crossings),
        "ledger.csv": ledger_csv(collected.ledgers),
    }
    if any(curve.noise_free is not None for curve in experiment.curves):
        files["without_noise.md"] = draw(noise_free_table(shown), "md")
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        files["local_mean.md"] = draw(learned_nothing, "md")
    if charts.has_error_cdf(experiment):
        found = charts.with_noise_free((*experiment.curves, *experiment.baselines))
        files["error_cdf.csv"] = _written({"label": each.label, **_errors(each)} for each in found)
        for parameter in charts.swept_parameters(experiment):
            files[f"error_cdf-{parameter}.csv"] = _written(
                {"line": each.line, parameter: float(each.swept[1]), **_errors(each)}
                for each in found
                if each.swept and each.swept[0] == parameter
            )
    if any(curve.records for curve in experiment.curves):
        files["records.csv"] = draw(records_table(experiment.curves), "csv")
    if experiment.growth:
        files["growth.csv"] = growth_csv(experiment)
    makers: dict[str, Maker] = {name: text.encode for name, text in files.items()}
    for name, drawing in drawings(shown).items():  # `dpmf plot` draws PDF too
        makers |= {f"{name}.{form}": partial(drawing, form) for form in ("png", "svg")}
    return makers


def never_made(experiment: Experiment) -> set[str]:
    """Names of figure files that are out of date: an older version or an older config may have drawn them.

    They mix kinds of guarantee, do not name their kind, or name a kind that no curve has. A figure that only waits
    for results is not among them.
    """

    def filled(measured: Measured) -> Measured:  # with made-up results where some are missing
        return measured if is_complete(measured) else replace(measured.changed(np.ones_like), missing=0)

    complete = experiment.changed(lambda found: map(filled, found))
    kinds = ("", *(f"_{guarantee.key}" for guarantee in GUARANTEES))
    names = {name + kind for name in charts.figures_of(charts.legible(complete)) for kind in kinds}
    return {f"{name}.{form}" for name in names - set(drawings(complete)) for form in FORMATS}


Columns = dict[str, object]
"""Cells by the name of their column: an array, or what all rows share. The arrays of one table part are broadcast."""


def _written(parts: Iterable[Columns]) -> str:
    """The parts of a table, all with the same columns, one below the other. Lines end in \\n."""
    header: list[str] = []
    rows: list[tuple[object, ...]] = []
    for columns in parts:
        header = list(columns)
        arrays = np.broadcast_arrays(
            *(
                each if isinstance(each, np.ndarray) else np.array(each, dtype=object)
                for each in columns.values()
            )
        )
        cells = ([exact(c) if isinstance(c, float) else c for c in each.ravel().tolist()] for each in arrays)
        rows += zip(*cells, strict=True)
    return csv_text([header, *rows])


def _name(measured: Measured, keys: str = "neighbours mode algorithm label") -> Columns:
    return {**{key: getattr(measured, key) for key in keys.split()}, "joint": str(measured.joint).lower()}


def _grid(measured: Measured) -> Columns:
    thetas = np.nan if measured.thetas is None else measured.thetas
    return {"epsilon": measured.epsilons, "theta": thetas, "delta": measured.delta}


def curves_csv(experiment: Experiment) -> str:
    """A row per curve and ε, then the baselines; metrics beside RMSE if they were measured.

    If another metric than RMSE is shown, it takes the place of `rmse`, and the means of the other metrics follow.
    `sd_folds` and `sd_runs` are standard deviations over folds and over the runs of a fold; `low` and `high` are the
    95 % interval of the mean (`evaluation.statistics`).
    """
    everything = (*experiment.curves, *experiment.baselines)
    beside = [
        metric for metric in BESIDE if not all(np.isnan(each.mean(metric)).all() for each in everything)
    ]

    def columns(measured: Measured) -> Columns:
        folds, runs, points = measured.values.shape
        figures, complete = np.full((5, points), np.nan), is_complete(measured)
        if complete:
            with np.errstate(invalid="ignore"):
                spread = sd_over_folds(measured.values), sd_over_runs(measured.values)
                figures = np.stack([measured.mean(), *spread, *band(experiment, measured)])
        names = (experiment.metric.key, "sd_folds", "sd_runs", "low", "high")
        return {
            "dataset": experiment.dataset,
            **_name(measured),
            **_grid(measured),
            **dict(zip(names, figures, strict=True)),
            "claimed": measured.claimed,
            "provable": measured.provable,
            "folds": folds,
            "runs": runs,
            **{metric.key: measured.mean(metric) if complete else np.nan for metric in beside},
            **{
                metric.key: measured.mean(metric) if measured.has(metric) else np.nan
                for metric in experiment.metrics
                if metric != experiment.metric
            },
        }

    return _written(map(columns, charts.with_noise_free(everything)))


def folds_csv(experiment: Experiment) -> str:
    """A row per curve, ε, fold and run, then the baselines, each followed by its noise-free run.

    Columns of all other metrics that were measured follow `rmse`. Folds and runs count from 0, as in the names of
    tasks. `status` is "measured", "diverged" if the RMSE is infinite, or "missing" if the task has no result.
    """

    def columns(measured: Measured) -> Columns:
        shown = measured.values if measured.scores_only else measured.rmse
        fold, run, _ = np.indices(shown.shape)
        metrics = {
            each.key: measured.of(each) if measured.has(each) else np.nan for each in experiment.metrics
        }
        status = np.where(np.isnan(shown), "missing", np.where(np.isfinite(shown), "measured", "diverged"))
        return {**_name(measured), **_grid(measured), "fold": fold, "run": run, **metrics, "status": status}

    return _written(
        map(columns, charts.with_noise_free((*experiment.curves, *experiment.baselines, *experiment.aside)))
    )


def growth_csv(experiment: Experiment) -> str:
    """A row per portion of the ratings, curve and ε, then the portion's baselines.

    `rmse` is the mean over folds and runs, and `sd_folds` its standard deviation over folds. `twin_rmse` is the RMSE
    of the algorithm without noise. The loss is that of `loss_of`. An unknown figure is empty.
    """
    parts: list[Columns] = []
    for stage in experiment.growth:
        portion = stage.portion
        size = {"portion": portion.share, "ratings": portion.ratings, "users": portion.users}
        for measured in (*stage.curves, *stage.baselines):
            rmse, sd = np.full((2, len(measured.epsilons)), np.nan)
            if is_complete(measured):
                with np.errstate(invalid="ignore"):
                    rmse, sd = measured.mean(), sd_over_folds(measured.rmse)
            noise_free, loss = measured.noise_free, charts.loss_of(experiment, measured)
            parts.append(
                {
                    **_name(measured, "label"),
                    **size,
                    "days": portion.days,
                    **_grid(measured),
                    "rmse": rmse,
                    "sd_folds": sd,
                    "twin_rmse": np.nan if noise_free is None else float(noise_free["rmse"].mean()),
                    **dict(zip(("loss", "loss_sd", "loss_low", "loss_high"), loss, strict=True)),
                }
            )
    return _written(parts)


def _errors(measured: Measured) -> Columns:
    """For each ε and x, the fraction of absolute errors that are at most x, over folds × runs."""
    mean, sd = charts.error_moments(measured)
    return {"epsilon": measured.epsilons[:, None], "x": np.array(measured.limits), "mean": mean, "sd": sd}

"""Makes the files that a run writes beside its manifest: curves, crossings, the ledger, figures and macros."""

from collections.abc import Sequence
from functools import partial

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.experiment.results.manifest import Maker
from dpmf_cli.report.figures.charts import has_error_cdf, swept_parameters
from dpmf_cli.report.figures.drawings import drawings, never_drawn
from dpmf_cli.report.figures.style import FORMATS
from dpmf_cli.report.figures.tidy_csv import (
    curves_csv,
    error_cdf_csv,
    folds_csv,
    growth_csv,
    swept_error_cdf_csv,
)
from dpmf_cli.report.tables.baselines import twins_table
from dpmf_cli.report.tables.crossings import crossings_table, figure_macros
from dpmf_cli.report.tables.layout import draw
from dpmf_cli.report.tables.ledgers import ledger_csv, records_table
from dpmf_cli.report.tables.local import learned_nothing_table

FORMS_OF_RUN = ("png", "svg")
"""The formats in which every run draws its figures; `dpmf plot` draws PDF too."""


def outputs(collected: Collected, crossings: Sequence[Crossing]) -> dict[str, Maker]:
    """Returns the makers of an experiment's files by name. The same results give the same bytes.

    The files are curves, crossings, ledger, figures and macros. Curves, crossings and figures are of the metric that
    the config wants shown.
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
    if any(curve.twin is not None for curve in experiment.curves):
        files["without_noise.md"] = draw(twins_table(shown), "md")
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        files["local_mean.md"] = draw(learned_nothing, "md")
    if has_error_cdf(experiment):
        files["error_cdf.csv"] = error_cdf_csv(experiment)
        for parameter in swept_parameters(experiment):
            files[f"error_cdf-{parameter}.csv"] = swept_error_cdf_csv(experiment, parameter)
    if any(curve.records for curve in experiment.curves):
        files["records.csv"] = draw(records_table(experiment.curves), "csv")
    if experiment.growth:
        files["growth.csv"] = growth_csv(experiment)
    makers: dict[str, Maker] = {name: text.encode for name, text in files.items()}
    for name, drawing in drawings(shown).items():
        makers |= {f"{name}.{form}": partial(drawing, form) for form in FORMS_OF_RUN}
    return makers


def never_made(experiment: Experiment) -> set[str]:
    """Returns the names of figure files that an older version or an older config may have left."""
    return {f"{name}.{form}" for name in never_drawn(experiment) for form in FORMATS}

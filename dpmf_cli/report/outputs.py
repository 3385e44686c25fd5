"""What a run writes beside its manifest: curves, crossings, the ledger, and figures."""

from pathlib import Path

from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.papers.printed_cells import beside_print
from dpmf_cli.report.figures.curves_csv import curves_csv
from dpmf_cli.report.figures.error_cdf import error_cdf_csv, has_error_cdf, swept_error_cdf_csv
from dpmf_cli.report.figures.growth_csv import growth_csv
from dpmf_cli.report.figures.style import FORMATS
from dpmf_cli.report.figures.sweeps import swept_parameters
from dpmf_cli.report.figures.which import drawings, never_drawn
from dpmf_cli.report.tables.baselines import twins_text
from dpmf_cli.report.tables.crossings import crossings_table
from dpmf_cli.report.tables.layout import markdown
from dpmf_cli.report.tables.ledgers import ledger_csv, records_csv
from dpmf_cli.report.tables.local import learned_nothing_table
from dpmf_cli.results.collect import Collected
from dpmf_cli.results.store import write_atomically

FORMS_OF_RUN = ("png", "svg")
"""The figures that every run draws; `dpmf plot` draws PDF too."""


def write_outputs(folder: Path, collected: Collected) -> list[Crossing]:
    """Curves, crossings, ledger and figures of an experiment; the same results give the same bytes."""
    experiment = collected.experiment
    crossings = beside_print(find_crossings(experiment))
    files = {
        "curves.csv": curves_csv(experiment).encode(),
        "crossings.csv": crossings_table(crossings, "csv").encode(),
        "crossings.md": crossings_table(crossings, "md").encode(),
        "ledger.csv": ledger_csv(collected.ledgers).encode(),
    }
    if any(curve.twin is not None for curve in experiment.curves):
        files["without_noise.md"] = markdown(twins_text(experiment)).encode()
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        files["local_mean.md"] = markdown(learned_nothing).encode()
    if has_error_cdf(experiment):
        files["error_cdf.csv"] = error_cdf_csv(experiment).encode()
        for parameter in swept_parameters(experiment):
            files[f"error_cdf-{parameter}.csv"] = swept_error_cdf_csv(experiment, parameter).encode()
    if any(curve.records for curve in experiment.curves):
        files["records.csv"] = records_csv(experiment.curves).encode()
    if experiment.growth:
        files["growth.csv"] = growth_csv(experiment).encode()
    for name, data in files.items():
        write_atomically(folder / name, data)
    for name, draw in drawings(experiment).items():
        for form in FORMS_OF_RUN:
            write_atomically(folder / f"{name}.{form}", draw(form))
    for name in never_drawn(experiment):
        for form in FORMATS:
            (folder / f"{name}.{form}").unlink(missing_ok=True)
    return crossings

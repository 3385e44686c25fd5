"""What the page shows of one experiment: charts with their values, tables, and their provenance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from dpmf_cli.audit.job import of_experiment
from dpmf_cli.config.names import whole_name
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.printed_cells import beside_print
from dpmf_cli.report.advice import paragraphs
from dpmf_cli.report.html.agreement import Agreement
from dpmf_cli.report.html.chart import Chart
from dpmf_cli.report.html.charts import charts_of
from dpmf_cli.report.html.compared import Row, baseline_row, crossing_row
from dpmf_cli.report.html.provenance import Provenance, provenance_of
from dpmf_cli.report.html.svg import draw, place_of
from dpmf_cli.report.tables.baselines import baseline_rows
from dpmf_cli.report.tables.crossings import crossing_notes
from dpmf_cli.report.tables.frontier import found_in, frontier_text
from dpmf_cli.report.tables.layout import TextTable
from dpmf_cli.report.tables.ledgers import ledger_text, records_text
from dpmf_cli.report.tables.local import improvements_of, improvements_text, learned_nothing_table
from dpmf_cli.results.collect import Collected
from dpmf_cli.results.folders import collect_folder
from dpmf_cli.results.manifest import read_manifest


@dataclass(frozen=True)
class Values:
    """A chart's numbers as a table: a row for each x, with its place in the picture, and a column for each line."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, float, tuple[tuple[str, str], ...]], ...]
    levels: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Drawn:
    """A chart ready for the page."""

    chart: Chart
    svg: Markup
    values: Values


@dataclass(frozen=True)
class ExperimentView:
    """One experiment of the page. `stands_for` is the name of the config that it reduces, or its own name.

    Charts, tables and `rows` are of the metric that the config wants shown; `crossings` and advice are of RMSE.
    """

    collected: Collected
    crossings: list[Crossing]
    provenance: Provenance
    charts: tuple[Drawn, ...]
    baselines: tuple[Row, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    tables: tuple[tuple[str, TextTable], ...]
    missing: int

    @property
    def name(self) -> str:
        return self.collected.experiment.name

    @property
    def stands_for(self) -> str:
        return whole_name(self.name)

    @property
    def is_reduced(self) -> bool:
        return self.stands_for != self.name

    @property
    def is_held_against_print(self) -> bool:
        return any(row.agreement != Agreement.UNPRINTED for row in (*self.rows, *self.baselines))


def view_of(folder: Path) -> ExperimentView:
    """Returns everything in a results folder. Raises DpmfError as `collect_folder` does."""
    collected = collect_folder(folder)
    experiment = collected.shown
    crossings = beside_print(find_crossings(collected.experiment))
    shown = crossings if experiment is collected.experiment else find_crossings(experiment)
    return ExperimentView(
        collected,
        crossings,
        provenance_of(folder, read_manifest(folder)),
        tuple(map(drawn, charts_of(experiment))),
        tuple(map(baseline_row, baseline_rows(experiment))),
        tuple(map(crossing_row, shown)),
        tuple(crossing_notes(shown)),
        _tables(folder, collected),
        sum(each.missing for each in experiment.measured()),
    )


def _tables(folder: Path, collected: Collected) -> tuple[tuple[str, TextTable], ...]:
    experiment = collected.experiment
    audits = of_experiment(folder)
    ledger = ledger_text(collected.ledgers, experiment.curves, audits)
    beside = "claimed beside provable and audited" if audits else "claimed beside provable"
    found = [(f"Privacy ledger: {beside}", ledger)]
    if any(curve.records for curve in experiment.curves):
        found.append(("What the records spend", records_text(experiment.curves)))
    if (nothing := learned_nothing_table(experiment)) is not None:
        found.append(("Where nothing was learned", nothing))
    envelopes = [each for each in found_in([experiment]) if len(each.members) > 1]
    if envelopes:
        found.append(("Frontier: what leads at each ε", frontier_text(envelopes, [experiment])))
    improvements = improvements_text(list(improvements_of([experiment])))
    if improvements.groups:
        found.append(("Improvements", improvements))
    return tuple((title, table) for title, table in found if table.groups)


def advice_on(views: Sequence[ExperimentView]) -> tuple[str, ...]:
    """Says what the results of these experiments show, as paragraphs and items of lists."""
    experiments = [view.collected.experiment for view in views]
    return tuple(paragraphs(experiments, [crossing for view in views for crossing in view.crossings]))


def drawn(chart: Chart) -> Drawn:
    """Returns a chart with its picture and its table of values."""
    return Drawn(chart, draw(chart), _values(chart))


def _values(chart: Chart) -> Values:
    columns = [{point[0]: point for point in line.points} for line in chart.lines]
    rows = tuple(
        (f"{x:g}", place_of(chart, x), tuple(_cell(column.get(x)) for column in columns))
        for x in chart.places
    )
    levels = tuple((level.name, f"{level.y:.4f}") for level in chart.levels)
    return Values(tuple(line.name for line in chart.lines), rows, levels)


def _cell(point: tuple[float, float, float, float] | None) -> tuple[str, str]:
    """Returns (mean, interval); "" for a part that is missing."""
    if point is None or math.isnan(point[1]):
        return ("diverged" if point is not None else "", "")
    _, mean, low, high = point
    interval = f"[{_short(low)}, {_short(high)}]" if math.isfinite(low) and low != high else ""
    return _short(mean), interval


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else significant(value, 5)

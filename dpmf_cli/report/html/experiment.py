"""What the page shows of one experiment: charts with their values, tables, and their provenance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.audit.job import of_experiment
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.experiment.config.loading import whole_name
from dpmf_cli.experiment.results.collect import Collected
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.experiment.results.manifest import read_manifest
from dpmf_cli.papers.printed_cells import beside_print
from dpmf_cli.report.advice import paragraphs
from dpmf_cli.report.figures.drawings import charts_of
from dpmf_cli.report.html.compared import Agreement, Row, baseline_row, crossing_row
from dpmf_cli.report.html.svg import Drawn
from dpmf_cli.report.tables.baselines import baseline_rows
from dpmf_cli.report.tables.crossings import crossing_notes
from dpmf_cli.report.tables.layout import TextTable
from dpmf_cli.report.tables.ledgers import ledger_table, records_table
from dpmf_cli.report.tables.local import improvements_table, learned_nothing_table
from dpmf_cli.report.tables.ranked import found_in, frontier_table


@dataclass(frozen=True)
class ExperimentView:
    """One experiment of the page, with its folder's manifest.

    Charts, tables and `rows` are of the metric that the config wants shown; `crossings` and advice are of RMSE.
    """

    folder: Path
    manifest: dict[str, Any]
    collected: Collected
    crossings: list[Crossing]
    charts: tuple[Drawn, ...]
    baselines: tuple[Row, ...]
    rows: tuple[Row, ...]
    notes: Sequence[str]
    tables: tuple[tuple[str, TextTable], ...]

    @property
    def name(self) -> str:
        return self.collected.experiment.name

    @property
    def stands_for(self) -> str:
        """The name of the config that it reduces, or its own name."""
        return whole_name(self.name)

    @property
    def config(self) -> str:
        """The config as resolved, as YAML."""
        return yaml.safe_dump(self.manifest["config"], allow_unicode=True, sort_keys=False, width=100)

    @property
    def missing(self) -> int:
        return sum(each.missing for each in self.collected.shown.measured())

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
        folder,
        read_manifest(folder),
        collected,
        crossings,
        tuple(map(Drawn, charts_of(experiment))),
        tuple(map(baseline_row, baseline_rows(experiment))),
        tuple(map(crossing_row, shown)),
        crossing_notes(shown),
        tuple((title, table) for title, table in _tables(folder, collected) if table.groups),
    )


def _tables(folder: Path, collected: Collected) -> Iterator[tuple[str, TextTable]]:
    experiment, audits = collected.experiment, of_experiment(folder)
    beside = " and audited" * bool(audits)
    ledger = ledger_table(collected.ledgers, experiment.curves, audits)
    yield f"Privacy ledger: claimed beside provable{beside}", ledger
    if any(curve.records for curve in experiment.curves):
        yield "What the records spend", records_table(experiment.curves)
    if (nothing := learned_nothing_table(experiment)) is not None:
        yield "Where nothing was learned", nothing
    envelopes = [each for each in found_in([experiment]) if len(each.members) > 1]
    yield "Frontier: what leads at each ε", frontier_table([experiment], envelopes)
    yield "Improvements", improvements_table([experiment])


def advice_on(views: Sequence[ExperimentView]) -> tuple[str, ...]:
    """Says what the results of these experiments show, as paragraphs and items of lists."""
    experiments = [view.collected.experiment for view in views]
    return tuple(paragraphs(experiments, [crossing for view in views for crossing in view.crossings]))

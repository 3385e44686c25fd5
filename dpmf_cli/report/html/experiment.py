"""What the page shows of one experiment: charts with their values, tables, and their provenance."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.audit.job import of_experiment
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.evaluation.numbers import duration
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
class Provenance:
    """`facts` are (name, value) in the order in which they are shown; `config` is the resolved one as YAML."""

    command: str
    checksum: str
    time: str
    facts: tuple[tuple[str, str], ...]
    config: str
    failures: int


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
        tuple(map(Drawn, charts_of(experiment))),
        tuple(map(baseline_row, baseline_rows(experiment))),
        tuple(map(crossing_row, shown)),
        tuple(crossing_notes(shown)),
        _tables(folder, collected),
        sum(each.missing for each in experiment.measured()),
    )


def _tables(folder: Path, collected: Collected) -> tuple[tuple[str, TextTable], ...]:
    experiment = collected.experiment
    audits = of_experiment(folder)
    ledger = ledger_table(collected.ledgers, experiment.curves, audits)
    beside = "claimed beside provable and audited" if audits else "claimed beside provable"
    found = [(f"Privacy ledger: {beside}", ledger)]
    if any(curve.records for curve in experiment.curves):
        found.append(("What the records spend", records_table(experiment.curves)))
    if (nothing := learned_nothing_table(experiment)) is not None:
        found.append(("Where nothing was learned", nothing))
    envelopes = [each for each in found_in([experiment]) if len(each.members) > 1]
    if envelopes:
        found.append(("Frontier: what leads at each ε", frontier_table([experiment], envelopes)))
    improvements = improvements_table([experiment])
    if improvements.groups:
        found.append(("Improvements", improvements))
    return tuple((title, table) for title, table in found if table.groups)


def advice_on(views: Sequence[ExperimentView]) -> tuple[str, ...]:
    """Says what the results of these experiments show, as paragraphs and items of lists."""
    experiments = [view.collected.experiment for view in views]
    return tuple(paragraphs(experiments, [crossing for view in views for crossing in view.crossings]))


def provenance_of(folder: Path, manifest: dict[str, Any]) -> Provenance:
    """Reads a manifest that `collect_folder` has accepted. Facts that an older manifest lacks are left out."""
    config, dataset = manifest["config"], manifest["dataset"]
    command = manifest.get("command") or f"dpmf run configs/{config['name']}.yaml"
    time = _time(manifest)
    git, versions = manifest.get("git"), manifest.get("versions", {})
    code = f"dpmf {versions.get('dpmf', '?')}"
    if git:
        code += f", commit {git['commit'][:12]}" + (" with changes" if git["modified"] else "")
    packages = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "dpmf")
    facts = [
        ("command", command),
        ("results", f"{folder}/"),
        ("config, SHA-256", manifest["config_sha256"]),
        ("seed", str(config["seed"])),
        ("data", f"{dataset['title']}: {dataset['ratings']:,} ratings"),
        ("data, checksum of the ratings", dataset["checksum"]),
        ("time", time),
        ("code", code),
        ("with", packages),
        ("processor", str(manifest.get("cpu", ""))),
        ("written", str(manifest.get("written", ""))),
    ]
    if dataset.get("test_checksum"):
        facts.insert(6, ("test set, checksum", dataset["test_checksum"]))
    return Provenance(
        command,
        dataset["checksum"],
        time,
        tuple((name, value) for name, value in facts if value),
        yaml.safe_dump(config, allow_unicode=True, sort_keys=False, width=100),
        len(manifest.get("failures", ())),
    )


def _time(manifest: dict[str, Any]) -> str:
    """Says how long the experiment's tasks took, over all runs of the config that ended."""
    spent = manifest.get("spent")
    if not spent:
        last = manifest.get("last_run", {})
        return (
            f"{duration(last['wall_seconds'])} in its last run" if "wall_seconds" in last else "not recorded"
        )
    if not spent["tasks"]:
        return f"{duration(spent['wall_seconds'])}; another experiment, or an interrupted run, computed its tasks"
    tasks = "1 task" if spent["tasks"] == 1 else f"{spent['tasks']} tasks"
    # Older manifests have the time by the clock alone, on a busy machine far more than CPU time.
    cpu = f" in {duration(spent['cpu_seconds'])} of CPU time" if "cpu_seconds" in spent else ""
    return f"{duration(spent['wall_seconds'])}; {tasks} computed{cpu}"

"""What pages show of one experiment, and of all: own results, papers with tables and figures, and what is missing."""

import csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import yaml

from dpmf_cli.audit.job import of_experiment
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, catalog, load, located
from dpmf_cli.datasets.located import what_is_missing
from dpmf_cli.datasets.sanity import figures
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.documents import whole_name
from dpmf_cli.experiment.results.collect import Collected
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.experiment.results.manifest import MANIFEST, read_manifest
from dpmf_cli.papers.claims import Claim, Exhibit, PaperFindings, all_papers
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import load as load_printed
from dpmf_cli.papers.printed import printed_reason
from dpmf_cli.papers.printed_cells import beside_print
from dpmf_cli.papers.rules import compute
from dpmf_cli.papers.verdicts import Word, of_parts
from dpmf_cli.report.advice import paragraphs
from dpmf_cli.report.figures.chart import is_drawable
from dpmf_cli.report.figures.drawings import charts_of
from dpmf_cli.report.figures.local_noise import noise_figure
from dpmf_cli.report.figures.panels import combined_figure
from dpmf_cli.report.html.compared import (
    NO_DATA,
    POINTS,
    SHARES,
    Agreement,
    Row,
    baseline_row,
    by_difference,
    by_ratio,
    crossing_row,
    printed_rows,
    why,
)
from dpmf_cli.report.html.svg import Drawn
from dpmf_cli.report.tables.baselines import baseline_rows
from dpmf_cli.report.tables.crossings import crossing_notes
from dpmf_cli.report.tables.layout import NONE, Group, TextTable
from dpmf_cli.report.tables.ledgers import ledger_table, records_table
from dpmf_cli.report.tables.local import PRINTED_AT, improvements_table, learned_nothing_table, lower_by
from dpmf_cli.report.tables.ranked import combined_table, found_in, frontier_table, whole_first

Verdict = Literal["holds here", "in part here", "fails here", "not run here"]
"""What one setting says of a claim. A verdict on the paper needs many settings (`papers.verdicts`)."""
NOT_RUN: Verdict = "not run here"
HERE: dict[Word, Verdict] = {"confirmed": "holds here", "in part": "in part here", "refuted": "fails here"}


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


class Sources(NamedTuple):
    """Where a report looks. `found` has the experiments in the results, by the config for which they stand."""

    folders: Folders
    found: dict[str, ExperimentView]
    configs: Path


class Absent(NamedTuple):
    """Something that a table or figure lacks: why, and the commands that make it.

    waits_for   the title of a data set that must be fetched first, and how; None if all data are here
    """

    what: str
    why: str
    commands: tuple[str, ...]
    waits_for: tuple[str, str] | None = None


class ExhibitView(NamedTuple):
    """One table or figure of a paper: all its printed figures, measured or not, its table, and its SVG.

    shown     the experiments that hold the exhibit
    absent    the parts that are missing
    """

    exhibit: Exhibit
    rows: Sequence[Row] = ()
    table: TextTable | None = None
    picture: bytes = b""
    shown: Sequence[str] = ()
    absent: Sequence[Absent] = ()


class ClaimView(NamedTuple):
    """A claim on one data set, and what the results at hand say of it, which are of one setting.

    on        key of the data set; `ANY` for a theorem
    measured  the figures behind the verdict; "" if nothing was run
    by        for each config that measures the claim: (config, name of the experiment at hand that ran it, or "")
    reduced   whether one of these experiments is a reduction
    """

    claim: Claim
    on: str
    verdict: Verdict
    measured: str
    by: Sequence[tuple[str, str]]
    reduced: bool


class PaperView(NamedTuple):
    """One paper with results. `experiments` are those that no earlier paper on the page has shown."""

    key: str
    paper: PaperFindings
    exhibits: Sequence[ExhibitView]
    claims: Sequence[ClaimView]
    experiments: Sequence[ExperimentView]


def overview(folders: Folders, configs: Path) -> dict[str, Any]:
    """Collects all content of the page from the results folder. Raises DpmfError if there are no results."""
    views, passed_over = _all_views(folders.results)
    if not views:
        raise DpmfError(
            f"{folders.results}: no results here; run a config first, e.g. dpmf run configs/quickstart.yaml"
        )
    # A complete experiment comes before its reductions.
    found: dict[str, ExperimentView] = {}
    for view in sorted(views, key=lambda view: view.is_reduced):
        found.setdefault(view.stands_for, view)
    sources = Sources(folders, found, configs)
    by_data: dict[str, dict[str, tuple[Experiment, Sequence[Crossing]]]] = {}
    for name, view in found.items():
        experiment = view.collected.experiment
        by_data.setdefault(experiment.dataset, {})[name] = (experiment, view.crossings)

    papers, not_run, shown, pages = [], [], set[str](), {}
    for key, paper in all_papers().items():
        page = configs.parent / paper.page
        if page.is_file():
            pages[key] = Path(os.path.relpath(page, folders.results)).as_posix()
        is_run = any(
            any(name in found for name in each.configs)
            or (each.file and (folders.results / each.file).is_file())
            for each in paper.exhibits
        )
        if not is_run:
            not_run.append((key, paper))
            continue
        of_it = [exhibit_view(exhibit, sources) for exhibit in paper.exhibits]
        names = [name for exhibit in of_it for name in exhibit.shown if name not in shown]
        of_paper = [view for name in dict.fromkeys(names) for view in views if view.name == name]
        shown.update(names)
        claims = [
            _claim(key, claim, Evidence(by_data, data), found)
            for claim in paper.claims
            for data in claim.data
        ]
        papers.append(PaperView(key, paper, of_it, claims, of_paper))
    exhibits = [exhibit for paper in papers for exhibit in paper.exhibits]
    absent = [each for exhibit in exhibits for each in exhibit.absent]
    waiting: dict[tuple[str, str], dict[str, None]] = {}
    for each in absent:
        if each.waits_for:
            waiting.setdefault(each.waits_for, {})[each.what] = None
    own = [view for view in views if view.name not in shown]
    # Made for the combined table, experiments hold every algorithm on one data set. Without one, all are combined.
    made_for_it = [view for view in views if view.name.startswith("combined_")]
    combined, notes = whole_first([view.collected.experiment for view in made_for_it or views])
    return {
        "own": own,
        "advice": advice_on(own),
        "papers": papers,
        "experiments": [*own, *(view for paper in papers for view in paper.experiments)],
        "not_run": not_run,
        "pages": pages,
        "protected": combined_table(combined, notes=notes),
        "agreement": Counter(row.agreement for exhibit in exhibits for row in exhibit.rows),
        "verdicts": Counter(claim.verdict for paper in papers for claim in paper.claims),
        "data_missing": [
            (title, how, [name for name in names if name != title]) for (title, how), names in waiting.items()
        ],
        "not_made": {each.what: each for each in absent if not each.waits_for}.values(),
        "passed_over": passed_over,
    }


def _all_views(results: Path) -> tuple[list[ExperimentView], list[str]]:
    """Returns a view of every readable results folder, by name, and why the other folders cannot be read."""
    views, passed_over = [], []
    for path in sorted(results.glob(f"*/{MANIFEST}")):
        say(f"report: {path.parent}")
        try:
            views.append(view_of(path.parent))
        except DpmfError as error:
            say(f"passed over: {error}")
            passed_over.append(str(error))
    return views, passed_over


def _claim(key: str, claim: Claim, evidence: Evidence, found: dict[str, ExperimentView]) -> ClaimView:
    """Returns what the results at hand say of a claim on the evidence's data set."""
    by = tuple((name, found[name].name if name in found else "") for name in claim.configs)
    computed = compute(key, claim.id, evidence)
    verdict = HERE[of_parts(computed.held)] if computed else NOT_RUN
    reduced = bool(computed) and any(found[name].is_reduced for name in claim.configs if name in found)
    return ClaimView(claim, evidence.data, verdict, computed.measured if computed else "", by, reduced)


def exhibit_view(exhibit: Exhibit, sources: Sources) -> ExhibitView:
    """Returns the parts of one table or figure that are there, and those that are missing."""
    made = {"statistics": _statistics, "noise": _noise, "file": _file}
    if exhibit.kind in made:
        return made[exhibit.kind](exhibit, sources)
    views = [sources.found[name] for name in exhibit.configs if name in sources.found]
    absent = [_not_run(name, sources) for name in exhibit.configs if name not in sources.found]
    rows: list[Row] = []
    picture = b""
    if exhibit.kind == "improvements":
        rows = [row for view in views for row in _improvements(view)]
    elif exhibit.kind in ("baselines", "crossings"):
        first: dict[str, ExperimentView] = {}
        for view in views:
            first.setdefault(view.collected.experiment.dataset, view)
        for view in first.values():
            cells = view.baselines if exhibit.kind == "baselines" else view.rows
            of = view.collected.experiment.title
            rows += [replace(row, of=of) for row in cells if row.agreement != Agreement.UNPRINTED]
        rows += [row for key, row in printed_rows(exhibit) if key not in first]
    elif exhibit.kind == "combined":
        experiments = [view.collected.experiment for view in views]
        if any(is_drawable(curve) for each in experiments for curve in each.curves):
            picture = combined_figure(experiments, "svg")
    shown = [view.name for view in views]
    return ExhibitView(exhibit, rows, picture=picture, shown=shown, absent=absent)


def _not_run(name: str, sources: Sources) -> Absent:
    path = sources.configs / f"{name}.yaml"
    command = f"dpmf run {path}"
    try:
        spec = load_config(path).dataset
    except DpmfError as error:
        return Absent(name, f"its config is not here: {error}", (command,))
    missing = what_is_missing(spec, replace(sources.folders, base=path.parent))
    if missing is None:
        return Absent(name, "not run yet", (command,))
    if isinstance(spec, CatalogSpec) and spec.path is None:
        data = _absent_data(spec.name)
        return data._replace(what=name, commands=(*data.commands, command))
    return Absent(name, f"data missing: {missing}", (command,))


def _absent_data(key: str) -> Absent:
    entry = catalog.entry(key)
    waits_for = entry.title, located.how_to_get(entry)
    return Absent(entry.title, f"data missing: {entry.title}", (f"dpmf datasets fetch {key}",), waits_for)


_FIGURES = {
    **dict.fromkeys(("users", "items", "ratings"), "{:,}"),
    **dict.fromkeys(("density", "mean", "variance"), "{:.4f}"),
    **dict.fromkeys(("per_user", "per_item"), "{:.1f}"),
}


def _statistics(exhibit: Exhibit, sources: Sources) -> ExhibitView:
    rows: list[Row] = []
    absent: list[Absent] = []
    for key in exhibit.data:
        printed, counted = load_printed("friedman2016")["table2"][key], None
        if located.present(catalog.entry(key), sources.folders.data) is not None:
            counted = figures(load(CatalogSpec(name=key), sources.folders).ratings)
        else:
            absent.append(_absent_data(key))
        for name, form in _FIGURES.items():
            found = None if counted is None else getattr(counted, name)
            agreement = Agreement.MISSING if found is None else by_ratio(found, printed[name], SHARES)
            rows.append(
                Row(
                    of=catalog.entry(key).title,
                    what=name.replace("_", " "),
                    at="",
                    printed=form.format(printed[name]),
                    reproduced=NO_DATA if found is None else form.format(found),
                    change=NONE if found is None else f"× {found / printed[name]:.3f}",
                    agreement=agreement,
                    reason=why(agreement, printed_reason("table2", key, name), ""),
                )
            )
    return ExhibitView(exhibit, rows, absent=absent)


def _improvements(view: ExperimentView) -> Iterator[Row]:
    """Yields by how much BLP-MoG-MF is below each ISGD, at each ε for which the paper prints it."""
    experiment = view.collected.experiment
    printed = load_printed("neera2020")["improvement_over_isgd"].get(PRINTED_AT.get(experiment.dataset), {})
    ours = next((curve for curve in experiment.curves if curve.algorithm == "blp_mog_mf"), None)
    others = [each for each in experiment.curves if each.algorithm == "isgd_local" and not each.missing]
    if ours is None or ours.missing:
        return
    for epsilon, part in printed.items():
        for at in np.flatnonzero(ours.epsilons == float(epsilon)):
            for other in others:
                lower = lower_by(ours, other, int(at))
                spread = f" ± {lower.std(ddof=1):.1f}" if len(lower) > 1 else ""
                yield Row(
                    of=f"{experiment.title}, ε = {epsilon}",
                    what=f"below {other.label}",
                    at="",
                    printed=f"{100 * part:.0f} %",
                    reproduced=f"{lower.mean():.1f}{spread} %",
                    change=f"{signed(lower.mean() - 100 * part, 1)} points",
                    agreement=by_difference(float(lower.mean()), 100 * part, POINTS),
                    source=view.name,
                )


def _noise(exhibit: Exhibit, sources: Sources) -> ExhibitView:
    key = exhibit.data[0]
    if located.present(catalog.entry(key), sources.folders.data) is None:
        return ExhibitView(exhibit, absent=(_absent_data(key),))
    loaded = load(CatalogSpec(name=key), sources.folders)
    return ExhibitView(exhibit, picture=noise_figure(loaded.ratings, loaded.identity.title, "svg"))


def _file(exhibit: Exhibit, sources: Sources) -> ExhibitView:
    """Returns a table that another command has left as CSV. The CSV's first column is the group of the row."""
    path = sources.folders.results / exhibit.file
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
    except (OSError, ValueError):
        return ExhibitView(exhibit, absent=(Absent(exhibit.name, "not made yet", (exhibit.making,)),))
    groups = tuple(
        Group(title, tuple(tuple(map(_rounded, row[1:])) for row in rows if row[0] == title))
        for title in dict.fromkeys(row[0] for row in rows)
    )
    names = tuple(name.replace("_", " ") for name in header[1:])
    return ExhibitView(exhibit, table=TextTable(names, "l" + "r" * (len(header) - 2), groups))


def _rounded(cell: str) -> str:
    """Rounds a cell of a CSV file for readers; a cell that is not a number stays as it is."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"

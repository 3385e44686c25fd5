"""What pages show of one experiment, and of a table or figure of a paper: printed values beside measured ones.

Each verdict has its own word, sign and colour. The tolerances were fixed on 2026-11-21 in 00cdf1a. Percentages had 5
and 10 points until 2026-11-23.
"""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dpmf_cli.audit.job import of_experiment
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import signed, significant
from dpmf_cli.datasets import Folders, catalog, load, located
from dpmf_cli.datasets.soundness import figures
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.crossings import DISTANCE, Agreement, Crossing, agreement, find_crossings
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.documents import FOLDER, whole_name
from dpmf_cli.experiment.results.folders import Collected, collect_folder
from dpmf_cli.experiment.results.manifest import read_manifest
from dpmf_cli.papers.beside_print import beside_print
from dpmf_cli.papers.claims import Exhibit
from dpmf_cli.papers.printed import CROSSING_TABLES, load as load_printed, printed_crossings, printed_reason
from dpmf_cli.report.figures.charts import Chart, charts_of, is_drawable
from dpmf_cli.report.figures.drawings import combined_figure
from dpmf_cli.report.figures.papers import noise_figure
from dpmf_cli.report.tables import crossings
from dpmf_cli.report.tables.layout import NONE, Group, TextTable, cells_of
from dpmf_cli.report.tables.ledgers import ledger_table, records_table
from dpmf_cli.report.tables.papers import improvements, improvements_table, learned_nothing_table
from dpmf_cli.report.tables.ranked import found_in, frontier_table

POINTS, SHARE = 100 * load_printed("neera2020")["tolerances"]["improvement"], 1.005
"""A percentage agrees within so many points of the printed one, and a count, or a mean of counts, within this factor.
An RMSE agrees within `DISTANCE`. Each is near within twice that."""

NO_DATA = "not measured"


@dataclass(frozen=True)
class Row:
    """One figure of a paper. All fields but the agreement are rounded text.

    of          the data set, or another name of the group of figures
    what        the method, or the statistic
    at          the baseline that the method crosses, or another condition; may be empty
    change      ratio or difference of reproduced and printed
    theta       McSherry and Mironov's θ at the crossing, if the grid is over θ
    source      name of the experiment that measured the figure; "" if none did
    reason      why the measured figure differs from the printed one, if that is known
    """

    of: str
    what: str
    at: str
    printed: str
    reproduced: str
    change: str
    agreement: Agreement
    claimed: str = NONE
    provable: str = NONE
    theta: str = NONE
    source: str = ""
    reason: str = ""


def crossing_row(crossing: Crossing) -> Row:
    """The row for the ε at which a curve meets a baseline; a crossing outside the grid is not near."""
    cell = cells_of(crossing, crossings.COLUMNS)
    table = CROSSING_TABLES.get(crossing.neighbours, "")
    stated = printed_reason(table, crossing.algorithm, crossing.baseline, crossing.dataset)
    return Row(
        of=f"{crossing.dataset}, {crossing.neighbours}, {crossing.mode}",
        what=cell["label"],
        at=cell["baseline"],
        change=NONE
        if crossing.ratio is None
        else f"×{significant(crossing.ratio)}, {cell['gap'].split()[0]}",
        agreement=crossing.agreement,
        source=crossing.experiment,
        reason=why(crossing.agreement, stated, crossing.experiment),
        **{key: cell[key] for key in ("printed", "reproduced", "claimed", "provable", "theta")},
    )


def baseline_row(row: crossings.BaselineRow) -> Row:
    cell = cells_of(row, crossings.BASELINE_COLUMNS)
    if row.printed is None:
        found = Agreement.UNPRINTED
    elif row.reproduced is None:
        found = Agreement.MISSING
    else:
        found = agreement(abs(row.reproduced - row.printed) / DISTANCE)
    printed, reproduced, change = (cell[key] for key in ("printed", "reproduced", "difference"))
    reason = why(found, "", row.experiment)
    return Row(
        row.title, cell["baseline"], "", printed, reproduced, change, found,
        source=row.experiment, reason=reason,
    )  # fmt: skip


def why(found: Agreement, stated: str, source: str) -> str:
    """The text beside a figure that is off: that its experiment is reduced, and the stated reason."""
    if found not in (Agreement.NEAR, Agreement.DIFFERS):
        return ""
    reduced = "a reduced run" if whole_name(source) != source else ""
    unknown = "no reason is known" if found is Agreement.DIFFERS else ""
    return "; ".join(filter(None, (reduced, stated))) or unknown


@dataclass(frozen=True)
class ExperimentView:
    """One experiment of the page, with its folder's manifest.

    Charts, tables and `rows` are of the metric that the config wants shown; `crossings` and advice are of RMSE.
    """

    folder: Path
    manifest: dict[str, Any]
    collected: Collected
    crossings: list[Crossing]
    charts: Sequence[Chart]
    baselines: Sequence[Row]
    rows: Sequence[Row]
    notes: Sequence[str]
    tables: Sequence[tuple[str, TextTable]]

    @property
    def name(self) -> str:
        return self.collected.experiment.name

    @property
    def stands_for(self) -> str:
        """The name of the config that it reduces, or its own name."""
        return whole_name(self.name)

    @property
    def is_reduced(self) -> bool:
        return self.stands_for != self.name


def view_of(folder: Path) -> ExperimentView:
    """Everything in a results folder. Raises DpmfError as `collect_folder` does."""
    collected = collect_folder(folder)
    experiment, audits = collected.experiment, of_experiment(folder)
    found = beside_print(experiment)
    shown = found if collected.shown is experiment else find_crossings(collected.shown)
    ledger = ledger_table(collected.ledgers, experiment, audits)
    envelopes = [each for each in found_in([experiment]) if len(each.members) > 1]
    tables = {
        f"Privacy ledger: claimed beside provable{' and audited' * bool(audits)}": ledger,
        "What the records spend": records_table(experiment.curves),
        "Where nothing was learned": learned_nothing_table(experiment),
        "Frontier: what leads at each ε": frontier_table([experiment], envelopes),
        "Improvements": improvements_table([experiment]),
    }
    return ExperimentView(
        folder,
        read_manifest(folder),
        collected,
        found,
        charts_of(collected.shown),
        [*map(baseline_row, crossings.baseline_rows(collected.shown))],
        [*map(crossing_row, shown)],
        crossings.crossing_notes(shown),
        [(title, table) for title, table in tables.items() if table and table.groups],
    )


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

    @property
    def is_made(self) -> bool:
        return bool(self.shown or self.rows or self.table or self.picture)


def exhibit_view(exhibit: Exhibit, found: Mapping[str, ExperimentView], folders: Folders) -> ExhibitView:
    """The parts of one table or figure that are there, and those that are missing.

    `found` has the experiments in the results, by the config for which they stand.
    """
    if exhibit.kind in (made := {"statistics": _statistics, "noise": _noise, "file": _file}):
        return made[exhibit.kind](exhibit, folders)
    views = [found[name] for name in exhibit.configs if name in found]
    absent = [_not_run(name, folders) for name in exhibit.configs if name not in found]
    experiments = [view.collected.experiment for view in views]
    rows: list[Row] = []
    picture = b""
    if exhibit.kind == "improvements":
        for each in improvements(experiments):
            lower, sd, printed = each.lower_percent, each.lower_sd, each.printed_percent
            if lower is None or printed is None:
                continue
            of, spread = f"{each.title}, ε = {each.epsilon:g}", "" if sd is None else f" ± {sd:.1f}"
            change, off = f"{signed(lower - printed, 1)} points", abs(lower - printed) / POINTS
            what, texts = f"below {each.method}", (f"{printed:.0f} %", f"{lower:.1f}{spread} %")
            rows.append(Row(of, what, "", *texts, change, agreement(off), source=each.experiment))
    elif exhibit.kind in ("baselines", "crossings"):
        first: dict[str, ExperimentView] = {}
        for view in views:
            first.setdefault(view.collected.experiment.dataset, view)
        for view in first.values():
            cells = view.baselines if exhibit.kind == "baselines" else view.rows
            of = view.collected.experiment.title
            rows += [replace(row, of=of) for row in cells if row.agreement != Agreement.UNPRINTED]
        rows += [row for key, row in printed_rows(exhibit) if key not in first]
    elif exhibit.kind == "combined" and any(
        is_drawable(curve) for each in experiments for curve in each.curves
    ):
        picture = combined_figure(experiments, "svg")
    return ExhibitView(exhibit, rows, None, picture, [view.name for view in views], absent)


def printed_rows(exhibit: Exhibit) -> Iterator[tuple[str, Row]]:
    """Yields every printed value of a table of baselines or crossings as not measured, with its data set."""
    if exhibit.kind == "baselines":
        found = [
            (dataset, baseline, "", f"{cells[baseline]:.4f}")
            for dataset, cells in load_printed("friedman2016")["table3"].items()
            for baseline in (key for key in cells if key.isupper())
        ]
    else:
        found = [
            (cell.dataset, cell.algorithm.upper(), cell.baseline, f"{cell.epsilon:g}")
            for cell in printed_crossings()
            if cell.neighbours == exhibit.neighbours and cell.epsilon is not None
        ]
    for dataset, what, at, printed in found:
        title = catalog.entry(dataset).title
        yield dataset, Row(title, what, at, printed, NO_DATA, NONE, Agreement.MISSING)


def paper_table(rows: Sequence[Row]) -> tuple[list[str], list[tuple[str, str, list[Row | None]]]]:
    """The rows in a paper's own layout: the data sets and, for each (method, baseline), its row for each of them,
    None if nothing is printed and nothing was measured. All are in order of first appearance."""
    columns = list(dict.fromkeys(row.of for row in rows))
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.what, row.at), {}).setdefault(row.of, row)
    return columns, [(*key, [cells.get(column) for column in columns]) for key, cells in lines.items()]


def _not_run(name: str, folders: Folders) -> Absent:
    path = FOLDER / f"{name}.yaml"
    command = f"dpmf run {path}"
    try:
        spec = load_config(path).dataset
    except DpmfError as error:
        return Absent(name, f"its config is not here: {error}", (command,))
    missing = located.what_is_missing(spec, replace(folders, base=path.parent))
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


def _statistics(exhibit: Exhibit, folders: Folders) -> ExhibitView:
    rows: list[Row] = []
    absent: list[Absent] = []
    for key in exhibit.data:
        printed, title = load_printed("friedman2016")["table2"][key], catalog.entry(key).title
        counted = None
        if located.present(catalog.entry(key), folders.data) is not None:
            counted = figures(load(CatalogSpec(name=key), folders).ratings)
        else:
            absent.append(_absent_data(key))
        for name, form in _FIGURES.items():
            of = title, name.replace("_", " "), "", form.format(printed[name])
            if counted is None:
                rows.append(Row(*of, NO_DATA, NONE, Agreement.MISSING))
                continue
            found = counted[name]
            near = agreement(abs(math.log(found / printed[name])) / math.log(SHARE))
            reason = why(near, printed_reason("table2", key, name), "")
            rows.append(Row(*of, form.format(found), f"× {found / printed[name]:.3f}", near, reason=reason))
    return ExhibitView(exhibit, rows, absent=absent)


def _noise(exhibit: Exhibit, folders: Folders) -> ExhibitView:
    key = exhibit.data[0]
    if located.present(catalog.entry(key), folders.data) is None:
        return ExhibitView(exhibit, absent=(_absent_data(key),))
    loaded = load(CatalogSpec(name=key), folders)
    return ExhibitView(exhibit, picture=noise_figure(loaded.ratings, loaded.identity.title, "svg"))


def _file(exhibit: Exhibit, folders: Folders) -> ExhibitView:
    """A table that another command has left as CSV, whose first column is the group of the row."""
    try:
        with (folders.results / exhibit.file).open(encoding="utf-8", newline="") as stream:
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
    """A field of a CSV file, rounded for readers if it is a number."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"

"""The tables and figures of a paper as the page shows them: rows by agreement, experiments, and missing parts."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpmf_cli.config import load_config
from dpmf_cli.datasets import Folders, catalog, load, located
from dpmf_cli.datasets.located import what_is_missing
from dpmf_cli.datasets.sanity import figures
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.papers.claims import Exhibit
from dpmf_cli.papers.printed import load as load_printed
from dpmf_cli.papers.printed import printed_reason
from dpmf_cli.report.figures.local_noise import noise_figure
from dpmf_cli.report.figures.panels import combined_figure
from dpmf_cli.report.figures.shown import is_drawable
from dpmf_cli.report.html.compared import (
    NO_DATA,
    POINTS,
    SHARES,
    Agreement,
    PaperTable,
    Row,
    by_difference,
    by_ratio,
    paper_table,
    printed_rows,
    why,
)
from dpmf_cli.report.html.experiment import ExperimentView
from dpmf_cli.report.tables.cells import NONE
from dpmf_cli.report.tables.layout import Group, TextTable
from dpmf_cli.report.tables.local import PRINTED_AT, lower_by


@dataclass(frozen=True)
class Sources:
    """Where a report looks. `found` has the experiments in the results, by the config for which they stand."""

    folders: Folders
    found: dict[str, ExperimentView]
    configs: Path


@dataclass(frozen=True)
class Absent:
    """Something that a table or figure lacks: why, and the commands that make it.

    waits_for   the title of a data set that must be fetched first, and how; empty if all data are here
    """

    what: str
    why: str
    commands: tuple[str, ...]
    waits_for: tuple[str, str] | tuple[()] = ()


@dataclass(frozen=True)
class ExhibitView:
    """One table or figure of a paper.

    unmet     the printed figures for which nothing was measured
    picture   the SVG of the exhibit, if it has one
    shown     the experiments that hold the exhibit
    absent    the parts that are missing
    """

    exhibit: Exhibit
    rows: tuple[Row, ...] = ()
    unmet: tuple[Row, ...] = ()
    table: TextTable | None = None
    picture: bytes = b""
    shown: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()

    @property
    def layout(self) -> PaperTable:
        """All its figures, measured or not, by method and data set."""
        return paper_table((*self.rows, *self.unmet))


def exhibit_view(exhibit: Exhibit, sources: Sources) -> ExhibitView:
    """Returns the parts of one table or figure that are there, and those that are missing."""
    if exhibit.kind == "statistics":
        return _statistics(exhibit, sources)
    if exhibit.kind == "noise":
        return _noise(exhibit, sources)
    if exhibit.kind == "file":
        return _file(exhibit, sources)
    views = [sources.found[name] for name in exhibit.configs if name in sources.found]
    absent = tuple(_not_run(name, sources) for name in exhibit.configs if name not in sources.found)
    rows: list[Row] = []
    unmet: list[Row] = []
    picture = b""
    if exhibit.kind == "improvements":
        rows = [row for view in views for row in _improvements(view)]
    elif exhibit.kind in ("baselines", "crossings"):
        datasets = dict.fromkeys(view.collected.experiment.dataset for view in views)
        for dataset in datasets:
            first = next(view for view in views if view.collected.experiment.dataset == dataset)
            cells = first.baselines if exhibit.kind == "baselines" else first.rows
            of = first.collected.experiment.title
            rows += [replace(row, of=of) for row in cells if row.agreement != Agreement.UNPRINTED]
        unmet = [row for key, row in printed_rows(exhibit) if key not in datasets]
    elif exhibit.kind == "combined":
        picture = _combined(views)
    shown = tuple(view.name for view in views)
    return ExhibitView(exhibit, tuple(rows), tuple(unmet), picture=picture, shown=shown, absent=absent)


def _combined(views: Sequence[ExperimentView]) -> bytes:
    """Draws several experiments, with a panel for each data set and guarantee; b"" if no curve can be drawn."""
    experiments = [view.collected.experiment for view in views]
    if not any(is_drawable(curve) for each in experiments for curve in each.curves):
        return b""
    return combined_figure(experiments, "svg")


def _not_run(name: str, sources: Sources) -> Absent:
    path = sources.configs / f"{name}.yaml"
    command = f"dpmf run {path}"
    try:
        config = load_config(path)
    except DpmfError as error:
        return Absent(name, f"its config is not here: {error}", (command,))
    missing = what_is_missing(config.dataset, replace(sources.folders, base=path.parent))
    if missing is None:
        return Absent(name, "not run yet", (command,))
    spec = config.dataset
    if isinstance(spec, CatalogSpec) and spec.path is None:
        data = _absent_data(spec.name)
        return replace(data, what=name, commands=(*data.commands, command))
    return Absent(name, f"data missing: {missing}", (command,))


def _absent_data(key: str) -> Absent:
    entry = catalog.entry(key)
    fetch = f"dpmf datasets fetch {key}"
    return Absent(
        entry.title, f"data missing: {entry.title}", (fetch,), (entry.title, located.how_to_get(entry))
    )


_FIGURES = {
    "users": "{:,}",
    "items": "{:,}",
    "ratings": "{:,}",
    "density": "{:.4f}",
    "mean": "{:.4f}",
    "variance": "{:.4f}",
    "per_user": "{:.1f}",
    "per_item": "{:.1f}",
}


def _statistics(exhibit: Exhibit, sources: Sources) -> ExhibitView:
    rows: list[Row] = []
    unmet: list[Row] = []
    absent: list[Absent] = []
    table = load_printed("friedman2016")["table2"]
    for key in exhibit.data:
        printed, counted = table[key], None
        if located.present(catalog.entry(key), sources.folders.data) is not None:
            spec = CatalogSpec(name=key)
            counted = figures(load(spec, sources.folders).ratings)
        else:
            absent.append(_absent_data(key))
        for name, form in _FIGURES.items():
            found = None if counted is None else getattr(counted, name)
            agreement = Agreement.MISSING if found is None else by_ratio(found, printed[name], SHARES)
            (unmet if found is None else rows).append(
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
    return ExhibitView(exhibit, tuple(rows), tuple(unmet), absent=tuple(absent))


def _improvements(view: ExperimentView) -> list[Row]:
    """Returns by how much BLP-MoG-MF is below each ISGD, at each ε for which the paper prints it."""
    experiment = view.collected.experiment
    printed = load_printed("neera2020")["improvement_over_isgd"].get(PRINTED_AT.get(experiment.dataset), {})
    ours = next((curve for curve in experiment.curves if curve.algorithm == "blp_mog_mf"), None)
    rows: list[Row] = []
    if ours is None or ours.missing:
        return rows
    for epsilon, part in printed.items():
        at = np.flatnonzero(ours.epsilons == float(epsilon))
        for other in experiment.curves:
            if other.algorithm != "isgd_local" or other.missing or not len(at):
                continue
            lower = lower_by(ours, other, int(at[0]))
            spread = f" ± {lower.std(ddof=1):.1f}" if len(lower) > 1 else ""
            difference = f"{signed(lower.mean() - 100 * part, 1)} points"
            rows.append(
                Row(
                    of=f"{experiment.title}, ε = {epsilon}",
                    what=f"below {other.label}",
                    at="",
                    printed=f"{100 * part:.0f} %",
                    reproduced=f"{lower.mean():.1f}{spread} %",
                    change=difference,
                    agreement=by_difference(float(lower.mean()), 100 * part, POINTS),
                    source=view.name,
                )
            )
    return rows


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
    titles = list(dict.fromkeys(row[0] for row in rows))
    groups = tuple(
        Group(title, tuple(tuple(map(_rounded, row[1:])) for row in rows if row[0] == title))
        for title in titles
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

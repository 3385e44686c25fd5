"""The tables of crossings (Friedman et al. 2016, tables 4 and 5), and of RMSE, or another metric, at one ε.

If an experiment reproduces the paper's tables, their printed values stand beside the reproduced ones.

The same numbers and the pictures of an experiment are LaTeX macros too, so that nobody types them:

    \\input{results/my-shop/figures}
    ISGD meets the averages at $\\varepsilon$ = \\dpmf{my-shop/ISGD/GE} \\dpmf{my-shop/ISGD/GE/interval}.
    \\dpmffigure{my-shop/curves}
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dpmf_cli.core.terminal import printable
from dpmf_cli.evaluation.crossings import Crossing, End, LevelAt, Status
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.metrics import BESIDE, RMSE, Metric
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.baselines import baseline_rows, reproduced_cell
from dpmf_cli.report.tables.layout import (
    NONE,
    TableColumn,
    TextTable,
    epsilon,
    epsilon_cell,
    escape_latex,
    marked,
    names,
    tabled,
)
from dpmf_cli.report.words import lines

Audits = Mapping[str, Mapping[str, Any]]
"""The audits of each experiment's entries, by their label."""


def crossing_cell(crossing: Crossing) -> str:
    """Returns `2.40†‖ [2.10, >20]*`: the point of the crossing, or why there is none, and the interval."""
    found = crossing.status.value if crossing.reproduced is None else significant(crossing.reproduced)
    found += "†" * crossing.recrosses + "‖" * crossing.coarse
    if crossing.over == "none" or crossing.low == crossing.high == crossing.status:
        return found

    def shown(end: End) -> str:
        if end == Status.BELOW_GRID:
            return f"<{crossing.grid_low:g}"
        return f">{crossing.grid_high:g}" if end == Status.NOT_REACHED else epsilon_cell(end)

    return f"{found} [{shown(crossing.low)}, {shown(crossing.high)}]" + "*" * (crossing.over == "runs")


def end_value(end: End) -> float | None:
    """Returns an end of an interval for programs; None if it lies outside the grid, as `end_status` then says."""
    return end if isinstance(end, float) else None


def end_status(end: End) -> str | None:
    return end.value if isinstance(end, Status) else None


def _any(name: str) -> Callable[[Sequence[Any]], bool]:
    """Whether any row has that attribute."""
    return lambda rows: any(getattr(row, name) is not None for row in rows)


LABEL: TableColumn[Any] = TableColumn("label", text=marked, head="algorithm")

COLUMNS: tuple[TableColumn[Crossing], ...] = (
    *names("dataset neighbours mode algorithm"),
    LABEL,
    *names("baseline status"),
    TableColumn(
        "printed",
        text=lambda row: NONE if row.printed is None else f"{row.printed:g}",
        align="r",
        seen=_any("printed"),
    ),
    TableColumn("reproduced", text=crossing_cell),
    TableColumn("low", lambda row: end_value(row.low)),
    TableColumn("high", lambda row: end_value(row.high)),
    *names("recrosses"),
    epsilon("claimed"),
    epsilon("provable"),
    epsilon("theta", head="θ", seen=_any("theta")),
    *names("delta joint reference comparable over coarse folds runs grid_low grid_high experiment partial"),
    TableColumn(
        "metric",
        lambda row: row.metric.key,
        kept=lambda rows: any(row.metric != RMSE for row in rows),
    ),
    TableColumn("low_status", lambda row: end_status(row.low)),
    TableColumn("high_status", lambda row: end_status(row.high)),
    TableColumn(
        "ratio",
        text=lambda row: NONE if row.ratio is None else significant(row.ratio),
        align="r",
        seen=_any("printed"),
    ),
)

SHOWN = ("label", "baseline", "printed", "reproduced", "ratio", "theta", "claimed", "provable", "audited")


def crossings_table(crossings: Sequence[Crossing], audits: Audits | None = None) -> TextTable:
    """Returns printed and reproduced crossings: a row per algorithm and baseline.

    Rows are grouped by dataset, neighbours and mode, and also by experiment if there are several. With `audits`, a
    column shows what audits found.
    """
    several = len({crossing.experiment for crossing in crossings if crossing.experiment}) > 1

    def title(crossing: Crossing) -> str:
        return (
            f"{crossing.dataset}, {crossing.neighbours}, {crossing.mode}"
            + (f" ({crossing.experiment})" if several and crossing.experiment else "")
            + (f", {crossing.metric.title}" if crossing.metric != RMSE else "")
            + (f", partial: {crossing.partial}" if crossing.partial else "")
        )

    def audit(crossing: Crossing) -> Any:
        return (audits or {}).get(crossing.experiment, {}).get(crossing.label)

    columns, notes = [*COLUMNS], crossing_notes(crossings) if crossings else []
    if audits is not None:
        from dpmf_cli.report.tables.audits import audited_columns, audited_notes

        shown = [each for found in audits.values() for each in found.values()]
        columns += audited_columns(audit)
        notes += audited_notes(shown) if crossings else []
    return tabled(crossings, columns, SHOWN, title=title, notes=notes)


def crossing_notes(crossings: Sequence[Crossing]) -> list[str]:
    """Explains the columns and signs of a table of these crossings."""
    references: Iterable[Any] = ()
    if any(crossing.reference for crossing in crossings):
        from dpmf_cli.experiment.config.keys import REFERENCES

        references = REFERENCES.values()
    return lines("notes/crossings", crossings=crossings, references=references)


def levels_table(levels: Sequence[LevelAt], at: float) -> TextTable:
    """Returns a row for each curve and baseline at an ε, by experiment."""
    metric = levels[0].curve.metric if levels else RMSE

    def value(level: LevelAt) -> str:
        found = "incomplete" if level.value is None else f"{level.value:.4f}"
        if level.low is not None and level.high is not None:
            found += f" [{level.low:.4f}, {level.high:.4f}]" + "*" * (level.over == "runs")
        return found + " ≈" * level.interpolated

    def beside(metric: Metric) -> TableColumn[LevelAt]:
        def text(level: LevelAt) -> str:
            return f"{level.beside[metric.key]:.4f}" if metric.key in level.beside else NONE

        return TableColumn(metric.key, lambda level: level.beside.get(metric.key), text, metric.title, "r")

    def spent(name: str) -> TableColumn[LevelAt]:
        def text(level: LevelAt) -> str:
            return NONE if level.curve.is_baseline else epsilon_cell(getattr(level, name))

        return TableColumn(name, text=text, align="r")

    def title(level: LevelAt) -> str:
        curve, of = level.curve, level.experiment
        kind = "without privacy" if curve.is_baseline else f"{curve.neighbours}, {curve.mode}"
        return f"{of.name}: {of.dataset}, {kind}" + (f" ({of.partial} so far)" if of.partial else "")

    columns: list[TableColumn[LevelAt]] = [
        TableColumn("experiment", lambda level: level.experiment.name),
        *names("dataset", "experiment"),
        *names("neighbours mode algorithm", "curve"),
        TableColumn("label", lambda level: level.curve.label, lambda level: marked(level.curve), "algorithm"),
        *names("epsilon interpolated"),
        TableColumn(metric.key, lambda level: level.value, value, f"{metric.title} at ε = {at:g}"),
        *map(beside, BESIDE),
        *names("low high"),
        spent("claimed"),
        spent("provable"),
        *names("joint delta", "curve"),
        *names("over"),
        TableColumn("folds", lambda level: level.curve.values.shape[0]),
        TableColumn("runs", lambda level: level.curve.values.shape[1]),
        *names("partial", "experiment"),
    ]
    shown = ("label", metric.key, *(each.key for each in BESIDE), "claimed", "provable")
    return tabled(
        levels, columns, shown, title=title, notes=lines("notes/levels", levels=levels, metric=metric)
    )


_HEAD = r"""% The figures of {name}, written by dpmf. \input this file; docs/report.md says how to use it.
\providecommand{{\dpmfresults}}{{results}}
\providecommand{{\dpmfset}}[2]{{\expandafter\def\csname dpmf@#1\endcsname{{#2}}}}
\providecommand{{\dpmf}}[1]{{\ifcsname dpmf@#1\endcsname\csname dpmf@#1\endcsname
  \else\GenericError{{}}{{dpmf: no figure is called #1}}{{}}{{}}\fi}}
\providecommand{{\dpmffigure}}[1]{{\includegraphics[width=\linewidth]{{\dpmfresults/#1}}}}
"""


def figure_macros(experiment: Experiment, crossings: Sequence[Crossing]) -> str:
    r"""Defines `\dpmf{NAME/ENTRY/BASELINE}` for crossings, as in tables, and `\dpmf{NAME/BASELINE}` for the RMSE of a
    baseline, or the metric that is shown.

    `/interval`, `/claimed` and `/provable` after the name of a crossing give its interval and its two ε.
    """
    lines, taken = [_HEAD.format(name=printable(experiment.name))], set[str]()
    for path, text in _figures(experiment, crossings):
        name = "/".join(map(_plain, path))
        while name in taken:
            name += "'"
        taken.add(name)
        lines.append(f"\\dpmfset{{{name}}}{{{escape_latex(printable(text))}}}\n")
    return "".join(lines)


def _figures(experiment: Experiment, crossings: Iterable[Crossing]) -> Iterator[tuple[tuple[str, ...], str]]:
    for row in baseline_rows(experiment):
        yield (experiment.name, row.baseline), reproduced_cell(row).partition(" ±")[0]
    for crossing in crossings:
        of = experiment.name, crossing.label, crossing.baseline
        point, bracket, interval = crossing_cell(crossing).partition(" [")
        yield of, point.rstrip("†")
        yield (*of, "interval"), bracket.strip() + interval.rstrip("*") or NONE
        yield (*of, "claimed"), epsilon_cell(crossing.claimed)
        yield (*of, "provable"), epsilon_cell(crossing.provable)


def _plain(name: str) -> str:
    r"""Returns a name in characters that `\csname` takes unchanged: ε becomes `epsilon`, others become a dash."""

    def spelt(found: re.Match[str]) -> str:
        return re.sub("[^A-Za-z]", "", escape_latex(found[0])).removeprefix("var") or "-"

    return re.sub(r"[^A-Za-z0-9 _.,+()-]", spelt, name)

"""The tables of crossings, of RMSE at one ε, of baselines (Friedman et al. 2016, tables 3 to 5), and without noise.

All show RMSE, or another metric if that is shown. If an experiment reproduces the paper's tables, their printed
values stand beside the reproduced ones. The same numbers and the pictures of an experiment are LaTeX macros too, so
that none is typed (docs/report.md).
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmf_cli.core.terminal import printable, signed, significant
from dpmf_cli.evaluation.crossings import Crossing, End, LevelAt, Status, is_complete
from dpmf_cli.evaluation.curves import REFERENCES, Experiment, Measured
from dpmf_cli.evaluation.metrics import BESIDE, RMSE, Metric
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.claims import is_held_against_tables
from dpmf_cli.papers.printed import printed_baseline
from dpmf_cli.report.tables.layout import (
    NONE,
    TableColumn,
    TextTable,
    epsilon_cell,
    escape_latex,
    interval,
    marked,
    names,
    number,
    tabled,
)
from dpmf_cli.report.words import lines


def crossing_cell(crossing: Crossing) -> str:
    """`2.40†‖ [2.10, >20]*`: the point of the crossing, or why there is none, and the interval."""
    found = crossing.status.value if crossing.reproduced is None else significant(crossing.reproduced)
    found += "†" * crossing.recrosses + "‖" * crossing.coarse
    if crossing.over == "none" or crossing.low == crossing.high == crossing.status:
        return found

    def shown(end: End) -> str:
        if end == Status.NO_EPSILON:
            return "→ 0"
        if end == Status.BELOW_GRID:
            return f"<{crossing.grid_low:g}"
        return f">{crossing.grid_high:g}" if end == Status.NOT_REACHED else epsilon_cell(end)

    return f"{found} [{shown(crossing.low)}, {shown(crossing.high)}]" + "*" * (crossing.over == "runs")


def beside_cell(crossing: Crossing) -> str:
    """`−0.013 near`: how far the curve is from its baseline at the printed ε, and whether it agrees."""
    if crossing.off is None:
        return NONE
    return ("" if crossing.gap is None else signed(crossing.gap, 3) + " ") + crossing.agreement


def _any(name: str) -> Callable[[Sequence[Any]], bool]:
    """Whether any row has that attribute."""
    return lambda rows: any(getattr(row, name) is not None for row in rows)


_METRIC: TableColumn[Any] = TableColumn(
    "metric", lambda row: row.metric.key, kept=lambda rows: any(row.metric != RMSE for row in rows)
)

COLUMNS: tuple[TableColumn[Crossing], ...] = (
    *names("dataset neighbours mode algorithm"),
    TableColumn("label", text=marked, head="algorithm"),
    *names("baseline status"),
    number("printed", "g", seen=_any("printed")),
    TableColumn("reproduced", text=crossing_cell),
    TableColumn("low", lambda row: None if isinstance(row.low, Status) else row.low),
    TableColumn("high", lambda row: None if isinstance(row.high, Status) else row.high),
    *names("recrosses"),
    number("claimed", epsilon_cell),
    number("provable", epsilon_cell),
    number("theta", epsilon_cell, head="θ", seen=_any("theta")),
    *names("delta joint reference comparable over coarse folds runs grid_low grid_high experiment partial"),
    _METRIC,
    TableColumn("low_status", lambda row: row.low if isinstance(row.low, Status) else None),
    TableColumn("high_status", lambda row: row.high if isinstance(row.high, Status) else None),
    *names("ratio"),
    TableColumn("gap", text=beside_cell, seen=_any("printed")),
    *names("agreement"),
)

SHOWN = ("label", "baseline", "printed", "reproduced", "gap", "theta", "claimed", "provable", "audited")


def crossings_table(
    crossings: Sequence[Crossing], audits: Mapping[str, Mapping[str, Any]] | None = None
) -> TextTable:
    """Printed and reproduced crossings: a row per algorithm and baseline.

    audits  the audits of each experiment's entries, by the entries' labels
    """
    several = len({crossing.experiment for crossing in crossings if crossing.experiment}) > 1

    def title(crossing: Crossing) -> str:
        return (
            f"{crossing.dataset}, {crossing.neighbours}, {crossing.mode}"
            + (f" ({crossing.experiment})" if several and crossing.experiment else "")
            + (f", {crossing.metric.title}" if crossing.metric != RMSE else "")
            + (f", partial: {crossing.partial}" if crossing.partial else "")
        )

    columns, notes = [*COLUMNS], crossing_notes(crossings) if crossings else []
    if audits is not None:
        from dpmf_cli.report.tables.ledgers import audited_columns, audited_notes

        columns += audited_columns(lambda row: audits.get(row.experiment, {}).get(row.label))
        shown = [each for found in audits.values() for each in found.values()]
        notes += audited_notes(shown) if crossings else []
    return tabled(crossings, columns, SHOWN, title=title, notes=notes)


def crossing_notes(crossings: Sequence[Crossing]) -> list[str]:
    """Notes on the columns and signs of a table of these crossings."""
    return lines("notes/crossings", crossings=crossings, references=REFERENCES.values())


def levels_table(levels: Sequence[LevelAt], at: float) -> TextTable:
    """A row for each curve and baseline at an ε, by experiment."""
    metric = levels[0].curve.metric if levels else RMSE

    def value(level: LevelAt) -> str:
        found = "incomplete" if level.value is None else f"{level.value:.4f}"
        return found + interval(level) + " ≈" * level.interpolated

    def beside(metric: Metric) -> TableColumn[LevelAt]:
        return number(metric.key, value=lambda level: level.beside.get(metric.key), head=metric.title)

    def spent(level: LevelAt, name: str) -> str:
        return NONE if level.curve.is_baseline else epsilon_cell(getattr(level, name))

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
        TableColumn("claimed", text=lambda level: spent(level, "claimed"), align="r"),
        TableColumn("provable", text=lambda level: spent(level, "provable"), align="r"),
        *names("joint delta", "curve"),
        *names("over"),
        TableColumn("folds", lambda level: level.curve.values.shape[0]),
        TableColumn("runs", lambda level: level.curve.values.shape[1]),
        *names("partial", "experiment"),
    ]
    shown = ("label", metric.key, *(each.key for each in BESIDE), "claimed", "provable")
    notes = lines("notes/levels", levels=levels, metric=metric)
    return tabled(levels, columns, shown, title=title, notes=notes)


#: What tables and figures call a baseline whose key says too little.
NAMES = {"als": "Clean MF (ALS)", "mf_sgd": "Clean MF (SGD)", "popularity": "Popularity"}


@dataclass(frozen=True)
class BaselineRow:
    """An error without privacy, in rating units, or another metric: printed in table 3, and reproduced.

    `printed` is None if table 3 leaves the baseline out, or if the experiment does not reproduce the paper's tables.
    `reproduced` is the mean over folds and runs, `sd_folds` the standard deviation over folds (None for one
    fold). Both are None if a task has no result yet.
    """

    dataset: str
    title: str
    experiment: str
    baseline: str
    printed: float | None
    reproduced: float | None
    sd_folds: float | None
    folds: int
    runs: int
    metric: Metric = RMSE


def error_row(
    experiment: Experiment, measured: Measured, name: str = "", printed: float | None = None
) -> BaselineRow:
    """The row of one baseline, or of an algorithm without noise."""
    values, complete = measured.values[:, :, :1], is_complete(measured)
    folds, runs, _ = values.shape
    return BaselineRow(
        dataset=experiment.dataset,
        title=experiment.title,
        experiment=experiment.name,
        baseline=name or measured.label,
        printed=printed,
        reproduced=float(values.mean()) if complete else None,
        sd_folds=float(sd_over_folds(values)[0]) if complete and folds > 1 else None,
        folds=folds,
        runs=runs,
        metric=experiment.metric,
    )


def baseline_rows(experiment: Experiment) -> list[BaselineRow]:
    """The baselines of one experiment: first those of table 3, in its order, then the others.

    If a config has the same baseline several times, with different parameters, each goes by its own label.
    """
    of_key = Counter(baseline.algorithm for baseline in experiment.baselines)
    held = is_held_against_tables(experiment.name) and experiment.metric == RMSE

    def row(baseline: Measured) -> BaselineRow:
        key = baseline.algorithm
        printed = printed_baseline(experiment.dataset, key.upper()) if held else None
        name = baseline.label if of_key[key] > 1 else NAMES.get(key, key.upper())
        return error_row(experiment, baseline, name, printed)

    order = {"ga": 0, "ia": 1, "ge": 2, "als": 3}
    return [row(b) for b in sorted(experiment.baselines, key=lambda b: order.get(b.algorithm, len(order)))]


def reproduced_cell(row: BaselineRow) -> str:
    """`0.9230 ± 0.0012`."""
    if row.reproduced is None:
        return "incomplete"
    return f"{row.reproduced:.4f}" + ("" if row.sd_folds is None else f" ± {row.sd_folds:.4f}")


BASELINE_COLUMNS: tuple[TableColumn[BaselineRow], ...] = (
    *names("dataset title experiment baseline"),
    number("printed", seen=_any("printed")),
    TableColumn("reproduced", text=reproduced_cell),
    *names("sd_folds folds runs"),
    _METRIC,
    number(
        "difference",
        lambda difference: signed(difference, 4),
        lambda row: None if None in (row.printed, row.reproduced) else row.reproduced - row.printed,
        seen=_any("printed"),
    ),
)


def baselines_table(rows: Sequence[BaselineRow]) -> TextTable:
    """Printed and reproduced RMSE of the baselines, or another metric, by experiment."""

    def title(row: BaselineRow) -> str:
        metric = "" if row.metric == RMSE else f", {row.metric.title}"
        return f"{row.title} ({row.experiment}{metric})"

    shown = ("baseline", "printed", "reproduced", "difference")
    return tabled(rows, BASELINE_COLUMNS, shown, title=title, notes=lines("notes/baselines", rows=rows))


def noise_free_table(experiment: Experiment) -> TextTable:
    """The error of each private algorithm without noise, if the experiment measured it."""
    found = (curve.without_noise() for curve in experiment.curves)
    return tabled(
        [error_row(experiment, each) for each in found if each is not None],
        shown=[
            TableColumn(f"{experiment.metric.title} without noise", lambda row: row.baseline),
            TableColumn("mean", text=lambda row: reproduced_cell(row).partition(" ±")[0], align="r"),
            number("sd over folds", value=lambda row: row.sd_folds),
        ],
        title=f"{experiment.title} ({experiment.name})",
    )


_HEAD = r"""% The figures of {name}, written by dpmf. \input this file; docs/report.md says how to use it.
\providecommand{{\dpmfresults}}{{results}}
\providecommand{{\dpmfset}}[2]{{\expandafter\def\csname dpmf@#1\endcsname{{#2}}}}
\providecommand{{\dpmf}}[1]{{\ifcsname dpmf@#1\endcsname\csname dpmf@#1\endcsname
  \else\GenericError{{}}{{dpmf: no figure is called #1}}{{}}{{}}\fi}}
\providecommand{{\dpmffigure}}[1]{{\includegraphics[width=\linewidth]{{\dpmfresults/#1}}}}
"""


def figure_macros(experiment: Experiment, crossings: Sequence[Crossing]) -> str:
    r"""Definitions of `\dpmf{NAME/ENTRY/BASELINE}` for crossings, as in tables, and `\dpmf{NAME/BASELINE}` for the
    RMSE of a baseline, or the metric that is shown.

    `/interval`, `/claimed` and `/provable` after the name of a crossing give its interval and its two ε.
    """
    found: list[tuple[tuple[str, ...], str]] = [
        ((row.baseline,), reproduced_cell(row).partition(" ±")[0]) for row in baseline_rows(experiment)
    ]
    for crossing in crossings:
        of = (crossing.label, crossing.baseline)
        point, bracket, interval = crossing_cell(crossing).partition(" [")
        found += [
            (of, point.rstrip("†")),
            ((*of, "interval"), bracket.strip() + interval.rstrip("*") or NONE),
            ((*of, "claimed"), epsilon_cell(crossing.claimed)),
            ((*of, "provable"), epsilon_cell(crossing.provable)),
        ]
    lines, taken = [_HEAD.format(name=printable(experiment.name))], set[str]()
    for path, text in found:
        name = "/".join(map(_plain, (experiment.name, *path)))
        while name in taken:
            name += "'"
        taken.add(name)
        lines.append(f"\\dpmfset{{{name}}}{{{escape_latex(printable(text))}}}\n")
    return "".join(lines)


def _plain(name: str) -> str:
    r"""A name in characters that `\csname` takes unchanged: ε becomes `epsilon`, others become a dash."""

    def spelt(found: re.Match[str]) -> str:
        return re.sub("[^A-Za-z]", "", escape_latex(found[0])).removeprefix("var") or "-"

    return re.sub(r"[^A-Za-z0-9 _.,+()-]", spelt, name)

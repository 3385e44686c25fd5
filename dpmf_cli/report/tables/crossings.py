"""The tables: crossings (Friedman et al. 2016, tables 4 and 5) and baselines (table 3), printed beside
reproduced where an experiment reproduces these tables.

Formats: `table` for a terminal or a pipe, `md`, `latex` (booktabs), and for programs `csv` and `json`,
where numbers are not rounded, absent ones are empty or null, and an infinite ε is the string "inf". Lines
end in \\n.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.evaluation.crossings import Crossing, Status, is_complete
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.numbers import signed, significant
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.papers.claims import is_held_against_tables
from dpmf_cli.papers.printed import printed_baseline
from dpmf_cli.report.tables.cells import NONE, crossing_cell, epsilon_cell, interval_notes, mark_notes, marks
from dpmf_cli.report.tables.layout import Group, TextTable, latex, markdown, terminal

Format = Literal["table", "csv", "md", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

_DRAWINGS = {"table": terminal, "md": markdown, "latex": latex}

#: What tables and figures call a baseline whose key says too little.
NAMES = {"mf_sgd": "Clean MF (SGD)"}

#: The baselines in table 3's order, registry keys.
_TABLE3 = ("ga", "ia", "ge", "als")


@dataclass(frozen=True)
class BaselineRow:
    """A baseline's RMSE, printed in table 3 and reproduced; rating units.

    `printed` is None for what the table leaves out, and where the experiment does not reproduce their tables.
    `reproduced` is the mean over folds and runs, `sd_folds` the standard deviation over folds (None for one
    fold). Both are None where a task has no result yet.
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

    @property
    def difference(self) -> float | None:
        """Reproduced − printed, where there are both."""
        if self.reproduced is None or self.printed is None:
            return None
        return self.reproduced - self.printed


def crossings_table(crossings: Sequence[Crossing], form: str = "table") -> str:
    """Printed and reproduced crossings: a row per algorithm and baseline.

    Rows are grouped by dataset, neighbours and mode (and by experiment, where there are several), and keep
    their order within a group; groups keep that of their first row. Raises `DpmfError` for an unknown format.
    """
    records = [{**asdict(crossing), "ratio": crossing.ratio} for crossing in crossings]
    fields = [*Crossing.__dataclass_fields__, "ratio"]
    return render(_crossings_text(crossings), fields, records, form)


def baseline_rows(experiment: Experiment) -> list[BaselineRow]:
    """The baselines of one experiment, those of table 3 first and in its order; each by its own label where a
    config has the same one several times, with other parameters."""
    order = {key: place for place, key in enumerate(_TABLE3)}
    keys = [baseline.algorithm for baseline in experiment.baselines]
    held = is_held_against_tables(experiment.name)
    rows = []
    for baseline in sorted(experiment.baselines, key=lambda each: order.get(each.algorithm, len(order))):
        key = baseline.algorithm
        name = baseline.label if keys.count(key) > 1 else NAMES.get(key, key.upper())
        rmse = baseline.rmse[:, :, :1]
        folds, runs, _ = rmse.shape
        complete = is_complete(baseline)
        rows.append(
            BaselineRow(
                dataset=experiment.dataset,
                title=experiment.title,
                experiment=experiment.name,
                baseline=name,
                printed=printed_baseline(experiment.dataset, key.upper()) if held else None,
                reproduced=float(rmse.mean()) if complete else None,
                sd_folds=float(sd_over_folds(rmse)[0]) if complete and folds > 1 else None,
                folds=folds,
                runs=runs,
            )
        )
    return rows


def baselines_table(rows: Sequence[BaselineRow], form: str = "table") -> str:
    """Printed and reproduced RMSE of the baselines, grouped by experiment, in the formats of this module."""
    records = [{**asdict(row), "difference": row.difference} for row in rows]
    fields = [*BaselineRow.__dataclass_fields__, "difference"]
    return render(_baselines_text(rows), fields, records, form)


def twins_table(experiment: Experiment, form: Literal["table", "md", "latex"] = "table") -> str:
    """The RMSE of each private algorithm without noise, where the experiment has it."""
    rows = []
    for curve in experiment.curves:
        twin = curve.without_noise()
        if twin is not None:
            complete = is_complete(twin)
            spread = (
                f"{float(sd_over_folds(twin.rmse)[0]):.4f}" if complete and experiment.folds > 1 else NONE
            )
            rows.append((curve.label, f"{twin.mean()[0]:.4f}" if complete else "incomplete", spread))
    return _DRAWINGS[form](
        TextTable(
            header=("RMSE without noise", "mean", "sd over folds"),
            alignment="lrr",
            groups=(Group(f"{experiment.title} ({experiment.name})", tuple(rows)),),
        )
    )


def render(text: TextTable, fields: Sequence[str], records: Sequence[Mapping[str, Any]], form: str) -> str:
    """A table as `text` for people, or as `records` with `fields` for programs. Raises `DpmfError` for an unknown
    format."""
    if form in _DRAWINGS:
        return _DRAWINGS[form](text)
    if form == "json":
        plain = [{key: strict(value) for key, value in record.items()} for record in records]
        return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "csv":
        stream = io.StringIO()
        writer = csv.DictWriter(stream, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return stream.getvalue()
    raise DpmfError(f'unknown table format "{form}"{did_you_mean(form, FORMATS)}')


def strict(value: Any) -> Any:
    """JSON has no infinity: ±inf is a string."""
    return repr(value) if isinstance(value, float) and math.isinf(value) else value


def _crossings_text(crossings: Sequence[Crossing]) -> TextTable:
    several = len({crossing.experiment for crossing in crossings if crossing.experiment}) > 1
    with_theta = any(crossing.theta is not None for crossing in crossings)
    with_printed = any(crossing.printed is not None for crossing in crossings)
    groups: dict[str, list[Crossing]] = {}
    for crossing in crossings:
        title = f"{crossing.dataset}, {crossing.neighbours}, {crossing.mode}"
        if several and crossing.experiment:
            title += f" ({crossing.experiment})"
        groups.setdefault(title, []).append(crossing)
    printed, ratio = (("printed",), ("ratio",)) if with_printed else ((), ())
    theta = ("θ",) if with_theta else ()
    return TextTable(
        header=("algorithm", "baseline", *printed, "reproduced", *ratio, *theta, "claimed", "provable"),
        alignment="ll" + "r" * len(printed) + "l" + "r" * len((*ratio, *theta)) + "rr",
        groups=tuple(
            Group(
                title,
                tuple(
                    crossing_cells(each, with_printed=with_printed, with_theta=with_theta) for each in group
                ),
            )
            for title, group in groups.items()
        ),
        notes=tuple(crossing_notes(crossings)) if crossings else (),
    )


def crossing_notes(crossings: Sequence[Crossing]) -> Iterator[str]:
    """What the columns and signs of a table of these crossings mean."""
    if any(crossing.printed is not None for crossing in crossings):
        yield "printed: by Friedman et al. (2016), where their tables are reproduced; ratio: reproduced/printed"
    if any(crossing.status is Status.NOT_RUN for crossing in crossings):
        yield f"{Status.NOT_RUN}: no experiment here reproduces this cell of their tables 4 and 5"
    yield "reproduced and claimed: total ε as the publication of what was run states it"
    yield "provable: the ε that can be proved for what was run (∞: none can)"
    if any(crossing.theta is not None for crossing in crossings):
        yield "θ: at the crossing; the noise of measurement i has the scale Δ_i/θ_i, and the θ_i sum to θ"
    yield from interval_notes(crossings)
    yield from mark_notes(crossings)
    references = dict.fromkeys(crossing.baseline for crossing in crossings if crossing.reference)
    if references:
        yield f"{', '.join(references)}: Netflix's own recommender, as printed by McSherry and Mironov; not measured"
    loose = dict.fromkeys(crossing.baseline for crossing in crossings if not crossing.comparable)
    if loose:
        yield f"{', '.join(loose)}: of that set of the whole data, comparable only loosely with what is tested here"


def crossing_cells(
    crossing: Crossing, *, with_printed: bool = True, with_theta: bool = False
) -> tuple[str, ...]:
    """A crossing as a row of the table, rounded: from its label to what is provable."""
    printed = NONE if crossing.printed is None else f"{crossing.printed:g}"
    ratio = NONE if crossing.ratio is None else significant(crossing.ratio)
    return (
        crossing.label + marks(joint=crossing.joint, delta=crossing.delta),
        crossing.baseline,
        *((printed,) if with_printed else ()),
        crossing_cell(crossing),
        *((ratio,) if with_printed else ()),
        *((epsilon_cell(crossing.theta),) if with_theta else ()),
        epsilon_cell(crossing.claimed),
        epsilon_cell(crossing.provable),
    )


def _baselines_text(rows: Sequence[BaselineRow]) -> TextTable:
    groups: dict[tuple[str, str], list[BaselineRow]] = {}
    for row in rows:
        groups.setdefault((row.title, row.experiment), []).append(row)
    with_printed = any(row.printed is not None for row in rows)
    printed, difference = (("printed",), ("difference",)) if with_printed else ((), ())
    notes = ["RMSE; ± the standard deviation over folds"] if rows else []
    if with_printed:
        notes.append("printed: by Friedman et al. (2016), where their tables are reproduced")
    return TextTable(
        header=("baseline", *printed, "reproduced", *difference),
        alignment="lrlr" if with_printed else "ll",
        groups=tuple(
            Group(
                f"{title} ({experiment})",
                tuple(baseline_cells(row, with_printed=with_printed) for row in group),
            )
            for (title, experiment), group in groups.items()
        ),
        notes=tuple(notes),
    )


def baseline_cells(row: BaselineRow, *, with_printed: bool = True) -> tuple[str, ...]:
    """A baseline as a row of the table: its name, printed, reproduced with its spread, difference."""
    reproduced = "incomplete" if row.reproduced is None else f"{row.reproduced:.4f}"
    spread = "" if row.sd_folds is None else f" ± {row.sd_folds:.4f}"
    difference = NONE if row.difference is None else signed(row.difference, 4)
    printed = NONE if row.printed is None else f"{row.printed:.4f}"
    return (
        row.baseline,
        *((printed,) if with_printed else ()),
        reproduced + spread,
        *((difference,) if with_printed else ()),
    )

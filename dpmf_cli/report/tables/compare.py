"""The tables of `dpmf compare`: settings in which configs differ, and differences of the errors."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from string import ascii_uppercase
from typing import Any

from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.evaluation.paired_difference import Difference
from dpmf_cli.experiment.results.folders import Compared
from dpmf_cli.report.tables.layout import (
    DRAWINGS,
    NONE,
    Group,
    TableColumn,
    TextTable,
    as_objects,
    draw,
    json_text,
    names,
    tabled,
)
from dpmf_cli.report.words import lines


def comparisons_text(several: Sequence[Compared], form: str = "table") -> str:
    """Draws settings and differences of each pair in `table` and `md`; in `csv`, the differences of all pairs.

    In `json` a pair is an object with both; several pairs are a list of such objects. Raises `DpmfError` for an
    unknown format.
    """
    tables = list(map(differences_table, several))
    if form in ("table", "md"):
        return "\n".join(
            DRAWINGS[form](settings_table([compared]))
            + "\n"
            + (DRAWINGS[form](errors) if errors.groups else "".join(f"- {note}\n" for note in errors.notes))
            for compared, errors in zip(several, tables, strict=True)
        )
    if form == "json":
        objects = [
            {
                "a": compared.names[0],
                "b": compared.names[1],
                "settings": [asdict(each) for each in compared.settings],
                "differences": as_objects(errors),
                "left_out": compared.comparison.left_out,
            }
            for compared, errors in zip(several, tables, strict=True)
        ]
        return json_text(objects[0] if len(objects) == 1 else objects)
    return draw(replace(tables[0], records=tuple(row for table in tables for row in table.records)), form)


def settings_table(several: Sequence[Compared]) -> TextTable:
    """Returns the settings in which any experiment differs from the first, with columns A, B and so on for each."""
    letters = [*ascii_uppercase, *map(str, range(27, len(several) + 2))][: len(several) + 1]
    runs = [several[0].names[0], *(compared.names[1] for compared in several)]
    firsts = {each.setting: each.a for compared in several for each in compared.settings}
    others = [{each.setting: each.b for each in compared.settings} for compared in several]
    rows = tuple(
        (setting, _value(first), *(_value(other.get(setting, first)) for other in others))
        for setting, first in firsts.items()
    )
    named = ", ".join(f"{run} ({letter})" for run, letter in zip(runs, letters, strict=True))
    same = ("no setting differs",) if not rows else ()
    groups = (Group(f"Settings that differ: {named}", rows),) if rows else ()
    return TextTable(("setting", *letters), "l" * (len(runs) + 1), groups, same)


def _value(value: Any) -> str:
    """Returns a setting as a config has it; of a long list, only the ends."""
    if value is None:
        return NONE
    if isinstance(value, list) and len(value) > 6:
        return f"[{value[0]}, {value[1]}, … {value[-1]}] ({len(value)})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


COLUMNS: tuple[TableColumn[Difference], ...] = (
    *names("algorithm label_a label_b neighbours"),
    TableColumn("epsilon", text=lambda row: _number(row.epsilon, ".4g"), head="ε", align="r"),
    TableColumn("a", text=lambda row: _number(row.a, ".4f"), head="RMSE of A", align="r"),
    TableColumn("b", text=lambda row: _number(row.b, ".4f"), head="RMSE of B", align="r"),
    TableColumn(
        "difference",
        text=lambda row: NONE if row.difference is None else signed(row.difference, 4),
        head="B − A",
        align="r",
    ),
    *names("low high over folds runs same provable_a provable_b"),
    TableColumn(
        "verdict",
        text=lambda row: "the same" if row.same else row.verdict or "not clearly either",
        head="B is",
    ),
)


def differences_table(compared: Compared) -> TextTable:
    """Returns one experiment's errors beside another's, at each ε that both have.

    Curves that are the same at every ε have rows for programs only.
    """
    a, b = compared.names
    runs: list[TableColumn[Difference]] = [
        TableColumn("run_a", lambda row: a),
        TableColumn("run_b", lambda row: b),
    ]
    interval: TableColumn[Difference] = TableColumn(
        "95 % interval",
        text=lambda row: NONE if row.low is None else f"[{signed(row.low, 4)}, {signed(row.high or 0.0, 4)}]",
    )
    whole = tabled(compared.comparison.differences, [*runs, *COLUMNS], title="")
    different = [row for _, rows in _pairs(compared) if not all(each.same for each in rows) for row in rows]
    shown = ("epsilon", "a", "b", "difference", interval, "verdict")

    def title(row: Difference) -> str:
        name, neighbours = _pair(row)
        return name if neighbours == "none" else f"{name}, {neighbours}"

    seen = tabled(different, COLUMNS, shown, title=title, notes=_notes(compared))
    return replace(seen, fields=whole.fields, records=whole.records)


def _pair(each: Difference) -> tuple[str, str]:
    """Returns the name and the neighbours of a pair of curves."""
    a, b = each.label_a, each.label_b
    return a if a == b else f"{a} (A), {b} (B)", each.neighbours


def _pairs(compared: Compared) -> Iterator[tuple[tuple[str, str], list[Difference]]]:
    """Yields the differences of each pair of curves."""
    for key, rows in groupby(compared.comparison.differences, key=_pair):
        yield key, list(rows)


def _number(value: float, form: str) -> str:
    return "∞" if value == float("inf") else format(value, form)


def _notes(compared: Compared) -> list[str]:
    rows, pairs = compared.comparison.differences, list(_pairs(compared))
    unequal = [(name, row) for (name, _), of in pairs for row in of if row.provable_a != row.provable_b]
    return lines(
        "notes/compare",
        title=compared.title,
        rows=rows,
        runs=max((each.runs for each in rows), default=1),
        same=[name for (name, _), of in pairs if all(row.same for row in of)],
        unequal=dict(unequal).items(),
        left_out=compared.comparison.left_out,
    )

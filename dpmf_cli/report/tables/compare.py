"""The tables of `dpmf compare`: settings in which configs differ, and differences of the errors."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, groupby
from string import ascii_uppercase
from typing import Any

from dpmf_cli.evaluation.numbers import signed, significant
from dpmf_cli.evaluation.paired_difference import Difference
from dpmf_cli.report.tables.formats import render, strict
from dpmf_cli.report.tables.layout import Group, TextTable, markdown, terminal
from dpmf_cli.results.compare_folders import Compared

_NONE = "–"


def comparisons_text(several: Sequence[Compared], form: str = "table") -> str:
    """Draws settings and differences of each pair in `table` and `md`; in `csv`, the differences of all pairs.

    In `json` a pair is an object with both; several pairs are a list of such objects. Raises `DpmfError` for an
    unknown format.
    """
    if form in ("table", "md"):
        return "\n".join(_told(compared, terminal if form == "table" else markdown) for compared in several)
    records = [
        [
            {"run_a": compared.names[0], "run_b": compared.names[1], **asdict(each), "verdict": each.verdict}
            for each in compared.comparison.differences
        ]
        for compared in several
    ]
    if form == "json":
        content = [_object(*pair) for pair in zip(several, records, strict=True)]
        whole = content[0] if len(content) == 1 else content
        return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    fields = ["run_a", "run_b", *Difference.__dataclass_fields__, "verdict"]
    return render(differences_text(several[0]), fields, chain.from_iterable(records), form)


def _told(compared: Compared, draw: Callable[[TextTable], str]) -> str:
    errors = differences_text(compared)
    told = draw(errors) if errors.groups else "".join(f"- {note}\n" for note in errors.notes)
    return f"{draw(settings_text([compared]))}\n{told}"


def _object(compared: Compared, differences: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "a": compared.names[0],
        "b": compared.names[1],
        "settings": [asdict(each) for each in compared.settings],
        "differences": [{key: strict(value) for key, value in record.items()} for record in differences],
        "left_out": compared.comparison.left_out,
    }


def settings_text(several: Sequence[Compared]) -> TextTable:
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
        return _NONE
    if isinstance(value, list) and len(value) > 6:
        return f"[{value[0]}, {value[1]}, … {value[-1]}] ({len(value)})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def differences_text(compared: Compared) -> TextTable:
    """Returns one experiment's errors beside another's, at each ε that both have."""
    groups = []
    for (name, neighbours), rows in _pairs(compared):
        if not all(row.same for row in rows):
            kind = "" if neighbours == "none" else f", {neighbours}"
            groups.append(Group(name + kind, tuple(map(_cells, rows))))
    return TextTable(
        header=("ε", "RMSE of A", "RMSE of B", "B − A", "95 % interval", "B is"),
        alignment="rrrrll",
        groups=tuple(groups),
        notes=tuple(_notes(compared)),
    )


def _pairs(compared: Compared) -> Iterator[tuple[tuple[str, str], list[Difference]]]:
    """Yields the differences of each pair of curves, with the pair's name and neighbours."""

    def pair(each: Difference) -> tuple[str, str]:
        a, b = each.label_a, each.label_b
        return a if a == b else f"{a} (A), {b} (B)", each.neighbours

    for key, rows in groupby(compared.comparison.differences, key=pair):
        yield key, list(rows)


def _cells(row: Difference) -> tuple[str, ...]:
    return (
        "∞" if row.epsilon == float("inf") else f"{row.epsilon:.4g}",
        _rmse(row.a),
        _rmse(row.b),
        _NONE if row.difference is None else signed(row.difference, 4),
        _NONE if row.low is None or row.high is None else f"[{signed(row.low, 4)}, {signed(row.high, 4)}]",
        "the same" if row.same else row.verdict or "not clearly either",
    )


def _rmse(value: float) -> str:
    return "∞" if value == float("inf") else f"{value:.4f}"


def _notes(compared: Compared) -> Iterator[str]:
    differences = compared.comparison.differences
    if differences:
        folds, runs = differences[0].folds, max(each.runs for each in differences)
        yield f"paired over the {_count(folds, 'fold')} and {_count(runs, 'run')} that both have, on {compared.title}"
        same = [name for (name, _), rows in _pairs(compared) if all(row.same for row in rows)]
        if same:
            yield f"the same at every ε in common: {', '.join(same)}"
        if folds == runs == 1:
            yield "one fold and one run: there are no intervals, so nothing is clearly better or worse"
        else:
            yield "each interval is for its own ε; of many without a difference, one in twenty excludes 0 by chance"
    if any(each.over == "runs" for each in differences):
        yield "one fold: the intervals are over runs only, not over the choice of test ratings"
    yield from _provable(compared)
    yield from (f"not compared: {line}" for line in compared.comparison.left_out)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _provable(compared: Compared) -> Iterator[str]:
    """Yields notes on the pairs of curves whose provable ε differ at the same ε."""
    for (name, _), rows in _pairs(compared):
        unequal = [row for row in rows if row.provable_a != row.provable_b]
        if unequal:
            at, in_a, in_b = (getattr(unequal[-1], key) for key in ("epsilon", "provable_a", "provable_b"))
            yield f"provable for {name} at ε = {at:.4g}: {_epsilon(in_a)} in A, {_epsilon(in_b)} in B"


def _epsilon(value: float) -> str:
    return "nothing" if value == float("inf") else significant(value)

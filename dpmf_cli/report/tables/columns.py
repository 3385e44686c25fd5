"""Columns: a table is a list of them, and the order in which people see them. Also the cells that tables share."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from dpmf_cli.evaluation.crossings import End
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.layout import Group, TextTable

Row = TypeVar("Row")

NONE = "–"
"""The cell of a missing number."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table: its name, how a value is read from a row, and how it is written.

    name   its key for programs, and its heading for people unless it has a `head`
    value  its value for programs; by default the row's attribute of that name
    text   its cell for people; by default the value
    align  "l" or "r"
    kept   whether a table of these rows has the column; by default it does
    seen   whether people see it in a table of these rows
    """

    name: str
    value: Callable[[Row], Any] | None = None
    text: Callable[[Row], str] | None = None
    head: str | None = None
    align: str = "l"
    kept: Callable[[Sequence[Row]], bool] = lambda rows: True
    seen: Callable[[Sequence[Row]], bool] = lambda rows: True

    def of(self, row: Row) -> Any:
        return self.value(row) if self.value else getattr(row, self.name)

    def cell(self, row: Row) -> str:
        return self.text(row) if self.text else str(self.of(row))

    def at(self, find: Callable[[Any], Row | None], name: str, head: str | None = None) -> "Column[Any]":
        """The same column, of what `find` finds for a row; absent where it finds None."""

        def value(row: Any) -> Any:
            return None if (found := find(row)) is None else self.of(found)

        def text(row: Any) -> str:
            return NONE if (found := find(row)) is None else self.cell(found)

        return Column(name, value, text, head or self.head or self.name, self.align)


def tabled(
    rows: Sequence[Row],
    columns: Iterable[Column[Row]] = (),
    shown: Iterable[str | Column[Row]] = (),
    *,
    title: str | Callable[[Row], str | tuple[str, str]],
    notes: Iterable[str] = (),
) -> TextTable:
    """Returns a table of all `columns` for programs, and of those `shown`, in that order, for people.

    A column that only people see stands in `shown` itself. `title` is the only group's, or says to which group a row
    belongs, with or without a sentence. Rows keep their order within a group, and groups stand in the order of their
    first rows.
    """
    kept = {column.name: column for column in columns if column.kept(rows)}
    asked = (kept.get(each) if isinstance(each, str) else each for each in shown)
    used = [column for column in asked if column and column.seen(rows)]
    groups: dict[str | tuple[str, str], list[tuple[str, ...]]] = {title: []} if isinstance(title, str) else {}
    for row in rows:
        cells = tuple(column.cell(row) for column in used)
        groups.setdefault(title if isinstance(title, str) else title(row), []).append(cells)
    return TextTable(
        tuple(column.name if column.head is None else column.head for column in used),
        "".join(column.align for column in used),
        tuple(
            Group(of, tuple(cells)) if isinstance(of, str) else Group(of[0], tuple(cells), of[1])
            for of, cells in groups.items()
        ),
        tuple(notes),
        tuple(kept),
        tuple(tuple(column.of(row) for column in kept.values()) for row in rows),
    )


def cells_of(row: Row, columns: Iterable[Column[Row]]) -> dict[str, str]:
    """Returns the cells of one row by the names of columns."""
    return {column.name: column.cell(row) for column in columns}


def names(spaced: str, of: str = "") -> Iterator[Column[Any]]:
    """Yields columns that show an attribute of the row as it is, or of what stands at the path `of`."""
    for name in spaced.split():
        yield Column(name, attrgetter(f"{of}.{name}" if of else name))


def number(name: str, form: str = ".4f", **more: Any) -> Column[Any]:
    """Returns a column of a number that may be absent, written in that form."""

    def text(row: Any) -> str:
        value = getattr(row, name)
        return NONE if value is None else format(value, form)

    return Column(name, text=text, align="r", **more)


def epsilon(name: str, **more: Any) -> Column[Any]:
    """Returns a column of an ε."""
    return Column(name, text=lambda row: epsilon_cell(getattr(row, name)), align="r", **more)


def epsilon_cell(value: End) -> str:
    """Returns an ε to three figures; ∞ if it is infinite, and `NONE` if there is none."""
    if not isinstance(value, float) or math.isnan(value):
        return NONE
    return "∞" if math.isinf(value) else significant(value)


def marks(*, joint: bool, delta: float) -> str:
    """Returns the marks after a curve's name: ‡ for joint DP, § for (ε, δ)."""
    return ("‡" if joint else "") + ("§" if delta else "")


def marked(row: Any) -> str:
    """Returns the label of a curve, or of what was found about it, with its marks."""
    return str(row.label) + marks(joint=row.joint, delta=row.delta)

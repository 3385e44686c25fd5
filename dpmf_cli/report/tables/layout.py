"""Tables: made of columns, and drawn for people (terminal, Markdown, LaTeX) or for programs (CSV, JSON).

A table is a list of columns, and the order in which people see them. Its rows are in groups under a common header,
as in the papers: a group per dataset, neighbours and mode. Cells are plain text, already rounded; each drawing
escapes what its format needs. LaTeX uses booktabs. In CSV and JSON numbers are not rounded, absent ones are empty or
null, and an infinite ε is the string "inf". Lines end in \\n.
"""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from operator import attrgetter
from textwrap import wrap
from typing import Any, Generic, Literal, TypeVar, get_args

from rich.cells import cell_len

from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.terminal import csv_text, printable, significant
from dpmf_cli.evaluation.crossings import End

Format = Literal["table", "csv", "md", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

_LETTERS = (
    r"\alpha \beta \gamma \delta \Delta \varepsilon \eta \theta \lambda \mu \rho \sigma \Sigma \tau "
    r"\leq \geq \approx \surd \to \pm \infty - \times < >"
)

#: Characters, and how LaTeX text mode writes them in any font encoding.
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#{}"},
    **{
        letter: f"${name}$"
        for letter, name in zip("αβγδΔεηθλμρσΣτ≤≥≈√→±∞−×<>", _LETTERS.split(), strict=True)
    },
    **{digit: rf"\textsubscript{{{value}}}" for value, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    "\\": r"\textbackslash{}",
    "_": r"\_\allowbreak{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "§": r"\textsuperscript{\S}",
    "†": r"\textsuperscript{$\dagger$}",
    "‡": r"\textsuperscript{$\ddagger$}",
    "‖": r"\textsuperscript{$\|$}",
    "*": r"\textsuperscript{*}",
    "°": r"\textsuperscript{$\circ$}",
}

_LONG_CELL = 20
"""A column with cells longer than this breaks its lines in LaTeX; characters."""
_BREAKS = r">{\raggedright\arraybackslash}X"
"""A tabularx column that breaks its lines. The first column always does, so that others get their full width."""


@dataclass(frozen=True)
class Group:
    """Rows that share a title, and a sentence below it; every row has one cell per column."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    sentence: str = ""

    @property
    def heading(self) -> tuple[str, ...]:
        return (self.title, self.sentence) if self.sentence else (self.title,)


@dataclass(frozen=True)
class TextTable:
    """A header, groups of rows, and notes below; `alignment` has an "l" or an "r" for each column.

    Programs read the values of `records` by the names `fields`; a table that only people read has neither.
    """

    header: tuple[str, ...]
    alignment: str
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    records: tuple[Sequence[Any], ...] = ()


def draw(table: TextTable, form: str = "table") -> str:
    """A table in one of `FORMATS`. Raises `DpmfError` for another format."""
    if form in DRAWINGS:
        return DRAWINGS[form](table)
    if form == "csv":
        return csv_text([table.fields, *table.records])
    if form == "json":
        return json_text(as_objects(table))
    raise DpmfError(f'unknown table format "{form}"{did_you_mean(form, FORMATS)}')


def as_objects(table: TextTable) -> list[Mapping[str, Any]]:
    """The table's records for JSON; a table that only people read has texts of cells, and their group."""
    if not table.fields:
        cells = [(group.title, row) for group in table.groups for row in group.rows]
        return [{"group": title, **dict(zip(table.header, row, strict=True))} for title, row in cells]
    return [dict(zip(table.fields, map(strict, record), strict=True)) for record in table.records]


def strict(value: Any) -> Any:
    """What JSON has for a value: a string for ±inf, and for a NaN."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _printable(table: TextTable) -> TextTable:
    """The table with every character made visible, and each cell, title and note on one line."""

    def row(cells: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(printable, cells))

    groups = [
        Group(printable(group.title), tuple(map(row, group.rows)), printable(group.sentence))
        for group in table.groups
    ]
    return TextTable(row(table.header), table.alignment, tuple(groups), row(table.notes))


def first_rows(table: TextTable, most: int, everything: str) -> TextTable:
    """The table with at most `most` rows, and a note on how many of `everything` are left out."""
    rows, room = sum(len(group.rows) for group in table.groups), most
    if rows <= most:
        return table
    groups = []
    for group in table.groups:
        groups += [replace(group, rows=group.rows[:room])] * (room > 0)
        room -= len(group.rows)
    note = f"{rows - most:,} of {rows:,} rows are left out here; all of them: {everything}"
    return replace(table, groups=tuple(groups), notes=(*table.notes, note))


def _widths(table: TextTable) -> list[int]:
    """The width of each column on a terminal: that of its longest cell."""
    columns = zip(table.header, *(row for group in table.groups for row in group.rows), strict=True)
    return [max(map(cell_len, column)) for column in columns]


def terminal(table: TextTable, window: int | None = None) -> str:
    """Plain text without colour, with columns aligned over all groups.

    In a window of so many columns, those that do not fit are below each row, by name, and long notes wrap. In a pipe,
    a table is as wide as needed.
    """
    if window is None and sys.stdout.isatty():
        window = shutil.get_terminal_size().columns
    table = _printable(table)
    widths = _widths(table)
    ends = accumulate(widths, lambda end, width: end + 2 + width)
    fits = max(1, sum(not window or end <= window for end in ends))

    def line(cells: tuple[str, ...]) -> str:
        filled = (
            (cell, " " * (width - cell_len(cell))) for cell, width in zip(cells[:fits], widths, strict=False)
        )
        sides = zip(filled, table.alignment, strict=False)
        return "  ".join(cell + room if side == "l" else room + cell for (cell, room), side in sides)

    def wrapped(text: str, indent: str = "") -> list[str]:
        return wrap(text, window or sys.maxsize, initial_indent=indent, subsequent_indent="  ") or [""]

    def row(cells: tuple[str, ...]) -> list[str]:
        rest = zip(table.header[fits:], cells[fits:], strict=True)
        named = ", ".join(f"{head} {cell}" for head, cell in rest if cell not in ("", NONE))
        return [line(cells), *(wrapped(named, "  ") if named else [])]

    ruler = "─" * (sum(widths[:fits]) + 2 * (fits - 1))
    lines: list[str] = []
    for group in table.groups:
        for heading in group.heading:
            lines += wrapped(heading)
        lines += [line(table.header), ruler, *chain.from_iterable(map(row, group.rows)), ""]
    if not table.groups:
        lines += ["nothing to show", ""]
    for note in table.notes:
        lines += wrapped(note)
    return "".join(f"{each.rstrip()}\n" for each in "\n".join(lines).rstrip("\n").split("\n"))


def markdown(table: TextTable) -> str:
    """GitHub-flavoured Markdown: a table per group under its title, and the notes as a list."""
    table = _printable(table)

    def line(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(escape_markdown(cell) for cell in cells)} |\n"

    ruler = "|" + "".join(" --- |" if side == "l" else " ---: |" for side in table.alignment) + "\n"
    groups = [
        f"**{escape_markdown(group.title)}**\n\n"
        + (f"{escape_markdown(group.sentence)}\n\n" if group.sentence else "")
        + f"{line(table.header)}{ruler}{''.join(map(line, group.rows))}"
        for group in table.groups
    ]
    notes = markdown_notes(table)
    return "\n".join([*(groups or ["nothing to show\n"]), *([notes] if notes else [])])


def markdown_notes(table: TextTable) -> str:
    return "".join(f"- {escape_markdown(note)}\n" for note in table.notes)


def latex(table: TextTable) -> str:
    r"""A `tabularx` as wide as a line, ruled by booktabs (`\usepackage{booktabs,tabularx}`), in \scriptsize.

    Groups, their sentences and the notes span the columns and break into lines, as do the cells of a long column.
    """
    table = _printable(table)

    def line(cells: tuple[str, ...]) -> str:
        # After the end of a line, LaTeX would read a bracket as extra space for the line.
        guard = "{}" if cells[0].startswith("[") else ""
        return f"{guard}{' & '.join(escape_latex(cell) for cell in cells)} \\\\\n"

    def spanning(text: str) -> str:
        return f"\\multicolumn{{{len(table.header)}}}{{@{{}}p{{\\linewidth}}@{{}}}}{{\\raggedright {text}}} \\\\\n"

    columns = "".join(
        _BREAKS if side == "l" and (at == 0 or width > _LONG_CELL) else side
        for at, (side, width) in enumerate(zip(table.alignment, _widths(table), strict=True))
    )
    lines = [
        "{\\scriptsize\\setlength{\\tabcolsep}{3pt}%\n",
        f"\\begin{{tabularx}}{{\\linewidth}}{{@{{}}{columns}@{{}}}}\n",
        "\\toprule\n",
        line(table.header),
    ]
    for group in table.groups:
        headings = [spanning(rf"\emph{{{escape_latex(text)}}}") for text in group.heading]
        lines += ["\\midrule\n", *headings, *map(line, group.rows)]
    lines.append("\\bottomrule\n")
    lines += [spanning(escape_latex(note)) for note in table.notes]
    return "".join([*lines, "\\end{tabularx}}\n"])


DRAWINGS = {"table": terminal, "md": markdown, "latex": latex}


def escape_latex(text: str) -> str:
    """`text`, escaped so that LaTeX prints it literally."""
    return "".join(_LATEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """`text`, escaped so that Markdown shows it literally, in a table's cell too."""
    return re.sub(r"([\\|*_`<])", r"\\\1", text)


Row = TypeVar("Row")

NONE = "–"
"""The cell of a missing number."""


@dataclass(frozen=True)
class TableColumn(Generic[Row]):
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

    def at(self, find: Callable[[Any], Row | None], name: str, head: str | None = None) -> "TableColumn[Any]":
        """The same column, of what `find` finds for a row; absent where it finds None."""

        def value(row: Any) -> Any:
            return None if (found := find(row)) is None else self.of(found)

        def text(row: Any) -> str:
            return NONE if (found := find(row)) is None else self.cell(found)

        return TableColumn(name, value, text, head or self.head or self.name, self.align)


def tabled(
    rows: Sequence[Row],
    columns: Iterable[TableColumn[Row]] = (),
    shown: Iterable[str | TableColumn[Row]] = (),
    *,
    title: str | Callable[[Row], str | tuple[str, str]],
    notes: Iterable[str] = (),
) -> TextTable:
    """A table of all `columns` for programs, and of those `shown`, in that order, for people.

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


def cells_of(row: Row, columns: Iterable[TableColumn[Row]]) -> dict[str, str]:
    """The cells of one row by the names of columns."""
    return {column.name: column.cell(row) for column in columns}


def names(spaced: str, of: str = "") -> Iterator[TableColumn[Any]]:
    """Yields columns that show an attribute of the row as it is, or of what stands at the path `of`."""
    for name in spaced.split():
        yield TableColumn(name, attrgetter(f"{of}.{name}" if of else name))


def number(
    name: str,
    form: str | Callable[[Any], str] = ".4f",
    value: Callable[[Any], Any] | None = None,
    **more: Any,
) -> TableColumn[Any]:
    """A column of a number that may be absent, written in that form."""
    read = value or attrgetter(name)

    def text(row: Any) -> str:
        if (found := read(row)) is None:
            return NONE
        return form(found) if callable(form) else format(found, form)

    return TableColumn(name, read, text, align="r", **more)


def where_known(column: TableColumn[Row]) -> TableColumn[Row]:
    """The column, kept only where some row has a value."""
    return replace(column, kept=lambda rows: any(column.of(row) is not None for row in rows))


def epsilon_cell(value: End, unit: str = "") -> str:
    """An ε to three figures with its unit; ∞ if it is infinite, and `NONE` if there is none."""
    if not isinstance(value, float) or math.isnan(value):
        return NONE
    return "∞" if math.isinf(value) else significant(value) + unit


def interval(row: Any) -> str:
    """` [0.9120, 0.9310]*`: an interval of RMSE, and whether it is over runs only; "" where there is none."""
    return "" if row.low is None else f" [{row.low:.4f}, {row.high:.4f}]" + "*" * (row.over == "runs")


def marks(*, joint: bool, delta: float) -> str:
    """The marks after a curve's name: ‡ for joint DP, § for (ε, δ)."""
    return ("‡" if joint else "") + ("§" if delta else "")


def marked(row: Any) -> str:
    """The label of a curve, or of what was found about it, with its marks."""
    return str(row.label) + marks(joint=row.joint, delta=row.delta)

"""Guesses what a file of ratings looks like, for messages that name the fix and for users who have no config yet."""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.archives import unpacked
from dpmf_cli.datasets.formats import own_columns
from dpmf_cli.datasets.formats.own_columns import Column, in_words, not_one, roles_of, scale_of
from dpmf_cli.datasets.spec import CsvSpec

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", ":": "colon", " ": "space"}
_ROWS, _BYTES = 1000, 1 << 18
_AGREEING = 0.9
"""Share of the lines that a separator must cut into the same number of fields."""
_MOST_UNNAMED = 9
"""Most columns among which users and items are looked for by content. More are likely a matrix."""
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+(,\d+)?\s*")
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*[\[{]\s*["{\[]')
_COMMENTS = ("#", "%", "//")


@dataclass(frozen=True)
class Told:
    """What the user says about a file. Whatever is None, and every role that is left out, is guessed.

    columns   names or numbers, by role
    """

    separator: str | None = None
    header: bool | None = None
    decimal: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """How the beginning of a file looks. Its `columns` have names if there is a `header`."""

    separator: str
    header: bool
    decimal: str
    columns: tuple[Column, ...]

    def key(self, at: int) -> str | int:
        """Returns a column as a config names it: by its name, or by its number if it has no unique name."""
        names = [column.name for column in self.columns]
        return names[at] if self.header and names.count(names[at]) == 1 else at

    def position(self, path: Path, role: str, column: str) -> int:
        """Returns the position of a column with that name or number. Raises `DpmfError` if the file has none."""
        names = [each.name for each in self.columns] if self.header else []
        if column in names:
            return names.index(column)
        if column.isdecimal() and int(column) < len(self.columns):
            return int(column)
        numbers = [str(at) for at in range(len(self.columns))]
        raise not_one(
            str(path) if own_columns.is_parquet(path) else f"{path}:1", column, role, names or numbers
        )


@dataclass(frozen=True)
class Guess:
    """What a config may say about a file.

    columns   by role (user, item, rating, timestamp) a name, or a number if there is no header; a role without a
              likely column is left out
    scale     (minimum, maximum, step) of the ratings that occur, with step 0 for many different values; None without
              a column of ratings. The site may allow more ratings, and its scale must be public: ask the user
    words     a statement for each guess: what was guessed, and from what
    """

    separator: str
    header: bool
    decimal: str
    columns: dict[str, str | int]
    scale: tuple[float, float, float] | None
    words: tuple[str, ...]

    @property
    def keys(self) -> dict[str, Any]:
        """The guess as keys of `dataset:`, without those that equal the default."""
        plain = {"separator": ",", "header": True, "decimal": "."}
        given = {key: getattr(self, key) for key, usual in plain.items() if getattr(self, key) != usual}
        scale = dict(zip(("minimum", "maximum", "step"), self.scale, strict=True)) if self.scale else {}
        return {"columns": self.columns, **given, "scale": scale}


_NOTHING = Told()


def guess_format(path: Path, told: Told = _NOTHING) -> Guess:
    """Guesses a file's layout from its beginning, and its scale from all of its ratings.

    Raises `DpmfError` for a file that cannot be read, is empty, is not text, has lines that cannot be cut into three
    columns, looks like a matrix of users and items, or lacks a column that `told` names.
    """
    layout = layout_of(path, told)
    given = {role: layout.position(path, role, column) for role, column in told.columns.items()}
    roles = roles_of(layout.columns, given)
    _refuse_matrix(path, layout.columns, roles)
    values = _ratings(path, layout, roles["rating"][0]) if "rating" in roles else np.empty(0)
    scale = scale_of(values) if len(values) else None
    header = "a header line" if layout.header else "no header line"
    comma = ", decimal commas" if layout.decimal == "," else ""
    words = [f"{_named(layout.separator)}-separated, {header}{comma}"]
    if own_columns.is_parquet(path):
        words = ["Parquet"]
    for role in ("user", "item", "rating", "timestamp"):
        if role in roles:
            at, why = roles[role]
            name = f'"{layout.columns[at].name}"' if layout.header else f"number {at}, counted from 0"
            words.append(f"{role}: column {name}, {why}")
        elif role != "timestamp":
            words.append(f"no column looks like the {role}")
    words += [in_words(scale)] if scale else []
    columns = {role: layout.key(at) for role, (at, _) in roles.items()}
    return Guess(layout.separator, layout.header, layout.decimal, columns, scale, tuple(words))


def layout_of(path: Path, told: Told = _NOTHING) -> Layout:
    """Guesses a file's layout from its beginning. Raises `DpmfError` like `guess_format`."""
    if own_columns.is_parquet(path):
        names, rows = own_columns.head(path, _ROWS)
        return Layout(",", True, ".", _columns(names, rows, "."))
    with unpacked(path) as stream:
        head = stream.read(_BYTES)
    _refuse_other_formats(path, head)
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    lines = [line for line in (lines[:-1] if len(head) == _BYTES else lines) if line.strip()][: _ROWS + 1]
    if not lines:
        raise DpmfError(f"{path}: the file is empty; write a line for each rating, like: user,item,rating")
    separators = [told.separator] if told.separator else list(_SEPARATORS)
    _refuse_comment(path, lines, separators)
    separator, (first, *rest) = _separated(path, lines, separators)
    comma = any(
        all(map(_COMMA_NUMBER.fullmatch, cells)) and "," in "".join(cells)
        for cells in zip(*rest, strict=True)
    )
    decimal = told.decimal or ("," if comma else ".")
    header = told.header
    if header is None:
        header = _is_header(first, _columns([""] * len(first), rest, decimal), decimal)
    return Layout(
        separator,
        header,
        decimal,
        _columns(first if header else [""] * len(first), rest if header else [first, *rest], decimal),
    )


def separator_named(text: str) -> str:
    """Returns the separator with that name ("tab", "semicolon"), or the given character itself.

    Raises `DpmfError` for anything else.
    """
    named = {name: separator for separator, name in _SEPARATORS.items()} | {r"\t": "\t"}
    found = named.get(text, text)
    if len(found) != 1 or found in '"\r\n':
        raise DpmfError(
            f"--separator {text}: give one character, or one of {', '.join(_SEPARATORS.values())}"
        )
    return found


def fix_of(path: Path, spec: CsvSpec) -> str:
    """Says what to write into a config instead, as the end of a message; "" if the file looks as the config says."""
    try:
        found = layout_of(path)
    except DpmfError:
        return ""
    fixes = []
    if found.separator != spec.separator:
        fixes.append(
            f"the file looks {_named(found.separator)}-separated: add `separator: {json.dumps(found.separator)}`"
        )
    if found.header and not spec.header:
        fixes.append("its first line looks like names of columns: remove `header: false`")
    if spec.header and not found.header:
        columns = ", ".join(f"{role}: {at}" for role, (at, _) in roles_of(found.columns).items())
        fixes.append(
            "its first line looks like a rating, not like names: add `header: false` and number the columns from 0, "
            f"as in `columns: {{{columns}}}`"
        )
    if found.decimal != spec.decimal:
        words = {",": "decimal commas", ".": "decimal points"}[found.decimal]
        fixes.append(f'its numbers look written with {words}: add `decimal: "{found.decimal}"`')
    return "".join(f"; {fix}" for fix in fixes)


def _named(separator: str) -> str:
    return _SEPARATORS.get(separator, repr(separator))


def _refuse_matrix(path: Path, columns: tuple[Column, ...], roles: dict[str, tuple[int, str]]) -> None:
    """Raises `DpmfError` for many columns of which none is known to be the user's, or the item's."""
    known = {role for role, (_, why) in roles.items() if why != "by its content"}
    if len(columns) <= _MOST_UNNAMED or known >= {"user", "item"}:
        return
    numeric = sum(len(column.numbers) == sum(map(bool, column.cells)) for column in columns)
    seems, fix = "are too many to guess which are users and items", ""
    if numeric >= len(columns) - 1:
        seems = "look like a matrix, with a row for each user and a column for each item"
        fix = "write a line for each rating, as user,item,rating, or, if this is no matrix, "
    raise DpmfError(
        f"{path}: its {len(columns)} columns {seems}; {fix}name the columns with --user, --item and --rating"
    )


def _refuse_comment(path: Path, lines: list[str], separators: Iterable[str]) -> None:
    """Raises `DpmfError` for a first line that is a comment. `# user,item,rating` is a header, `#7,a,5` a rating."""
    mark = next((mark for mark in _COMMENTS if lines[0].startswith(mark)), None)
    below = [line for line in lines if mark and not line.startswith(mark)]
    if not below or below != lines[-len(below) :]:
        return
    separator, (row, *_) = _separated(path, below, separators)
    first = lines[0].split(separator)
    if len(first) != len(row) or not roles_of([Column(name, (), ()) for name in first]):
        raise DpmfError(
            f"{path}:1: looks like a comment; remove the lines above the ratings that begin with {mark}"
        )


def _refuse_other_formats(path: Path, head: bytes) -> None:
    """Raises `DpmfError` for bytes that are not UTF-8 text, and for JSON."""
    if _JSON.match(head):
        raise DpmfError(
            f"{path}:1: looks like JSON; write the ratings as CSV, with a line user,item,rating for each"
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DpmfError(f"{path}:1: looks like UTF-16; save the file as UTF-8")
    at = head.find(b"\0")
    if at >= 0:
        line = head.count(b"\n", 0, at) + 1
        raise DpmfError(
            f"{path}:{line}: holds bytes that are not text; write the ratings as CSV, or as Parquet"
        )


def _separated(path: Path, lines: list[str], separators: Iterable[str]) -> tuple[str, list[list[str]]]:
    """Returns the first separator that cuts most lines into the same number of fields, at least three, and these
    lines."""
    pairs = None
    for separator in separators:
        try:
            rows = list(csv.reader(lines, delimiter=separator))
        except csv.Error:
            continue
        (width, count), *_ = Counter(map(len, rows)).most_common(1)
        if count < _AGREEING * len(rows):
            continue
        if width >= 3:
            return separator, [row for row in rows if len(row) == width]
        pairs = pairs or (separator if width == 2 else None)
    if pairs:
        raise DpmfError(
            f"{path}:1: its lines have two columns, {_named(pairs)}-separated; a rating takes three: the user, "
            "the item and the rating. Clicks and purchases alone are not ratings"
        )
    kinds = ", ".join(map(_named, separators))
    raise DpmfError(
        f"{path}:1: its lines cannot be cut into three columns by {kinds}; write the ratings as CSV"
    )


def _columns(names: list[str], rows: list[list[str]], decimal: str) -> tuple[Column, ...]:
    cells = list(zip(*rows, strict=True)) or [()] * len(names)
    return tuple(Column(name, each, _numbers(each, decimal)) for name, each in zip(names, cells, strict=True))


def _numbers(cells: tuple[str, ...], decimal: str) -> list[float]:
    """Returns the cells that are finite numbers."""
    found = []
    for cell in cells:
        try:
            found.append(float(cell.replace(decimal, ".")))
        except ValueError:
            continue
    return [each for each in found if math.isfinite(each)]


def _is_header(first: list[str], rest: tuple[Column, ...], decimal: str) -> bool:
    """Whether the first line lacks a number or a date in a column where all other lines have one. A single line is a
    header if it has no number."""
    alone = _columns([""] * len(first), [first], decimal)
    if not any(column.cells for column in rest):
        return not any(column.is_numeric for column in alone)
    return any(
        (below.is_numeric and not above.is_numeric) or (below.is_time and not above.is_time)
        for above, below in zip(alone, rest, strict=True)
    )


def _ratings(path: Path, layout: Layout, at: int) -> NDArray[np.float64]:
    """Returns (n,) every finite number in a column."""
    if own_columns.is_parquet(path):
        return own_columns.numbers(path, layout.columns[at].name)
    import pandas as pd

    with unpacked(path) as stream:
        try:
            frame = pd.read_csv(
                stream,
                sep=layout.separator,
                header=None,
                names=list(range(len(layout.columns))),
                usecols=[at],
                skiprows=int(layout.header),
                decimal=layout.decimal,
                on_bad_lines="skip",
                encoding_errors="replace",
                index_col=False,
                low_memory=False,
            )
            found: NDArray[np.float64] = pd.to_numeric(frame[at], errors="coerce").to_numpy(np.float64)
        except (ValueError, OverflowError):  # pandas raises the second for a number that is too large
            return np.array(layout.columns[at].numbers)
    return found[np.isfinite(found)]

"""What a file of ratings looks like: guesses for messages that name the fix and for users who have no config yet."""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import own_file
from dpmf_cli.datasets.canonical import PLAIN_TABLE
from dpmf_cli.datasets.own_file import MISSING, in_words, is_time, not_one, scale_of
from dpmf_cli.datasets.own_text import as_text, comments, form_of
from dpmf_cli.datasets.spec import CsvSpec

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", ":": "colon", " ": "space"}
_ROWS, _BYTES = 1000, 1 << 18
_AGREEING = 0.9
"""Share of the lines that a separator must cut into the same number of fields."""
_MOST_UNNAMED = 9
"""Most columns among which users and items are looked for by content. More are likely a matrix."""
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+(,\d+)?\s*")

_NAMES = {
    "user": "userid user uid customerid customer reviewerid reviewer memberid member accountid account clientid "
    "client visitorid visitor personid person username",
    "item": "itemid item iid movieid movie productid product parentasin asin sku bookid book isbn filmid film "
    "trackid track songid song artistid artist businessid business gameid game animeid anime recipeid recipe jokeid "
    "joke placeid title",
    "rating": "rating ratings stars star score overall userrating bookrating reviewrating starrating value rate vote "
    "points grade",
    "timestamp": "timestamp unixreviewtime time datetime date when reviewdate reviewtime ratedat createdat created "
    "submittedon",
}
"""Names of columns by role, in letters and digits only; the likelier names come first."""

_FEW_ROWS = 30
"""With fewer rows, the number of different values says nothing."""

_MOSTLY = 0.9


@dataclass(frozen=True)
class Column:
    """A column of a file's beginning: its name ("" if it has none), its cells, and the decimal mark of numbers."""

    name: str
    cells: Sequence[str]
    decimal: str = "."

    @cached_property
    def filled(self) -> list[str]:
        return [cell for cell in self.cells if cell not in MISSING]

    @cached_property
    def numbers(self) -> list[float]:
        """The cells that are finite numbers."""
        found = []
        for cell in self.filled:
            try:
                found.append(float(cell.replace(self.decimal, ".")))
            except ValueError:
                continue
        return [each for each in found if math.isfinite(each)]

    @property
    def is_numeric(self) -> bool:
        return len(self.numbers) == len(self.filled) > 0

    @property
    def is_mostly_numeric(self) -> bool:
        """Whether nearly all cells are numbers, so that a broken line is found in the column of ratings, and does not
        make another column the rating."""
        return len(self.numbers) >= _MOSTLY * len(self.filled) > 0

    @property
    def is_time(self) -> bool:
        """Whether the cells are dates, or seconds or milliseconds since 1970, in the last decades."""
        if self.is_mostly_numeric:
            return all(1e8 < number < 1e11 or 1e11 < number < 1e14 for number in self.numbers)
        return bool(self.filled) and all(map(is_time, self.filled))

    @property
    def is_count(self) -> bool:
        """Whether the cells are the numbers of the rows, which some programs write into a file."""
        first = self.numbers[0] if self.is_numeric else 0
        return len(self.numbers) > 1 and self.numbers == [first + row for row in range(len(self.cells))]


def roles_of(columns: Sequence[Column], told: Mapping[str, int] | None = None) -> dict[str, tuple[int, str]]:
    """By role the position of its column, and how it was found; leaves out a role that no column can have.

    told   positions by role that are known, and not guessed
    """
    told = told or {}
    found = {role: (at, "as told") for role, at in told.items()}
    plain = [re.sub("[^a-z0-9]", "", column.name.lower()) for column in columns]
    free = ["" if at in told.values() else name for at, name in enumerate(plain)]
    for role, words in _NAMES.items():
        named = next((free.index(word) for word in words.split() if word in free), None)
        if role not in told and named is not None:
            found[role] = named, "by its name"
    for role in ("timestamp", "rating", "user", "item"):
        taken = {at for at, _ in found.values()}
        left = {at: column for at, column in enumerate(columns) if at not in taken}
        if role not in found and (at := _likely(role, left, columns)) is not None:
            found[role] = at, "by its content"
    return {role: found[role] for role in _NAMES if role in found}


def _likely(role: str, columns: dict[int, Column], among: Sequence[Column]) -> int | None:
    match role:
        case "timestamp":
            candidates = [at for at, column in columns.items() if column.is_time]
        case "rating":
            # Few rows, but for times and row numbers, repeat without the rating; ids are whole numbers; it has few
            # values; it is often third.
            telling = {at: each for at, each in enumerate(among) if not (each.is_time or each.is_count)}
            order = {
                at: (
                    -len(set(zip(*(telling[other].cells for other in telling.keys() - {at}), strict=True))),
                    len(columns) == 3 and all(number.is_integer() for number in each.numbers),
                    len(set(each.cells)) if len(each.cells) >= _FEW_ROWS else 0,
                    at != 2,
                )
                for at, each in columns.items()
                if each.is_mostly_numeric and not each.is_time
            }
            candidates = sorted(order, key=lambda at: order[at])
        case _:
            candidates = [at for at, each in columns.items() if any(each.cells)]
            candidates.sort(key=lambda at: columns[at].is_count and len(columns[at].cells) >= _FEW_ROWS)
    return candidates[0] if candidates else None


@dataclass(frozen=True)
class Layout:
    """How the beginning of a file looks. Its `columns` have names if there is a `header`."""

    separator: str
    header: bool
    decimal: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Guess:
    """What a config may say about a file.

    columns   by role (user, item, rating, timestamp) a name, or a number if there is no header; a role without a
              likely column is left out
    scale     (minimum, maximum, step) of the ratings that occur, with step 0 for many different values; None without
              a column of ratings. The site may allow more ratings, and its scale must be public: ask the user
    words     a statement for each guess: what was guessed, and from what
    """

    layout: Layout
    columns: dict[str, str | int]
    scale: tuple[float, float, float] | None
    words: tuple[str, ...]

    @property
    def keys(self) -> dict[str, Any]:
        """The guess as keys of `dataset:`, without those that equal the default."""
        plain = {"separator": ",", "header": True, "decimal": "."}
        found = {key: getattr(self.layout, key) for key in plain}
        given = {key: value for key, value in found.items() if value != plain[key]}
        scale = dict(zip(("minimum", "maximum", "step"), self.scale, strict=True)) if self.scale else {}
        return {"columns": self.columns, **given, "scale": scale}


def guess_format(
    path: Path,
    separator: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    zero_is_missing: bool = False,
    **columns: str,
) -> Guess:
    """A file's layout, guessed from its beginning, and its scale, from all of its ratings.

    separator        a character, or its name ("tab", "semicolon"); None, as for `header` and `decimal`, to guess it
    zero_is_missing  whether a rating of 0 is none, so that the scale need not reach to it
    columns          names or numbers, by role; a role that is left out is guessed

    Raises `DpmfError` for a file that cannot be read, is empty, is a config or not text, has lines that cannot be cut
    into three columns, looks like a matrix of users and items, or lacks one of `columns`, and for a separator that is
    none.
    """
    if path.suffix.lower() in (".yaml", ".yml") and path.exists():
        raise DpmfError(
            f"{path}: is a config; `dpmf run` and `dpmf explain` take it, and this command takes ratings"
        )
    if separator is not None:
        named = {name: mark for mark, name in _SEPARATORS.items()} | {r"\t": "\t"}
        mark = named.get(separator, separator)
        if len(mark) != 1 or mark in '"\r\n':
            raise DpmfError(
                f"--separator {separator}: give one character, or one of {', '.join(_SEPARATORS.values())}"
            )
        separator = mark
    layout = layout_of(path, separator, header, decimal)
    names = [each.name for each in layout.columns]
    told = {}
    for role, column in columns.items():
        if layout.header and column in names:
            told[role] = names.index(column)
        elif column.isdecimal() and int(column) < len(names):
            told[role] = int(column)
        else:
            known = names if layout.header else list(map(str, range(len(names))))
            raise not_one(f"{path}:1" if form_of(path) == "text" else str(path), column, role, known)
    roles = roles_of(layout.columns, told)
    known_roles = {role for role, (_, why) in roles.items() if why != "by its content"}
    if len(names) > _MOST_UNNAMED and not known_roles >= {"user", "item"}:
        numeric = sum(len(column.numbers) == len(column.filled) for column in layout.columns)
        seems, fix = "are too many to guess which are users and items", ""
        if numeric >= len(names) - 1:
            seems = "look like a matrix, with a row for each user and a column for each item"
            fix = (
                "write a line for each rating, user,item,rating, as pandas.DataFrame.melt does, but not for cells "
                "that mean no rating (Jester's 99); or, if this is no matrix, "
            )
        raise DpmfError(
            f"{path}: its {len(names)} columns {seems}; {fix}name the columns with --user, --item and --rating"
        )
    values = _ratings(path, layout, roles["rating"][0]) if "rating" in roles else np.empty(0)
    values = values[values != 0] if zero_is_missing else values
    scale = scale_of(values) if len(values) else None
    comma = ", decimal commas" if layout.decimal == "," else ""
    words = [f"{_named(layout.separator)}-separated, {'a' if layout.header else 'no'} header line{comma}"]
    if (form := form_of(path)) != "text":
        words = [form]
    elif above := comments(path):
        words[0] += f", below {above} line{'s' * (above > 1)} of comments"
    for role in ("user", "item", "rating", "timestamp"):
        if role in roles:
            at, why = roles[role]
            name = f'"{names[at]}"' if layout.header else f"number {at}, counted from 0"
            words.append(f"{role}: column {name}, {why}")
        elif role != "timestamp":
            words.append(f"no column looks like the {role}")
    words += [in_words(scale)] if scale else []
    unique = {name for name in names if layout.header and names.count(name) == 1}
    keys = {role: names[at] if names[at] in unique else at for role, (at, _) in roles.items()}
    return Guess(layout, keys, scale, tuple(words))


def layout_of(
    path: Path, separator: str | None = None, header: bool | None = None, decimal: str | None = None
) -> Layout:
    """A file's layout; what is not given is guessed from its beginning. Raises `DpmfError` like `guess_format`."""
    if form_of(path) != "text":
        separator, header, decimal = ",", True, "."
    with as_text(path) as stream:
        head = stream.read(_BYTES)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DpmfError(f"{path}:1: looks like UTF-16; save the file as UTF-8")
    if (at := head.find(b"\0")) >= 0:
        line = head.count(b"\n", 0, at) + 1
        raise DpmfError(
            f"{path}:{line}: holds bytes that are not text; write the ratings as CSV, or as Parquet"
        )
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    lines = [line for line in (lines[:-1] if len(head) == _BYTES else lines) if line.strip()][: _ROWS + 1]
    if not lines:
        raise DpmfError(f"{path}: the file is empty; write a line for each rating, like: user,item,rating")
    separators = [separator] if separator else list(_SEPARATORS)
    separator, (first, *rest) = _separated(path, lines, separators)
    unnamed, below = [""] * len(first), zip(*rest, strict=True)
    comma = any(all(map(_COMMA_NUMBER.fullmatch, cells)) and "," in "".join(cells) for cells in below)
    decimal = decimal or ("," if comma else ".")
    if header is None:
        # A header lacks a number or a date in a column where all other lines have one. A single line is a header if
        # it has no number.
        above, under = (_columns(unnamed, lines, decimal) for lines in ([first], rest))
        header = not rest and not any(column.is_numeric for column in above)
        for name, column in zip(above, under, strict=True):
            header |= (column.is_numeric and not name.is_numeric) or (column.is_time and not name.is_time)
    names, rows = (first, rest) if header else (unnamed, [first, *rest])
    return Layout(separator, header, decimal, _columns(names, rows, decimal))


@contextmanager
def with_fix(path: Path, spec: CsvSpec) -> Iterator[None]:
    """A context that adds to an error of a text file what to write into a config instead, if the file looks
    otherwise."""
    try:
        yield
    except own_file.UnlikeSpecError as error:
        raise DpmfError(f"{error}{_fix_of(path, spec) if form_of(path) == 'text' else ''}") from None


def _fix_of(path: Path, spec: CsvSpec) -> str:
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


def _separated(path: Path, lines: list[str], separators: Sequence[str]) -> tuple[str, list[list[str]]]:
    """The first separator that cuts most lines into equally many fields, at least three, and these lines."""
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
    return tuple(Column(name, each, decimal) for name, each in zip(names, cells, strict=True))


def _ratings(path: Path, layout: Layout, at: int) -> Doubles:
    """(n,) every finite number in a column."""
    import pandas as pd

    form: dict[str, Any] = {
        "sep": layout.separator,
        "decimal": layout.decimal,
        "skiprows": int(layout.header),
    }
    form |= {**PLAIN_TABLE, "na_filter": True, "on_bad_lines": "skip", "encoding_errors": "replace"}
    with as_text(path) as stream:
        try:
            frame = pd.read_csv(stream, names=list(range(len(layout.columns))), usecols=[at], **form)
            found: Doubles = pd.to_numeric(frame[at], errors="coerce").to_numpy(np.float64)
        except (ValueError, OverflowError):  # pandas raises the second for a number that is too large
            return np.array(layout.columns[at].numbers)
    return found[np.isfinite(found)]

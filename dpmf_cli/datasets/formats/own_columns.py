"""What the columns of a user's own table hold (ids, times, ratings on a scale), and which is which."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError, did_you_mean

_MOST_NAMES, _LONGEST = 30, 40
"""How many names of a header are shown, and how many characters of each: another kind of file may have any length."""


def not_one(where: str, column: str | int, role: str, names: Sequence[str], fix: str = "") -> DpmfError:
    """Returns the error about a column that a header lacks, or has twice; the message ends with `fix`."""
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    more = ", …" if len(names) > len(shown) else ""
    trouble, hint = "two columns", ""
    if str(column) not in names:
        trouble, hint = "no column", did_you_mean(str(column), shown)
    known = "" if hint.startswith("; known") else f"; it has: {', '.join(shown)}"
    return DpmfError(f'{where}: {trouble} "{column}" ({role}){hint}{known}{more}{fix}')


def labelled(ids: NDArray[np.object_]) -> tuple[NDArray[np.int32], list[str]]:
    """Returns (n,) positions in the list of distinct ids, and that list.

    (pandas' own categories would read "007" as 7.0.)
    """
    import pandas as pd

    codes, labels = pd.factorize(ids)
    return codes.astype(np.int32), labels.tolist()


def fault_of(label: str) -> str | None:
    """Says in words why a text is not an id; None if it is one."""
    if not label.strip():
        return "is empty"
    return "holds a line end" if "\n" in label or "\0" in label else None


def seconds(text: str) -> float:
    """Returns seconds since 1970-01-01 UTC, from a number of seconds or a date of ISO 8601 (UTC if it has no zone).

    Raises ValueError for any other text.
    """
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    moment = datetime.fromisoformat(text.strip())
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as error:  # a zone that leads before the year 1
        raise ValueError(str(error)) from None


_MOST_STEPS = 100
_PRECISION = 10_000


def scale_of(values: NDArray[np.floating]) -> tuple[float, float, float]:
    """Returns (minimum, maximum, step) of ratings (n,), n ≥ 1; step 0 if there is no regular step, or over 100."""
    different = np.unique(values[np.isfinite(values)].astype(np.float64))
    if not len(different):
        return math.nan, math.nan, 0.0
    low, high = float(different[0]), float(different[-1])
    if not high - low < 2**40:
        return low, high, 0.0
    steps = np.rint((different - low) * _PRECISION)
    step = float(np.gcd.reduce(steps.astype(np.int64))) / _PRECISION
    regular = step > 0 and (high - low) / step <= _MOST_STEPS
    exact = np.abs(different - low - steps / _PRECISION).max() < 1e-6 * max(1.0, high - low)
    return low, high, step if regular and exact else 0.0


def in_words(scale: tuple[float, float, float]) -> str:
    """Says in words which ratings occur."""
    low, high, step = scale
    return f"{low:g} to {high:g} occur{f' in steps of {step:g}' if step else ''}"


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
    """A column of a file's beginning: its name ("" if it has none), its cells, and the cells that are numbers."""

    name: str
    cells: Sequence[str]
    numbers: Sequence[float]

    @property
    def different(self) -> int:
        return len(set(self.cells))

    @property
    def is_numeric(self) -> bool:
        return len(self.numbers) == len(self.cells) > 0

    @property
    def is_mostly_numeric(self) -> bool:
        """Whether nearly all cells are numbers. So a broken line is found in the column of ratings, and does not make
        another column the rating."""
        return len(self.numbers) >= _MOSTLY * len(self.cells) > 0

    @property
    def is_time(self) -> bool:
        """Whether the cells are dates, or seconds or milliseconds since 1970, in the last decades."""
        if self.is_mostly_numeric:
            return all(1e8 < number < 1e11 or 1e11 < number < 1e14 for number in self.numbers)
        return bool(self.cells) and all(map(_is_date, self.cells))

    @property
    def is_count(self) -> bool:
        """Whether the cells are the numbers of the rows, which some programs write into a file."""
        first = self.numbers[0] if self.is_numeric else 0
        return len(self.numbers) > 1 and list(self.numbers) == [first + row for row in range(len(self.cells))]


def roles_of(columns: Sequence[Column], told: Mapping[str, int] | None = None) -> dict[str, tuple[int, str]]:
    """Returns by role the position of its column, and how it was found; leaves out a role that no column can have.

    told   positions by role that are known, and not guessed
    """
    told = told or {}
    found = {role: (at, "as told") for role, at in told.items()}
    free = [column if at not in told.values() else None for at, column in enumerate(columns)]
    named = ((role, _named(free, role)) for role in _NAMES if role not in told)
    found |= {role: (at, "by its name") for role, at in named if at is not None}
    for role in ("timestamp", "rating", "user", "item"):
        taken = {at for at, _ in found.values()}
        left = {at: column for at, column in enumerate(columns) if at not in taken}
        if role not in found and (at := _likely(role, left, columns)) is not None:
            found[role] = at, "by its content"
    return {role: found[role] for role in _NAMES if role in found}


def _named(columns: Sequence[Column | None], role: str) -> int | None:
    names = [re.sub("[^a-z0-9]", "", column.name.lower()) if column else "" for column in columns]
    return next((names.index(word) for word in _NAMES[role].split() if word in names), None)


def _likely(role: str, columns: dict[int, Column], among: Sequence[Column]) -> int | None:
    match role:
        case "timestamp":
            candidates = [at for at, column in columns.items() if column.is_time]
        case "rating":
            # Few rows repeat without the rating; ids are whole numbers; it has few values; it is often third.
            numeric = {
                at: each for at, each in columns.items() if each.is_mostly_numeric and not each.is_time
            }
            order = {
                at: (
                    _repeated(among, at),
                    len(columns) == 3 and all(number.is_integer() for number in each.numbers),
                    each.different if len(each.cells) >= _FEW_ROWS else 0,
                    at != 2,
                )
                for at, each in numeric.items()
            }
            candidates = sorted(order, key=lambda at: order[at])
        case _:
            candidates = [at for at, each in columns.items() if any(each.cells)]
            candidates.sort(key=lambda at: columns[at].is_count and len(columns[at].cells) >= _FEW_ROWS)
    return candidates[0] if candidates else None


def _repeated(columns: Sequence[Column], without: int) -> int:
    """Counts the rows that repeat another if column `without`, times and row numbers are left out. They are few if
    that column is the rating."""
    telling = [
        each.cells
        for at, each in enumerate(columns)
        if at != without and not each.is_time and not each.is_count
    ]
    return len(columns[without].cells) - len(set(zip(*telling, strict=True)))


def _is_date(text: str) -> bool:
    try:
        seconds(text)
    except ValueError:
        return False
    return True

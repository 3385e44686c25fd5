"""Finds the columns of user, item, rating and time in a table, by their names, else by their cells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpmf_cli.datasets.formats.times import seconds

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

"""The source that a parser reads, and the ratings as it finds them: in the file's order, with the file's own ids."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import archives


@dataclass(frozen=True)
class Raw:
    """Ratings that are parsed, but not yet checked.

    users, items   (n_ratings,) integer ids, or positions in the labels if labels are given
    values         (n_ratings,) float, rating scale
    where          row -> its place in the publisher's file ("ratings.dat:17"), found only on request
    fix            what a user should do about a bad row
    fix_repeated   what to do about a (user, item) pair that stands twice, if not `fix`
    fix_scale      what to do about a rating off the scale or off its grid, if not `fix`; made only on request
    columns        (n_ratings,) each: `timestamp`, `epsilon`
    user_labels, item_labels   the distinct ids, if they are text
    """

    users: NDArray[np.integer]
    items: NDArray[np.integer]
    values: NDArray[np.floating]
    where: Callable[[int], str]
    fix: str
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    fix_repeated: str | None = None
    fix_scale: Callable[[], str] | None = None
    user_labels: list[str] | None = None
    item_labels: list[str] | None = None


@dataclass(frozen=True)
class Source:
    """Rating files of one format in one or more places.

    paths    folders, archives or bare files
    wanted   which of their members are read
    fix      what a user should do about a bad line
    """

    paths: tuple[Path, ...]
    wanted: archives.Wanted
    fix: str

    def members(self) -> Iterator[archives.Member]:
        for path in self.paths:
            yield from archives.members(path, self.wanted)

    def read(self) -> tuple[str, bytes]:
        """Reads the label and bytes of a format that is a single file: of the first member, once all members have
        proved harmless. Raises DpmfError if there is none."""
        first = None
        for member in self.members():
            first = first or (member.label, member.stream.read())
        if first:
            return first
        raise DpmfError(f"{self.paths[0]}: holds no {' or '.join(self.wanted.patterns)}; {self.fix}")

    def place_of(self, row: int, is_rating: Callable[[int, bytes], bool]) -> str:
        """Returns `file:line` (1-based) of the row-th rating (0-based), by counting the lines that are ratings.

        `is_rating(number, line)` tells header lines and blank lines from ratings.
        """
        label = str(self.paths[0])
        for member in self.members():
            label = member.label
            for number, line in enumerate(member.stream, 1):
                if is_rating(number, line):
                    if row == 0:
                        return f"{label}:{number}"
                    row -= 1
        return label

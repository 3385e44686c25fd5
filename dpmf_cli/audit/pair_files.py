"""CSV files of pairs of neighbours, for repeating a replay. The end of the first line, and the rows:

# … users 6, items 5, scale 1 5 1, user who differs 3
user,item,here,there
0,1,4.0,4.0
3,2,,5.0
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmf_cli.audit.pairs import Pair
from dpmf_cli.errors import DpmfError
from dpmf_cli.escapes import csv_text
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings, Scale, with_ratings

_HEAD = re.compile(
    r"# (\w+), epsilon (\S+), run (\d+), users (\d+), items (\d+), scale (\S+) (\S+) (\S+), user who differs (\d+)"
)
_COLUMNS = ["user", "item", "here", "there"]


@dataclass(frozen=True)
class KeptPair:
    """A pair, and how it was replayed: the kind of neighbours, the ε, and the run of the noise."""

    pair: Pair
    neighbours: Neighbours
    epsilon: float
    run: int


def pair_csv(kept: KeptPair) -> str:
    """Returns the text of a pair; if one side lacks a rating, its field is empty."""
    pair = kept.pair
    here, there, scale = _values(pair.here), _values(pair.there), pair.here.scale
    ends = " ".join(f"{number:g}" for number in (scale.minimum, scale.maximum, scale.step))
    how = f"{kept.neighbours}, epsilon {kept.epsilon!r}, run {kept.run}"
    shape = f"users {pair.here.n_users}, items {pair.here.n_items}"
    keys = sorted(here.keys() | there.keys())
    rows = csv_text([_COLUMNS, *((*key, here.get(key, ""), there.get(key, "")) for key in keys)])
    return f"# {how}, {shape}, scale {ends}, user who differs {pair.changed}\n{rows}"


def read_pair(path: Path) -> KeptPair:
    """Reads the pair of a file. Raises DpmfError, with the line, if the file holds no pair."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DpmfError(f"{path}: cannot be read: {error}") from None
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None or lines[1:2] != [",".join(_COLUMNS)]:
        raise DpmfError(
            f"{path}: line 1: not a pair that `dpmf audit` wrote; give a file of results/audit/pairs/"
        )
    n_users, n_items, changed = int(head[4]), int(head[5]), int(head[9])
    try:
        neighbours, epsilon = Neighbours(head[1]), float(head[2])
        scale = Scale(*map(float, head.group(6, 7, 8)))
    except ValueError as error:
        raise DpmfError(f"{path}: line 1: {error}") from None
    if not (changed < n_users and n_items and epsilon > 0):
        raise DpmfError(
            f"{path}: line 1: needs one user and one item at least, the user who differs, and a positive ε"
        )
    sides: tuple[dict[tuple[int, int], float], ...] = ({}, {})
    for number, line in enumerate(lines[2:], start=3):
        try:
            user, item, *values = line.split(",")
            place = int(user), int(item)
            for side, value in zip(sides, values, strict=True):
                if value:
                    side[place] = float(value)
                    if not scale.minimum <= side[place] <= scale.maximum:
                        raise ValueError
        except ValueError:
            raise DpmfError(
                f"{path}: line {number}: user,item,here,there must be numbers, ratings on the scale, not {line!r}"
            ) from None
        if not (0 <= place[0] < n_users and 0 <= place[1] < n_items):
            raise DpmfError(
                f"{path}: line {number}: there are only {n_users} users and {n_items} items, counted from 0"
            )
    here, there = (_ratings(side, n_users, n_items, scale) for side in sides)
    return KeptPair(Pair(path.name, here, there, changed), neighbours, epsilon, int(head[3]))


def _values(ratings: Ratings) -> dict[tuple[int, int], float]:
    """Returns the value of each (user, item)."""
    places = zip(ratings.users.tolist(), ratings.items.tolist(), strict=True)
    return dict(zip(places, ratings.values.tolist(), strict=True))


def _ratings(values: dict[tuple[int, int], float], n_users: int, n_items: int, scale: Scale) -> Ratings:
    none = np.zeros(0, np.int32)
    empty = Ratings(none, none, none.astype(np.float32), n_users, n_items, scale)
    places = np.array(list(values), np.int64).reshape(-1, 2)
    return with_ratings(empty, places[:, 0], places[:, 1], np.array(list(values.values()), np.float64))

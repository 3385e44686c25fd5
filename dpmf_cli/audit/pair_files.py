"""A pair of neighbours as a CSV file: what a replay reproduces.

# users 6, items 5, scale 1 5 1, user who differs 3
user,item,here,there
0,1,4.0,4.0
3,2,,5.0
"""

import csv
import io
import re
from pathlib import Path

import numpy as np

from dpmf_cli.audit.pairs import Pair
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings, Scale, with_ratings

_HEAD = re.compile(r"# users (\d+), items (\d+), scale (\S+) (\S+) (\S+), user who differs (\d+)")
_COLUMNS = ["user", "item", "here", "there"]


def pair_csv(pair: Pair) -> str:
    """The text of a pair; a rating that one side lacks is empty there."""
    here, there, scale = _values(pair.here), _values(pair.there), pair.here.scale
    ends = " ".join(f"{number:g}" for number in (scale.minimum, scale.maximum, scale.step))
    stream = io.StringIO()
    stream.write(
        f"# users {pair.here.n_users}, items {pair.here.n_items}, scale {ends}, user who differs {pair.changed}\n"
    )
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for key in sorted(here.keys() | there.keys()):
        writer.writerow([*key, here.get(key, ""), there.get(key, "")])
    return stream.getvalue()


def read_pair(path: Path) -> Pair:
    """The pair of a file. Raises DpmfError, with the line, for what is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DpmfError(f"{path}: cannot be read: {error}") from None
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None or lines[1:2] != [",".join(_COLUMNS)]:
        raise DpmfError(
            f"{path}: line 1: not a pair that `dpmf audit` wrote; give one of results/audit/pairs/"
        )
    n_users, n_items, changed = int(head[1]), int(head[2]), int(head[6])
    try:
        scale = Scale(*map(float, head.group(3, 4, 5)))
    except ValueError as error:
        raise DpmfError(f"{path}: line 1: {error}") from None
    sides: tuple[dict[tuple[int, int], float], ...] = ({}, {})
    for number, line in enumerate(lines[2:], start=3):
        try:
            user, item, *values = line.split(",")
            place = int(user), int(item)
            for side, value in zip(sides, values, strict=True):
                if value:
                    side[place] = float(value)
        except ValueError:
            raise DpmfError(
                f"{path}: line {number}: write user,item,here,there in numbers, not {line!r}"
            ) from None
        if not (0 <= place[0] < n_users and 0 <= place[1] < n_items):
            raise DpmfError(
                f"{path}: line {number}: there are {n_users} users and {n_items} items, from 0 on"
            )
    here, there = (_ratings(side, n_users, n_items, scale) for side in sides)
    return Pair(path.name, here, there, changed)


def _values(ratings: Ratings) -> dict[tuple[int, int], float]:
    """The value of each (user, item)."""
    places = zip(ratings.users.tolist(), ratings.items.tolist(), strict=True)
    return dict(zip(places, ratings.values.tolist(), strict=True))


def _ratings(values: dict[tuple[int, int], float], n_users: int, n_items: int, scale: Scale) -> Ratings:
    none = np.zeros(0, np.int32)
    empty = Ratings(none, none, none.astype(np.float32), n_users, n_items, scale)
    places = np.array(list(values), np.int64).reshape(-1, 2)
    return with_ratings(empty, places[:, 0], places[:, 1], np.array(list(values.values()), np.float64))

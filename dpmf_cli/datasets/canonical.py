"""Ratings in the one canonical form, whose checksum names the data, and in stars.

Stars are the unit in which algorithms see ratings, whatever scale a site has. The papers give their parameters
(clamps, norms, learning rates, λ) for ratings from 1 to 5. An affine map takes any other scale to 1 to 5 before a
fit, and takes predictions and errors back after it, so that the answers for ratings r and a·r + b are the same.
Because the map is public and neighbours stay neighbours, an ε means the same before and after the map.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Longs
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import OWN

Duplicates = Literal["error", "last", "mean"]
Ids = Longs | NDArray[np.str_]

_LONGEST_ID = 200
PLAIN_TABLE: dict[str, Any] = {"index_col": False, "na_filter": False, "low_memory": False}
"""How pandas reads a table of ratings: each column is one, nothing counts as absent, and types hold for all rows."""

FIVE_STARS = Scale(1.0, 5.0)
"""The scale that algorithms see."""
_GRID_TOLERANCE = 1e-3
"""How far a float32 rating may be off its grid, as a share of a step."""


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
    left_out       number of the source's rows that are no ratings, by the key of the spec that leaves them out
    user_labels, item_labels   the ids, if they are text
    """

    users: NDArray[np.integer]
    items: NDArray[np.integer]
    values: Floats
    where: Callable[[int], str]
    fix: str
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    fix_repeated: str | None = None
    fix_scale: Callable[[], str] | None = None
    user_labels: list[str] | None = None
    item_labels: list[str] | None = None


@dataclass(frozen=True)
class Canonical:
    """Canonical ratings, and the source's ids: user u of `ratings` is `user_ids[u]` (n_users,) in the source.

    merged     number of rows of the source that repeat a (user, item) pair, and so add no rating
    left_out   what else was left out: numbers of rows, and of users and items, by the key of the spec
    checksum   that of the ratings, if they are kept: then `ratings` are read-only memory maps
    """

    ratings: Ratings
    user_ids: Ids
    item_ids: Ids
    merged: int = 0
    checksum: str = ""
    left_out: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DataIdentity:
    """The name of a data set and the content of its ratings.

    key             name in the paths of results
    title           name in tables and figures; no result depends on it
    checksum        of the canonical ratings, in hex; "" if they were never read
    test_checksum   of the ratings of a fixed test set, in hex; "" if folds are held out
    to_stars        whether algorithms see the ratings mapped onto 1 to 5 (`Stars`); False if they see the
                    ratings as they are
    own             whether it is a user's own file
    """

    key: str
    title: str
    checksum: str
    test_checksum: str = ""
    to_stars: bool = False
    own: bool = False

    @property
    def stream(self) -> str:
        """The name in random streams: the same for all own files, so that no result depends on what one is called."""
        return OWN if self.own else self.key

    @property
    def checksums(self) -> tuple[str, ...]:
        """The checksums of all ratings that a fit needs."""
        return (self.checksum, self.test_checksum) if self.test_checksum else (self.checksum,)


@dataclass(frozen=True, kw_only=True)
class Dataset(Canonical):
    """Ratings that are kept, with their name."""

    identity: DataIdentity


class NoRatingsError(DpmfError):
    """A source without ratings, which an experiment needs; a release may have to hide that there are none."""


def canonicalise(
    raw: Raw, scale: Scale, *, duplicates: Duplicates = "error", empty: bool = False
) -> Canonical:
    """The ratings sorted by (user, item), with dense indices in the order of the sorted ids.

    Ids that are all whole numbers sort as numbers, others as text. Nothing depends on the order of the rows,
    except which of two duplicates is the last.

    duplicates   for a (user, item) pair that stands twice: "last" keeps the last row in the file; "mean" averages the
                 ratings, takes the smallest `epsilon`, and the last value of every other column

    empty        whether a source without ratings is accepted

    Raises `NoRatingsError` if there are no ratings, and `DpmfError` for a rating that is not finite, off the scale or
    off its grid, and for a (user, item) pair that stands twice if `duplicates` is "error".
    """
    if not (empty or len(raw.values)):
        raise NoRatingsError(f"{raw.where(0)}: no ratings in it; {raw.fix}")
    rated, fix = raw.values, raw.fix_scale or (lambda: raw.fix)
    on_scale = (rated >= scale.minimum) & (rated <= scale.maximum)
    if not on_scale.all():
        row = int(np.argmin(on_scale))
        if not np.isfinite(rated[row]):
            raise DpmfError(f"{raw.where(row)}: the rating is {rated[row]}, not a finite number; {raw.fix}")
        raise DpmfError(
            f"{raw.where(row)}: the rating {rated[row]:g} is off the scale from {scale.minimum:g} to "
            f"{scale.maximum:g}; {fix()}"
        )
    if scale.step:
        steps = (rated - scale.minimum) / scale.step
        steps -= np.rint(steps)
        bad = np.abs(steps) > _GRID_TOLERANCE
        if bad.any():
            row = int(np.argmax(bad))
            raise DpmfError(
                f"{raw.where(row)}: the rating {rated[row]:g} is not one of {scale.minimum:g}, "
                f"{scale.minimum + scale.step:g}, … {scale.maximum:g}; {fix()}"
            )
    users, user_ids = dense(raw.users, raw.user_labels)
    items, item_ids = dense(raw.items, raw.item_labels)
    order = None
    if not ((users[1:] > users[:-1]) | ((users[1:] == users[:-1]) & (items[1:] >= items[:-1]))).all():
        order = np.lexsort((items, users))  # stable: of equal pairs, the first in the file comes first
    rows: Any = slice(None) if order is None else order
    users, items, values = users[rows], items[rows], raw.values.astype(np.float32, copy=False)[rows]
    columns = {name: column[rows] for name, column in sorted(raw.columns.items())}
    repeated = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    if repeated.any():
        if duplicates == "error":
            at = int(np.argmax(repeated))
            first, again = (at, at + 1) if order is None else (int(order[at]), int(order[at + 1]))
            user, item = (
                ids[first] if labels is None else repr(labels[int(ids[first])])
                for ids, labels in ((raw.users, raw.user_labels), (raw.items, raw.item_labels))
            )
            raise DpmfError(
                f"{raw.where(again)}: user {user} has rated item {item} before, at {raw.where(first)}; "
                f"{raw.fix_repeated or raw.fix}"
            )
        begin = np.flatnonzero(np.concatenate([[True], ~repeated]))
        last = np.append(begin[1:], len(users)) - 1
        if duplicates == "mean":
            counts = np.diff(np.append(begin, len(users)))
            values = (np.add.reduceat(values.astype(np.float64), begin) / counts).astype(np.float32)
        else:
            values = values[last]
        merged = {name: column[last] for name, column in columns.items()}
        if duplicates == "mean" and "epsilon" in columns:
            merged["epsilon"] = np.minimum.reduceat(columns["epsilon"], begin)
        users, items, columns = users[last], items[last], merged
    ratings = Ratings(users, items, values, len(user_ids), len(item_ids), scale, columns)
    return Canonical(ratings, user_ids, item_ids, len(raw.values) - len(ratings), left_out=dict(raw.left_out))


def checksum(ratings: Ratings) -> str:
    """The SHA-256 (hex) of shape, scale and every array: the same for the same ratings, whatever the file."""
    state = hashlib.sha256()
    head = {
        "form": 1,
        "users": ratings.n_users,
        "items": ratings.n_items,
        "scale": [ratings.scale.minimum, ratings.scale.maximum, ratings.scale.step],
        "arrays": [[name, array.dtype.str, len(array)] for name, array in arrays(ratings).items()],
    }
    state.update(json.dumps(head).encode())
    for array in arrays(ratings).values():
        state.update(np.ascontiguousarray(array).data)
    return state.hexdigest()


def arrays(ratings: Ratings) -> dict[str, NDArray[Any]]:
    """Every array by name, in a fixed order."""
    columns = {f"column-{name}": ratings.columns[name] for name in sorted(ratings.columns)}
    of_items = {f"item-{name}": ratings.item_columns[name] for name in sorted(ratings.item_columns)}
    return {"users": ratings.users, "items": ratings.items, "values": ratings.values, **columns, **of_items}


def dense(ids: NDArray[np.integer], labels: list[str] | None = None) -> tuple[Ints, Ids]:
    """Dense int32 indices in the order of the sorted ids, and the sorted ids.

    With labels, `ids` are positions in them; the sorted labels are int64 if all are plain whole numbers.
    """
    if labels is None:
        import pandas as pd

        codes, unique = pd.factorize(ids, sort=True)  # by hashing: only the distinct ids are sorted
        return codes.astype(np.int32), np.asarray(unique, np.int64)
    try:
        numbers = [int(label) for label in labels]
        plain = list(map(str, numbers)) == labels and all(abs(number) < 2**63 for number in numbers)
    except ValueError:
        plain = False
    keys: list[Any] = numbers if plain else labels
    ordered = sorted(set(keys))
    places = {key: place for place, key in enumerate(ordered)}
    rank = np.array([places[key] for key in keys], np.int32)
    if not plain and len(longest := max(labels, key=len)) > _LONGEST_ID:
        raise DpmfError(
            f"the id {longest[:40]!r}… has {len(longest)} characters; at most {_LONGEST_ID} can be kept"
        )
    sorted_ids: Any = np.array(ordered, dtype=np.int64 if plain else np.str_)
    return rank[ids], sorted_ids


@dataclass(frozen=True)
class Stars:
    """The map of one scale onto 1 to 5 stars."""

    scale: Scale

    @property
    def unit(self) -> float:
        """One star in rating units."""
        return self.scale.width / FIVE_STARS.width

    def of(self, ratings: Ratings) -> Ratings:
        """The same ratings in stars: 1 + 4·(r − r_min)/Δr, rounded to float32.

        All are within 1 to 5, even if float32 is too coarse for the scale and puts a rating over its end. A rating on
        the grid of the scale is first counted in whole steps, so that the stars do not depend on how exactly floats
        represent the step, or on the unit of the scale.
        """
        scale, width = self.scale, self.scale.width
        values = ratings.values.astype(np.float64) - scale.minimum
        if scale.step:
            values /= scale.step
            whole = np.rint(values)
            values = np.where(np.abs(values - whole) <= _GRID_TOLERANCE, whole, values)
            width = float(np.rint(width / scale.step))
        stars = FIVE_STARS.minimum + FIVE_STARS.width * values / width
        stars = np.clip(stars, FIVE_STARS.minimum, FIVE_STARS.maximum)  # sensitivities rely on it
        in_stars = replace(FIVE_STARS, step=FIVE_STARS.width / width if scale.step else 0.0)
        return replace(ratings, values=stars.astype(np.float32), scale=in_stars)

    def back(self, stars: Floats) -> Doubles:
        """Predictions in stars, of any shape, in rating units."""
        above: Doubles = np.asarray(stars, np.float64) - FIVE_STARS.minimum
        return self.scale.minimum + self.unit * above


def in_stars(scale: Scale) -> bool:
    return (scale.minimum, scale.maximum) == (FIVE_STARS.minimum, FIVE_STARS.maximum)

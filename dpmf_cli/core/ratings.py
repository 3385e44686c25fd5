"""Ratings: users, items, values and their scale."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Flags, Floats, Ints, Longs, Singles

_CHUNK = 1 << 22


@dataclass(frozen=True)
class Scale:
    """The public range of a rating, which the site fixes, and which is never read off the data.

    `step` is the grid of allowed values (1 for whole stars, 0.5 for halves, 0 for a continuous scale).
    """

    minimum: float
    maximum: float
    step: float = 0.0

    def __post_init__(self) -> None:
        if not self.minimum < self.maximum:
            raise ValueError(f"the scale's minimum {self.minimum} is not below its maximum {self.maximum}")
        if self.step < 0:
            raise ValueError(f"the scale's step {self.step} is negative")

    @property
    def width(self) -> float:
        """Δr = r_max − r_min, in rating units."""
        return self.maximum - self.minimum

    @property
    def middle(self) -> float:
        return (self.minimum + self.maximum) / 2


class UserMajor:
    """Who rated what, in user-major order, and counts of that, without values of ratings.

    users, items  (n,) int32, dense indices in [0, n_users), non-decreasing, and in [0, n_items)
    """

    users: Ints
    items: Ints
    n_users: int
    n_items: int

    def __len__(self) -> int:
        return len(self.users)

    @cached_property
    def user_starts(self) -> Longs:
        """(n_users + 1,) offsets: the ratings of user u are at [user_starts[u], user_starts[u + 1])."""
        # NumPy would convert a copy of all users if these numbers had another type.
        numbers = np.arange(self.n_users + 1, dtype=self.users.dtype)
        return np.searchsorted(self.users, numbers).astype(np.int64)

    @cached_property
    def user_counts(self) -> Longs:
        """(n_users,) ratings per user."""
        return np.diff(self.user_starts)

    @cached_property
    def item_counts(self) -> Longs:
        """(n_items,) ratings per item."""
        counts = np.zeros(self.n_items, np.int64)
        for start in range(0, len(self), _CHUNK):  # NumPy converts a copy of the items it counts
            counts += np.bincount(self.items[start : start + _CHUNK], minlength=self.n_items)
        return counts


@dataclass(frozen=True)
class Ratings(UserMajor):
    """Known ratings in user-major order (by user, then item), each (user, item) pair at most once.

    users    (n_ratings,) int32, dense indices in [0, n_users), non-decreasing
    items    (n_ratings,) int32, dense indices in [0, n_items)
    values   (n_ratings,) float32, rating scale
    columns  further per-rating columns in the same order (`timestamp`, `epsilon`), where the source has them
    item_columns  public features of items, (n_items,) each, where the data set asks for them

    `n_users` and `n_items` count the whole data set: a training fold keeps them, so that indices mean
    the same in every fold and a user or item may have no rating in it.
    """

    users: Ints
    items: Ints
    values: Singles
    n_users: int
    n_items: int
    scale: Scale
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    item_columns: dict[str, Floats] = field(default_factory=dict)

    def select(self, rows: Flags) -> "Ratings":
        """The ratings where the mask `rows` (n_ratings,) holds, in the same order and index space."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        kept = {name: getattr(self, name)[rows] for name in ("users", "items", "values")}
        return replace(self, **kept, columns=columns)


def transposed(ratings: Ratings) -> Ratings:
    """The ratings with users and items exchanged, in the order of the new users, without columns."""
    order = np.argsort(ratings.items, kind="stable")
    of_items = ratings.items[order], ratings.users[order], ratings.values[order]
    return Ratings(*of_items, ratings.n_items, ratings.n_users, ratings.scale)


def with_ratings(
    ratings: Ratings, users: NDArray[np.integer], items: NDArray[np.integer], values: Floats
) -> Ratings:
    """The ratings with (n,) more, in user-major order, without columns; a pair in both gets the new value."""
    pairs = np.append(ratings.users, users), np.append(ratings.items, items)
    keys = pairs[0].astype(np.int64) * ratings.n_items + pairs[1]
    _, last = np.unique(keys[::-1], return_index=True)
    order = len(keys) - 1 - last
    both = pairs[0][order].astype(np.int32), pairs[1][order].astype(np.int32)
    whole = np.append(ratings.values, values)[order].astype(np.float32)
    return replace(ratings, users=both[0], items=both[1], values=whole, columns={})


def average_of(values: Floats, otherwise: float) -> float:
    """The mean of `values` (n,), in double precision; `otherwise` where there are none."""
    return float(values.mean(dtype=np.float64)) if len(values) else otherwise


def in_ratings(ratings: Ratings, others: Ratings) -> Flags:
    """(n_ratings,) whether `others` has a rating of the same (user, item) pair."""
    keys, wanted = _pair_keys(ratings), _pair_keys(others)
    found = np.zeros(len(ratings), dtype=np.bool_)
    at = np.searchsorted(keys, wanted)  # both ascend
    at, wanted = at[at < len(keys)], wanted[at < len(keys)]
    found[at[keys[at] == wanted]] = True
    return found


def _pair_keys(ratings: Ratings) -> Longs:
    """(n_ratings,) one number for each (user, item) pair, ascending."""
    return ratings.users.astype(np.int64) * ratings.n_items + ratings.items

"""Sums by user in the order of the ratings, the order of visits, and ratings in the order of items."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, RATED, example, numbers


def residual_sums_by_user(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    item_averages: NDArray[np.float64],
    n_users: int,
) -> NDArray[np.float64]:
    """Row u: Σ_i (r_ui − IAvg(i)) over the ratings of user u, for each ε. The last row is the grand total.

    users, items, values  (n_ratings,); item_averages (n_items, E); returns (n_users + 1, E).
    A user's terms are added in the order of the ratings. So column e of the sums depends only on column e of the
    averages. The grand total adds the users' sums by pairs. If 10⁷ terms were added one after the other, they would
    round by more than `privacy.grid` allows.
    """
    sums: NDArray[np.float64] = _residual_sums(users, items, values, item_averages, n_users)
    for e in range(sums.shape[1]):
        sums[-1, e] = np.ascontiguousarray(sums[:-1, e]).sum()  # NumPy adds contiguous numbers by pairs
    return sums


class Columns(NamedTuple):
    """Ratings in user-major order, as kernels take them. Those of user u are at [starts[u], starts[u + 1])."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.floating]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, ratings: Ratings) -> "Columns":
        return cls(ratings.users, ratings.items, ratings.values, ratings.user_starts)


@compiled(example(item_averages=numbers(ITEMS, 3)))
def _residual_sums(users, items, values, item_averages, n_users):
    lanes = item_averages.shape[1]
    sums = np.zeros((n_users + 1, lanes))
    for x in range(len(values)):
        for e in range(lanes):
            sums[users[x], e] += values[x] - item_averages[items[x], e]
    return sums


@compiled(example())
def sums_by(keys: NDArray[np.int32], values: NDArray[np.floating], n_keys: int) -> NDArray[np.float64]:
    """(n_keys,) Σ of the values (n,) of each key: `np.bincount` to the bit, without its float64 and int64 copies."""
    sums = np.zeros(n_keys)
    for x in range(len(keys)):
        sums[keys[x]] += values[x]
    return sums


@compiled(example(uniform=np.linspace(0.9, 0.1, len(RATED))))
def shuffle_within(starts: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """A permutation of 0 … n−1 that keeps each block [starts[b], starts[b+1]) and shuffles inside it.

    Fisher-Yates; `uniform` (n,) holds one U[0, 1) draw per element.
    """
    order = np.arange(len(uniform))
    for block in range(len(starts) - 1):
        first = starts[block]
        for last in range(starts[block + 1] - 1, first, -1):
            other = first + np.int64(uniform[last] * (last - first + 1))
            order[last], order[other] = order[other], order[last]
    return order


class RatingsByRow(NamedTuple):
    """Ratings, one row of one side after the other.

    starts (rows + 1,); others (n_ratings,) each rating's row of the other side; values (n_ratings,) rating scale
    """

    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    values: NDArray[np.float32]


def item_major(ratings: Ratings) -> RatingsByRow:
    """Returns the ratings by item, then user."""
    starts = np.concatenate([[0], np.cumsum(ratings.item_counts)])
    by_item = RatingsByRow(starts, np.empty(len(ratings), np.int32), np.empty(len(ratings), np.float32))
    _scatter(ratings.items, starts[:-1].copy(), ratings.users, by_item.others, ratings.values, by_item.values)
    return by_item


@compiled(example(ends=[0, 2, 4, 6, 7], to_users=np.zeros(8), to_values=np.zeros(8)))
def _scatter(keys, ends, users, to_users, values, to_values):
    """Sorts by `keys`, with a stable counting sort. `ends` holds the place of the next element of each key."""
    for x in range(len(keys)):
        at = ends[keys[x]]
        ends[keys[x]] = at + 1
        to_users[at] = users[x]
        to_values[at] = values[x]

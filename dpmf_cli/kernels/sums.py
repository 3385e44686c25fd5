"""Sums by user in the order of the ratings, the order of visits, and ratings in the order of items."""

from typing import NamedTuple

import numpy as np

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings, UserMajor
from dpmf_cli.kernels.examples import ITEM_STARTS, ITEMS, RATED, example, numbers


def residual_sums_by_user(
    users: Ints, items: Ints, values: Singles, item_averages: Doubles, n_users: int
) -> Doubles:
    """Row u: Σ_i (r_ui − IAvg(i)) over the ratings of user u, for each ε. The last row is the grand total.

    users, items, values  (n_ratings,); item_averages (n_items, E); returns (n_users + 1, E).
    A user's terms are added in the order of the ratings, so that column e of the sums depends only on column e of the
    averages. The grand total adds the users' sums by pairs, because 10⁷ terms that were added one after the other
    would round by more than `privacy.grid` allows.
    """
    sums: Doubles = _residual_sums(users, items, values, item_averages, n_users)
    for e in range(sums.shape[1]):
        sums[-1, e] = np.ascontiguousarray(sums[:-1, e]).sum()  # NumPy adds contiguous numbers by pairs
    return sums


class Columns(NamedTuple):
    """Ratings in user-major order, as kernels take them. Those of user u are at [starts[u], starts[u + 1])."""

    users: Ints
    items: Ints
    values: Floats
    starts: Longs

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
def sums_by(keys: Ints, values: Floats, n_keys: int) -> Doubles:
    """(n_keys,) Σ of the values (n,) of each key: `np.bincount` to the bit, without its float64 and int64 copies."""
    sums = np.zeros(n_keys)
    for x in range(len(keys)):
        sums[keys[x]] += values[x]
    return sums


@compiled(example(uniform=np.linspace(0.9, 0.1, len(RATED))))
def shuffle_within(starts: Longs, uniform: Doubles) -> Longs:
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

    starts (rows + 1,); others (n,) int32 each rating's row of the other side; values (n,) rating scale, or int32 the
    places of the ratings in user-major order
    """

    starts: Longs
    others: Ints
    values: Singles | Ints


def item_major(pairs: UserMajor) -> RatingsByRow:
    """The ratings by item, then user, with their places in user-major order."""
    starts = np.concatenate([[0], np.cumsum(pairs.item_counts)])
    places = stable_order(pairs.items, starts)
    return RatingsByRow(starts, pairs.users[places], places)


@compiled(example(keys=RATED, starts=ITEM_STARTS))
def stable_order(keys, starts):
    """The places of `keys` in ascending order of keys, by a stable counting sort.

    starts  (n_keys + 1,) how many of the keys are lower than each
    """
    order, ends = np.empty(len(keys), np.int32), starts.copy()
    for x in range(len(keys)):
        order[ends[keys[x]]] = x
        ends[keys[x]] += 1
    return order

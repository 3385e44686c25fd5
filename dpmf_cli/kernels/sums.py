"""Sums of residuals by user for all ε of a grid: float64, in the order of the ratings."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import ITEMS, example, numbers


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

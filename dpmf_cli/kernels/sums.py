"""Sums of residuals by user for a whole ε grid: float64, in the order of the ratings."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def residual_sums_by_user(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    item_averages: NDArray[np.float64],
    n_users: int,
) -> NDArray[np.float64]:
    """Row u: Σ_i (r_ui − IAvg(i)) over the ratings of user u, for each ε. The last row is the grand total.

    users, items, values  (n_ratings,); item_averages (n_items, E); returns (n_users + 1, E).
    A sum's terms are added in the order of the ratings, so that column e depends on column e alone.
    """
    lanes = item_averages.shape[1]
    sums = np.zeros((n_users + 1, lanes))
    for x in range(len(values)):
        for e in range(lanes):
            residual = values[x] - item_averages[items[x], e]
            sums[users[x], e] += residual
            sums[n_users, e] += residual
    return sums


@njit(cache=True, nogil=True)
def sums_by(keys: NDArray[np.int32], values: NDArray[np.floating], n_keys: int) -> NDArray[np.float64]:
    """(n_keys,) Σ of the values (n,) of each key: `np.bincount` to the bit, without its float64 and int64 copies."""
    sums = np.zeros(n_keys)
    for x in range(len(keys)):
        sums[keys[x]] += values[x]
    return sums

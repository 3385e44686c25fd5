"""Predictions from the items most similar to the one asked for, among those that the same user rated.

Bell and Koren 2007, with ridge regression in place of their non-negative weights, as McSherry and Mironov 2009,
section 5, have it. Each prediction uses the ratings of the user that it is made for, and released matrices.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import place
from dpmf_cli.ratings import Ratings

LEAST_PIVOT = 0.1
"""A neighbour is left out where less than this part of its variance is its own, given the nearer neighbours."""


def nearest(
    ratings: Ratings,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    similarity: NDArray[np.float32],
    k: int,
) -> NDArray[np.int64]:
    """(n, k) for each pair (u, i): the places in `ratings` of u's k ratings of items most similar to i.

    By decreasing similarity (a packed triangle), the lower item first among equals, i itself never; −1 fills
    up where the user has fewer than k.
    """
    by_item = np.argsort(items, kind="stable")
    found = np.full((len(users), k), -1, np.int64)
    _nearest(
        users,
        items,
        by_item,
        ratings.user_starts,
        ratings.items,
        similarity,
        np.int64(ratings.n_items),
        found,
    )
    return found


@njit(cache=True)
def _nearest(users, items, by_item, user_starts, rated, similarity, n_items, found):
    k = found.shape[1]
    best, row, held = np.empty(k, np.float32), np.empty(n_items, np.float32), np.int64(-1)
    for x in by_item:
        i, places, count = np.int64(items[x]), found[x], 0
        if i != held:
            for j in range(n_items):
                row[j] = similarity[place(i, j, n_items)]
            held = i
        for y in range(user_starts[users[x]], user_starts[users[x] + 1]):
            value = row[rated[y]]
            if rated[y] == i or (count == k and value <= best[k - 1]):
                continue
            at = min(count, k - 1)
            count = at + 1
            while at > 0 and value > best[at - 1]:
                best[at], places[at] = best[at - 1], places[at - 1]
                at -= 1
            best[at], places[at] = value, y


def interpolate(
    ratings: Ratings,
    items: NDArray[np.int32],
    neighbours: NDArray[np.int64],
    residuals: NDArray[np.float64],
    covariance: NDArray[np.float32],
    ridge: float,
) -> NDArray[np.float64]:
    """(n,) Σ_j w_j·residual_uj over each row of `neighbours`, for predictions of `items` (n,).

        (A + ridge·I)·w = b,   A_jl = Avg_jl and b_j = Avg_ij for the neighbours j, l of item i

    residuals (n_ratings,) rating scale; covariance Avg, a packed triangle; ridge in its units.

    Noise can leave A without an inverse. The Cholesky factor is built neighbour by neighbour, the nearest first,
    and one whose pivot falls below `LEAST_PIVOT` of its Avg_jj + ridge (or is not positive) is left out.
    """
    return np.asarray(
        _interpolate(
            items, neighbours, ratings.items, residuals, covariance, np.int64(ratings.n_items), ridge
        )
    )


@njit(cache=True)
def _interpolate(items, neighbours, rated, residuals, covariance, n_items, ridge):
    n, k = neighbours.shape
    out = np.zeros(n)
    lower, solution, kept_residuals = np.empty((k, k)), np.empty(k), np.empty(k)
    kept = np.empty(k, np.int64)
    for x in range(n):
        i, count = np.int64(items[x]), 0
        for y in neighbours[x]:
            if y < 0:
                break
            j = np.int64(rated[y])
            own = np.float64(covariance[place(j, j, n_items)]) + ridge
            pivot, target = own, np.float64(covariance[place(i, j, n_items)])
            for a in range(count):
                entry = np.float64(covariance[place(j, kept[a], n_items)])
                for b in range(a):
                    entry -= lower[count, b] * lower[a, b]
                entry /= lower[a, a]
                lower[count, a] = entry
                pivot -= entry * entry
                target -= entry * solution[a]
            if pivot <= max(LEAST_PIVOT * own, 0.0):
                continue
            lower[count, count] = np.sqrt(pivot)
            solution[count] = target / lower[count, count]
            kept[count], kept_residuals[count] = j, residuals[y]
            count += 1
        for a in range(count - 1, -1, -1):
            weight = solution[a]
            for b in range(a + 1, count):
                weight -= lower[b, a] * solution[b]
            solution[a] = weight / lower[a, a]
            out[x] += solution[a] * kept_residuals[a]
    return out

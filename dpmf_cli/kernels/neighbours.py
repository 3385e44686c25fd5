"""Predicts a user's rating of an item from the user's ratings of the items that are most similar to it.

The method is that of Bell and Koren 2007. It has ridge regression in place of their non-negative weights, as in
McSherry and Mironov 2009, section 5. Each prediction uses the ratings of its own user, and released matrices.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.covariance import place
from dpmf_cli.kernels.examples import RATED, example
from dpmf_cli.kernels.lanes import add, below, div, doubles, load, mul, splat, sqrt, store, sub
from dpmf_cli.ratings import Ratings

LEAST_PIVOT = 0.1
"""A neighbour is left out if the nearer neighbours leave less than this fraction of its variance unexplained."""
ITEMS_AT_ONCE = 16
"""How many items' rows of similarities are read together: as many as a cache line has float32."""
LANES = (0,) * 8
"""One lane for each prediction that is solved side by side."""


def nearest(
    ratings: Ratings,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    similarity: NDArray[np.float32],
    k: int,
) -> NDArray[np.int64]:
    """(n, k) for each pair (u, i): the places in `ratings` of u's k ratings of the items most similar to i.

    The places are in decreasing order of similarity (a packed triangle). Among equals the lower item is first. The
    item i itself is never included. If the user has fewer than k such ratings, the remaining entries are −1.
    """
    by_item = np.argsort(items, kind="stable")
    rank = np.empty(ratings.n_items, np.int64)
    rank[np.argsort(-ratings.item_counts, kind="stable")] = np.arange(ratings.n_items)
    popular_first = _popular_first(ratings.users, ratings.items, ratings.user_starts, rank)
    found = np.full((len(users), k), -1, np.int64)
    _nearest(
        users,
        items,
        by_item,
        ratings.user_starts,
        popular_first,
        ratings.items[popular_first],
        similarity,
        np.int64(ratings.n_items),
        found,
    )
    return found


@compiled(example(rank=[3, 0, 1, 4, 2]))
def _popular_first(users, items, user_starts, rank):
    """Returns the places of each user's ratings, the item of least rank first, by two counting sorts.

    Most neighbours are popular items. So one comparison rejects most of the ratings that are seen later. The order in
    which ratings are seen does not change which neighbours are found.
    """
    ends = np.zeros(len(rank) + 1, np.int64)
    for item in items:
        ends[rank[item] + 1] += 1
    ends = np.cumsum(ends)
    by_rank, out = np.empty(len(items), np.int32), np.empty(len(items), np.int32)
    for y in range(len(items)):
        at = rank[items[y]]
        by_rank[ends[at]] = y
        ends[at] += 1
    ends = user_starts.copy()
    for y in by_rank:
        out[ends[users[y]]] = y
        ends[users[y]] += 1
    return out


@compiled(example(found=np.full((len(RATED), 2), -1)))
def _nearest(users, items, by_item, user_starts, order, rated, similarity, n_items, found):
    """Fills `found`. `order` holds each user's ratings in the order in which to look at them, `rated` their items."""
    k, first = found.shape[1], 0
    best, rows = np.empty(k, np.float32), np.empty((ITEMS_AT_ONCE, n_items), np.float32)
    asked = np.empty(ITEMS_AT_ONCE, np.int64)
    while first < len(by_item):
        count, end = 0, first
        while end < len(by_item):
            i = np.int64(items[by_item[end]])
            if count == 0 or i != asked[count - 1]:
                if count == ITEMS_AT_ONCE:
                    break
                asked[count] = i
                count += 1
            end += 1
        _unpack(similarity, n_items, asked[:count], rows)
        at = 0
        for x in by_item[first:end]:
            if items[x] != asked[at]:
                at += 1
            user = users[x]
            begin, stop = user_starts[user], user_starts[user + 1]
            _select(rows[at], asked[at], order[begin:stop], rated[begin:stop], best, found[x])
        first = end


@compiled()
def _unpack(triangle, n_items, asked, rows):
    """Sets `rows` to the rows of the symmetric matrix for the items `asked`, which ascend.

    The part of these rows that lies in columns of the triangle is read for all items at once, because neighbouring
    columns share cache lines.
    """
    for j in range(asked[-1]):
        row = place(j, j, n_items) - j
        for at in range(len(asked)):
            if asked[at] > j:
                rows[at, j] = triangle[row + asked[at]]
    for at in range(len(asked)):
        i = asked[at]
        row = place(i, i, n_items) - i
        for j in range(i, n_items):
            rows[at, j] = triangle[row + j]


@compiled()
def _select(similarities, i, order, rated, best, places):
    """Sets places (k,) to the k of `order` with the greatest similarities, by insertion.

    `best` holds the similarities.
    """
    k, count, least = len(places), 0, np.float32(-np.inf)
    for y in range(len(order)):
        value = similarities[rated[y]]
        if value < least or rated[y] == i:
            continue
        rating = order[y]
        if count == k and value == least and rating > places[k - 1]:
            continue
        at = min(count, k - 1)
        count = at + 1
        while at > 0 and (value > best[at - 1] or (value == best[at - 1] and rating < places[at - 1])):
            best[at], places[at] = best[at - 1], places[at - 1]
            at -= 1
        best[at], places[at] = value, rating
        if count == k:
            least = best[k - 1]


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

    Noise can leave A without an inverse. So the Cholesky factor is built neighbour by neighbour, the nearest first. A
    neighbour is left out if its pivot is below `LEAST_PIVOT` times (Avg_jj + ridge), or is not positive.
    """
    return np.asarray(
        _interpolate(
            items, neighbours, ratings.items, residuals, covariance, np.int64(ratings.n_items), ridge, LANES
        )
    )


@compiled(example(neighbours=[[1, 2], [0, -1], [0, 1], [4, -1], [-1, -1], [6, 7], [5, 7], [6, 5]]))
def _interpolate(items, neighbours, rated, residuals, covariance, n_items, ridge, width_of):
    """Computes as many predictions at a time as there are lanes, each with the arithmetic that it would have alone.

    Row a of `system` first holds A_ab for b ≥ a, then b_a. It becomes row a of the factor U, where A = Uᵀ·U, then
    element a of U⁻ᵀ·b. In the lanes where a neighbour is left out, its row is 0, with 1 on the diagonal.
    """
    n, k = neighbours.shape
    w, like = len(width_of), doubles(width_of)
    one, row = splat(1.0, like), (k + 1) * w
    system, weights, out = np.zeros(k * row), np.empty(k * w), np.empty(n)
    limits, own, sums = np.empty(k * w), np.empty(k * w), np.empty(w)
    for first in range(0, n, w):
        last = min(first + w, n)
        count = 0
        for x in range(first, last):
            count = max(count, (neighbours[x] >= 0).sum())
        for lane in range(w):
            x = min(first + lane, n - 1)
            _fetch(items[x], neighbours[x], count, rated, covariance, n_items, ridge, system, limits, lane, w)
            for a in range(count):
                own[a * w + lane] = residuals[neighbours[x, a]] if neighbours[x, a] >= 0 else 0.0
        for a in range(count):
            pivot, limit = _eliminated(system, a, a, row, like, w), load(limits, a * w, like)
            root = below(limit, pivot, sqrt(pivot), one)
            store(system, a * row + a * w, root)
            for b in range(a + 1, count + 1):
                b = b if b < count else k
                value = div(_eliminated(system, a, b, row, like, w), root)
                store(system, a * row + b * w, below(limit, pivot, value, like))
        total = like
        for a in range(count - 1, -1, -1):
            weight = load(system, a * row + k * w, like)
            for b in range(a + 1, count):
                weight = sub(weight, mul(load(system, a * row + b * w, like), load(weights, b * w, like)))
            weight = div(weight, load(system, a * row + a * w, like))
            store(weights, a * w, weight)
            total = add(total, mul(weight, load(own, a * w, like)))
        store(sums, 0, total)
        out[first:last] = sums[: last - first]
    return out


@compiled()
def _eliminated(system, a, b, row, like, w):
    """Returns element (a, b) of `system` after the rows above a are eliminated."""
    value = load(system, a * row + b * w, like)
    for c in range(a):
        taken = mul(load(system, c * row + a * w, like), load(system, c * row + b * w, like))
        value = sub(value, taken)
    return value


@compiled()
def _fetch(item, neighbours, count, rated, covariance, n_items, ridge, system, limits, lane, w):
    """Fills one lane's system of `count` rows.

    A row without a neighbour gets an infinite limit. So it is left out, whatever an earlier prediction left in it.
    """
    k, i = len(neighbours), np.int64(item)
    row = (k + 1) * w
    for a in range(count):
        if neighbours[a] < 0:
            limits[a * w + lane] = np.inf
            continue
        j = np.int64(rated[neighbours[a]])
        for b in range(a):
            other = np.int64(rated[neighbours[b]])
            system[b * row + a * w + lane] = covariance[place(j, other, n_items)]
        variance = np.float64(covariance[place(j, j, n_items)]) + ridge
        system[a * row + a * w + lane] = variance
        limits[a * w + lane] = max(LEAST_PIVOT * variance, 0.0)
        system[a * row + k * w + lane] = covariance[place(i, j, n_items)]

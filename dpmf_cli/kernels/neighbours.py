"""Predictions from a user's own ratings, by regression on the most similar items or in the span of a few vectors.

The method of neighbours is that of Bell and Koren 2007, with ridge regression in place of their non-negative weights,
as in McSherry and Mironov 2009, section 5. Each prediction uses the ratings of its own user, and released matrices.

McSherry and Mironov 2009, section 5, "SVD-based prediction with ridge regression": the vectors are leading
eigenvectors of the item-item covariance, and only they are released.
"""

import numpy as np

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.covariance import place
from dpmf_cli.kernels.examples import ITEMS, RATED, example, numbers
from dpmf_cli.kernels.lane_math import below, fma, sqrt
from dpmf_cli.kernels.lanes import doubles, load, splat, store
from dpmf_cli.kernels.sums import stable_order

LEAST_PIVOT = 0.1
"""A neighbour is left out if the nearer neighbours leave less than this fraction of its variance unexplained."""
ITEMS_AT_ONCE = 16
"""How many items' rows of similarities are read together: as many as a cache line has float32."""
LANES = (0,) * 8
"""One lane for each prediction that is solved side by side."""


def nearest(ratings: Ratings, users: Ints, items: Ints, similarity: Singles, k: int) -> Longs:
    """(n, k) for each pair (u, i): the places in `ratings` of u's k ratings of the items most similar to i.

    The places are in decreasing order of similarity (a packed triangle). Among equals the lower item is first. The
    item i itself is never included. If the user has fewer than k such ratings, the remaining entries are −1.
    """
    by_item = np.argsort(items, kind="stable")
    popular = np.argsort(-ratings.item_counts, kind="stable")
    rank = np.empty(ratings.n_items, np.int32)
    rank[popular] = np.arange(ratings.n_items)
    # Most neighbours are popular items. So if a user's popular items come first, one comparison rejects most of the
    # ratings that are seen later. The order does not change which neighbours are found.
    by_rank = stable_order(rank[ratings.items], np.append(0, np.cumsum(ratings.item_counts[popular])))
    popular_first = by_rank[stable_order(ratings.users[by_rank], ratings.user_starts)]
    found = np.full((len(users), k), -1, np.int64)
    places = popular_first, ratings.items[popular_first]
    _nearest(
        users, items, by_item, ratings.user_starts, *places, similarity, np.int64(ratings.n_items), found
    )
    return found


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
    """Sets places (k,) to the k of `order` with the greatest similarities, which `best` then holds, by insertion."""
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
    ratings: Ratings, items: Ints, neighbours: Longs, residuals: Doubles, covariance: Singles, ridge: float
) -> Doubles:
    """(n,) Σ_j w_j·residual_uj over each row of `neighbours`, for predictions of `items` (n,).

        (A + ridge·I)·w = b,   A_jl = Avg_jl and b_j = Avg_ij for the neighbours j, l of item i

    residuals (n_ratings,) rating scale; covariance Avg, a packed triangle; ridge in its units.

    Because noise can leave A without an inverse, the Cholesky factor is built neighbour by neighbour, the nearest
    first. A neighbour is left out if its pivot is below `LEAST_PIVOT` times (Avg_jj + ridge), or is not positive.
    """
    given = ratings.items, residuals, covariance, np.int64(ratings.n_items), ridge
    return np.asarray(_interpolate(items, neighbours, *given, LANES))


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
            for a in range(count):
                # Without a neighbour, the limit leaves the row out, whatever an earlier prediction left in it.
                limits[a * w + lane], own[a * w + lane], y = np.inf, 0.0, neighbours[x, a]
                if y < 0:
                    continue
                j = np.int64(rated[y])
                for b in range(a):
                    other = np.int64(rated[neighbours[x, b]])
                    system[b * row + a * w + lane] = covariance[place(j, other, n_items)]
                variance = np.float64(covariance[place(j, j, n_items)]) + ridge
                system[a * row + a * w + lane] = variance
                system[a * row + k * w + lane] = covariance[place(np.int64(items[x]), j, n_items)]
                limits[a * w + lane], own[a * w + lane] = max(LEAST_PIVOT * variance, 0.0), residuals[y]
        for a in range(count):
            pivot, limit = _eliminated(system, a, a, row, like, w), load(limits, a * w, like)
            root = below(limit, pivot, sqrt(pivot), one)
            store(system, a * row + a * w, root)
            for b in range(a + 1, count + 1):
                b = b if b < count else k
                value = _eliminated(system, a, b, row, like, w) / root
                store(system, a * row + b * w, below(limit, pivot, value, like))
        total = like
        for a in range(count - 1, -1, -1):
            weight = load(system, a * row + k * w, like)
            for b in range(a + 1, count):
                weight = weight - load(system, a * row + b * w, like) * load(weights, b * w, like)
            weight = weight / load(system, a * row + a * w, like)
            store(weights, a * w, weight)
            total = total + weight * load(own, a * w, like)
        store(sums, 0, total)
        out[first:last] = sums[: last - first]
    return out


@compiled()
def _eliminated(system, a, b, row, like, w):
    """Element (a, b) of `system` after the rows above a are eliminated."""
    value = load(system, a * row + b * w, like)
    for c in range(a):
        taken = load(system, c * row + a * w, like) * load(system, c * row + b * w, like)
        value = value - taken
    return value


RATINGS_AT_ONCE = 128
"""How many item vectors of a user's ratings are laid side by side in the nearest cache, then multiplied."""
TILE = (0,) * 4
LEAST_UNEXPLAINED = 1e-12
"""A user's regression omits a factor if the factors before it leave less than this fraction of it unexplained."""


def regress(
    ratings: Ratings, users: Ints, items: Ints, residuals: Doubles, vectors: Floats, ridge: Doubles
) -> Doubles:
    """(n,) V_i·a_u for each pair (u, i) of `users` and `items` (n,), where a_u is u's ridge regression:

        a_u = argmin Σ_{j rated by u} (residual_uj − V_j·a)² + Σ_b ridge_b·a_b²

    residuals (n_ratings,) rating scale, in the order of `ratings`; vectors V (n_items, k), one row for each item;
    ridge (k,) ≥ 0, in units of V². For a user without ratings the prediction is 0. A rating of item i itself counts
    like any other.

    The normal equations are in float64 and solved by Cholesky, once for each user in `users`. If a pivot is within
    rounding of 0, its factor gets no weight. No ridge of a sensible size lets that happen.

    The products of two factors are summed in tiles of 4 × 4 that stay in registers.
    """
    k, tile = vectors.shape[1], len(TILE)
    padded = -(-k // tile) * tile
    rows = np.zeros((ratings.n_items, padded))
    rows[:, :k] = vectors
    out = np.zeros(len(users))
    by_user, given = np.argsort(users, kind="stable"), (ratings.user_starts, ratings.items)
    of_ratings, ridges = (np.ascontiguousarray(each, np.float64) for each in (residuals, ridge))
    _regress(users, items, by_user, *given, of_ratings, rows, ridges, out, TILE)
    return out


@compiled(example(rows=numbers(ITEMS, 4), ridge=np.full(3, 0.2), out=np.zeros(len(RATED))))
def _regress(users, items, by_user, user_starts, rated, residuals, rows, ridge, out, tile):
    k, padded = len(ridge), rows.shape[1]
    gram, right = np.empty((k, k)), np.empty(k)
    sums, buffer = np.empty(padded * padded), np.empty(RATINGS_AT_ONCE * padded)
    held = np.int64(-1)
    for x in by_user:
        user = np.int64(users[x])
        first, last = user_starts[user], user_starts[user + 1]
        if first == last:
            continue
        if user != held:
            sums[:], right[:] = 0, 0
            for start in range(first, last, RATINGS_AT_ONCE):
                count = min(RATINGS_AT_ONCE, last - start)
                for y in range(count):
                    row = rows[rated[start + y]]
                    for a in range(padded):
                        buffer[y * padded + a] = row[a]
                    for a in range(k):
                        right[a] += residuals[start + y] * row[a]
                _add_products(buffer, count, padded, sums, tile)
            for a in range(k):
                for b in range(a):
                    gram[a, b] = sums[b * padded + a]
                gram[a, a] = sums[a * padded + a] + ridge[a]
            _solve(gram, right)
            held = user
        row = rows[items[x]]
        for a in range(k):
            out[x] += row[a] * right[a]


@compiled()
def _add_products(buffer, count, padded, sums, tile):
    """Adds Σ_y v_y v_yᵀ to the tiles of `sums` (padded × padded) on and above the diagonal; v_y: rows of `buffer`."""
    w, like = len(tile), doubles(tile)
    for a in range(0, padded, w):
        for b in range(a, padded, w):
            at = a * padded + b
            sum0, sum1 = load(sums, at, like), load(sums, at + padded, like)
            sum2, sum3 = load(sums, at + 2 * padded, like), load(sums, at + 3 * padded, like)
            for y in range(0, count * padded, padded):
                v = load(buffer, y + b, like)
                sum0 = fma(splat(buffer[y + a], like), v, sum0)
                sum1 = fma(splat(buffer[y + a + 1], like), v, sum1)
                sum2 = fma(splat(buffer[y + a + 2], like), v, sum2)
                sum3 = fma(splat(buffer[y + a + 3], like), v, sum3)
            store(sums, at, sum0)
            store(sums, at + padded, sum1)
            store(sums, at + 2 * padded, sum2)
            store(sums, at + 3 * padded, sum3)


@compiled()
def _solve(gram, right):
    """Sets right ← gram⁻¹·right. Only the lower triangle of `gram` is read, and it becomes the Cholesky factor.

    A row without a pivot is left out: its unknown is 0.
    """
    k = len(right)
    for i in range(k):
        for j in range(i):
            value = gram[i, j]
            for c in range(j):
                value -= gram[i, c] * gram[j, c]
            gram[i, j] = value / gram[j, j] if gram[j, j] > 0 else 0.0
        pivot = gram[i, i]
        for c in range(i):
            pivot -= gram[i, c] * gram[i, c]
        if pivot > LEAST_UNEXPLAINED * gram[i, i]:
            gram[i, i] = np.sqrt(pivot)
            for c in range(i):
                right[i] -= gram[i, c] * right[c]
            right[i] /= gram[i, i]
        else:
            gram[i, : i + 1] = 0
            right[i] = 0
    for i in range(k - 1, -1, -1):
        if gram[i, i] > 0:
            for c in range(i + 1, k):
                right[i] -= gram[c, i] * right[c]
            right[i] /= gram[i, i]

"""What users add to the items' normal equations: weighted sums over lanes, and bounds on what one user adds.

For every item i these are sums over the users who rated it, of their factors p_u and the residuals x_ui:

    Gram          A_i = Σ_u w_ui·p_u·p_uᵀ     a packed lower triangle, row by row
    right sides   b_i = Σ_u w_ui·x_ui·p_u

Everything is in double precision. Because a term is a function of one user's ratings and of released numbers, the
same terms are added in the same order for two neighbours that differ in one user, except for that user's terms. Their
sums are at most n·2⁻⁵³·Σ|terms| further apart than in real numbers. A user's part is right to 10⁻¹² of itself.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.lane_groups import on_each_group
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.als import BLOCK, PREFETCHED, SideRatings, add_products, collect, tiled
from dpmf_cli.kernels.examples import BY_ITEM, ITEM_STARTS, ITEMS, RATERS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, plus_dot
from dpmf_cli.kernels.lane_math import below, clamp, fma, sqrt
from dpmf_cli.kernels.lanes import doubles, load, prefetch, splat, store
from dpmf_cli.kernels.sums import Columns


@dataclass(frozen=True)
class RatingWeights:
    """The weight of a rating: w_ui = users[u]·items[i], or 0 if ranks[i] > last[u]. It is never negative.

    users, last    (n_users, E)
    items, ranks   (n_items, E); `ranks` is None if no user leaves out an item
    """

    users: Doubles
    items: Doubles
    ranks: Doubles | None = None
    last: Doubles | None = None


def last_ranks(train: Ratings, ranks: Doubles, most: int) -> Doubles:
    """(n_users, E) the `most`-th smallest rank of each user's items; inf for a user with at most `most` items.

    So at most `most` of a user's items have ranks up to this number.

    ranks  (n_items, E); no two ranks of a model are equal
    """
    out = np.empty((train.n_users, ranks.shape[1]))
    _last_ranks(train.user_starts, train.items, np.ascontiguousarray(ranks.T), most, out)
    return out


@compiled(example(ranks=numbers(2, ITEMS), most=2, out=np.zeros((USERS, 2))))
def _last_ranks(starts, items, ranks, most, out):
    for u in range(len(starts) - 1):
        own = items[starts[u] : starts[u + 1]]
        for e in range(len(ranks)):
            out[u, e] = np.partition(ranks[e][own], most - 1)[most - 1] if len(own) > most else np.inf


def squared_weights(train: Ratings, weights: RatingWeights) -> Doubles:
    """(n_users, E) Σ_i items[i]² over the items that each user rated and does not leave out."""
    out = np.zeros_like(weights.users)
    for lane in range(out.shape[1]):
        squares = weights.items[train.items, lane] ** 2
        if weights.ranks is not None and weights.last is not None:
            squares *= weights.ranks[train.items, lane] <= weights.last[train.users, lane]
        out[:, lane] = np.bincount(train.users, squares, train.n_users)
    return out


PerModel = float | Doubles
"""One number for all models of a grid, or (E,) one for each."""


HELD = 1 << 23
"""How many numbers of Gram matrices to hold at a time: 64 MB, plus the memory of their noise."""


@dataclass(frozen=True)
class Residuals:
    """x_ui = clamp(r_ui − IAvg(i) − UAvg(u), ±bound). If `after_factors`, p_u·q_i is subtracted before clamping.

    vector  the limit to which the L2 norm of a user's part (w_ui·x_ui·p_u)_i of all right sides is shortened
    """

    bound: PerModel = math.inf
    after_factors: bool = False
    vector: PerModel = math.inf


class PartLanes(NamedTuple):
    """The parts of all users in the lanes of a group, as kernels take them: flat weights, then `Residuals`."""

    user_roots: Doubles
    item_roots: Doubles
    ranks: Doubles
    last: Doubles
    bound: Doubles
    after_factors: bool


@dataclass(frozen=True)
class UserParts:
    """The parts of all users: the ratings, the same ratings `by_item`, each rating's weight, and its residual."""

    train: Ratings
    by_item: SideRatings
    weights: RatingWeights
    residuals: Residuals = Residuals()


@on_each_group
def shorten_users(group: FactorLanes, limit: PerModel) -> None:
    """Sets p_u ← p_u·min(1, limit/‖p_u‖) in place; 0 if p_u is not finite.

    limit  one number or (E,)

    Vectors are shortened to slightly less than `limit`, because in single precision a length is right to 2⁻²³ of
    itself.
    """
    rows = group.rows("users")
    for first in range(0, len(rows), 4096):
        some = rows[first : first + 4096]
        with np.errstate(invalid="ignore", over="ignore"):
            wide = some.astype(np.float64)
            length = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
            most = group.of_grid(limit, np.float64)[: group.lanes] * (1 - 2.0**-22)
            shorter = wide * np.minimum(1, most / np.maximum(length, 1e-300))
        some[:] = np.where(np.isfinite(length), shorter, 0)


def isometric(gram: Doubles, factors: int) -> Doubles:
    """(…, d(d+1)/2, E) a packed triangle with √2 times its off-diagonal elements: its norm is the full matrix's."""
    return gram * _stretch(factors)


def whole(gram: Doubles, factors: int) -> Doubles:
    """(…, E, d, d) the symmetric matrices from which `isometric` has made gram (…, d(d+1)/2, E)."""
    packed = np.moveaxis(gram / _stretch(factors), -2, -1)
    out = np.empty((*packed.shape[:-1], factors, factors))
    row, column = np.tril_indices(factors)
    out[..., row, column] = out[..., column, row] = packed
    return out


def _stretch(factors: int) -> Doubles:
    """(d(d+1)/2, 1) 1 on the diagonal, √2 off it."""
    row, column = np.tril_indices(factors)
    return np.where(row == column, 1.0, math.sqrt(2))[:, None]


@on_each_group
def item_equations(
    group: FactorLanes, parts: UserParts, items: slice, *, with_gram: bool = True
) -> tuple[Doubles, Doubles]:
    """A (n, d(d+1)/2, E) and b (n, d, E) of the n `items`. Without `with_gram`, A has no entries.

    Factors must be finite, as `shorten_users` leaves them.
    """
    d, width, train, given = group.factors, group.width, parts.train, parts.weights
    ranks, last_ranks = (
        np.empty((0, group.part.stop)) if each is None else each for each in (given.ranks, given.last)
    )
    each = np.sqrt(given.users), np.sqrt(given.items), ranks, last_ranks, parts.residuals.bound
    lanes = (group.of_grid(one, np.float64).ravel() for one in each)
    common = PartLanes._make((*lanes, parts.residuals.after_factors))
    vector, kept = group.of_grid(parts.residuals.vector, np.float64), np.ones(train.n_users * width)
    if np.isfinite(vector).any():
        _shorten(Columns.of(train), common, vector, kept, *group.arguments)
    first, last, _ = items.indices(train.n_items)
    entries = d * (d + 1) // 2 if with_gram else 0
    sums = np.zeros((last - first, entries + d, width))
    sides = group.users, group.items
    _add(
        parts.by_item.rows,
        common,
        kept,
        first,
        last,
        with_gram,
        sums.reshape(-1),
        *sides,
        *group.shapes(np.float64),
    )
    return sums[:, :entries, : group.lanes], sums[:, entries:, : group.lanes]


@compiled(inline="always")
def _residual(value, P, p_at, Q, q_at, after_factors, low, high, factors_of, width_of):
    """clamp(value − effects − p·q, [low, high]) in lanes of float64. p·q is subtracted only if `after_factors`."""
    d, w = len(factors_of), len(width_of)
    wide = doubles(width_of)
    left = splat(value, wide) - load(Q, q_at + d * w, wide)
    left = left - load(P, p_at + d * w, wide)
    if after_factors:
        left = left - plus_dot(wide, p_at, q_at, P, Q, factors_of, width_of)
    return clamp(left, low, high)


_WEIGHTS = {
    "user_roots": lambda s: np.linspace(0.5, 1, USERS * s.w),
    "item_roots": lambda s: np.linspace(1, 0.5, ITEMS * s.w),
    "ranks": lambda s: np.repeat(np.arange(ITEMS), s.w),
    "last": lambda s: np.repeat([2.0, np.inf, 1.0, 3.0], s.w),
    "bound": lambda s: np.linspace(0.5, 2, s.w),
    "after_factors": True,
}


@compiled(example(vector=lambda s: np.linspace(0.1, 2, s.w), kept=lambda s: np.ones(USERS * s.w), **_WEIGHTS))
def _shorten(ratings, parts, vector, kept, P, Q, factors_of, width_of):
    """Sets kept[u] ← min(1, vector/‖(w_ui·x_ui·p_u)_i‖), or 0 if that norm is not finite."""
    _, items, values, starts = ratings
    user_roots, item_roots, ranks, last, bound, after_factors = parts
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    row = (d + 1) * w
    high = load(bound, 0, wide)
    low, most, one = wide - high, load(vector, 0, wide), splat(1.0, wide)
    for u in range(len(starts) - 1):
        length, squares = wide, wide
        for f in range(d):
            own = load(P, u * row + f * w, wide)
            length = fma(own, own, length)
        for x in range(starts[u], starts[u + 1]):
            i = np.int64(items[x])
            left = _residual(
                values[x], P, u * row, Q, i * row, after_factors, low, high, factors_of, width_of
            )
            root = load(item_roots, i * w, wide)
            if len(ranks) > 0:
                root = below(load(last, u * w, wide), load(ranks, i * w, wide), wide, root)
            left = left * (root * root)
            squares = fma(left, left, squares)
        root = load(user_roots, u * w, wide)
        norm = root * root * (sqrt(squares) * sqrt(length))
        part = below(most, norm, most / norm, one)
        store(kept, u * w, below(norm, splat(np.finfo(np.float64).max, wide), part, wide))


@compiled(
    example(
        raters=lambda s: (ITEM_STARTS, RATERS[BY_ITEM], 3.5 + 2 * numbers(len(RATERS))),
        kept=lambda s: np.linspace(0.5, 1, USERS * s.w),
        first=1,
        last_item=4,
        with_gram=True,
        out=lambda s: np.zeros(3 * (s.d * (s.d + 3) // 2) * s.w),
        **_WEIGHTS,
    )
)
def _add(raters, parts, kept, first, last_item, with_gram, out, P, Q, factors_of, width_of, part_of, tile_of):
    """Sets out (items, entries, w) ← A, if `with_gram`, then b.

    Raters are taken in blocks as in `als._solve`. A block holds √w_ui·p_u and √w_ui·kept[u]·x_ui; both are 0 for a
    user whose kept[u] is 0.
    """
    starts, others, values = raters
    user_roots, item_roots, ranks, last, bound, after_factors = parts
    d, w, v = len(factors_of), len(width_of), len(part_of)
    row, wide = (d + 1) * w, doubles(width_of)
    high, part = load(bound, 0, wide), doubles(part_of)
    low = wide - high
    entries, ahead_of = (d * (d + 3) // 2 if with_gram else d), len(others) - 1
    few, at_once, pair, sums = doubles(tile_of), len(tile_of), np.empty(2 * w), np.empty(entries * w)
    n, block, tiles = tiled(sums, factors_of, width_of)
    for i in range(first, last_item):
        tiles[:] = 0
        q_at, of_item = i * row, load(item_roots, i * w, wide)
        for begin in range(starts[i], starts[i + 1], BLOCK):
            members = min(BLOCK, starts[i + 1] - begin)
            for k in range(members):
                u = np.int64(others[begin + k])
                ahead = np.int64(others[min(begin + k + PREFETCHED, ahead_of)]) * row
                for f in range(d + 1):
                    prefetch(P, ahead + f * w)
                root, share = load(user_roots, u * w, wide) * of_item, load(kept, u * w, wide)
                if len(ranks) > 0:
                    root = below(load(last, u * w, wide), load(ranks, i * w, wide), wide, root)
                left = _residual(
                    values[begin + k], P, u * row, Q, q_at, after_factors, low, high, factors_of, width_of
                )
                store(pair, 0, below(wide, share, root * share * left, wide))
                store(pair, w, root)
                for lane in range(0, w, at_once):
                    to, part_kept = (lane * BLOCK + k * at_once) * n, load(kept, u * w + lane, few)
                    store(block, to, load(pair, lane, few))
                    for f in range(d):
                        own = load(pair, w + lane, few) * load(P, u * row + f * w + lane, few)
                        store(block, to + (f + 1) * at_once, below(few, part_kept, own, few))
            add_products(block, block, members, tiles, with_gram, width_of, tile_of)
        collect(tiles, sums, with_gram, factors_of, width_of, part_of, tile_of)
        at = (i - first) * entries * w
        for lane in range(0, w, v):
            for entry in range(entries):
                store(out, at + entry * w + lane, load(sums, entries * lane + entry * v, part))

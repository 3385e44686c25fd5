"""Unbounded input perturbation without its matrix: every cell's noise is a function of (key, user, item).

The dense method (Friedman et al. 2016, section 4.2, equation 8) adds Laplace(b) noise to all users × items cells,
clamps to [−B, B] and drops the cells with |value| ≤ α. Here a cell's unit noise X is computed when the cell is
visited: SplitMix64 (Steele, Lea, Flood 2014) of the cell's number gives a sign and a uniform V, and |X| = −ln V.

The law is that of the dense method. A blank cell has the value clamp(b·X), where X ~ Laplace(1) is independent of all
other cells. It survives iff |clamp(b·X)| > α. For α < B this means |X| > α/b, or V < exp(−α/b). Cells with V at or
above exp(−α/b) are skipped before the logarithm is taken. That drops exactly the cells that the dense method drops,
each with probability 1 − exp(−α/b), independently. The value of a survivor is sign·min(b·|X|, B). There |X| − α/b ~
Exp(1) by memorylessness, and the mass at ±B is exp(−B/b)/exp(−α/b). A rated cell is b·X plus its residual, as in the
dense matrix. Because all values are on the grid of b (`privacy.grid`), the rounded value is compared with α, and V
with slightly more than exp(−α/b).

The noise of a cell follows from the cell's number, because it must not depend on the other ε of the grid (larger ε
see the same X and keep fewer cells), and must be the same in every epoch without being stored; a drawn count of
survivors, in random places, would do neither. Nothing of size users × items is ever in memory.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Ints, Longs
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, aligned
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import example
from dpmf_cli.kernels.factors import FactorLanes, plus_dot
from dpmf_cli.kernels.lane_math import (
    any_below,
    below,
    cast,
    clamp,
    flush_denormals,
    fma,
    lanes_where,
    restore_denormals,
)
from dpmf_cli.kernels.lanes import doubles, load, plain_dot, prefetch, splat, store, zeros
from dpmf_cli.kernels.releasing import noise_lanes, released
from dpmf_cli.kernels.sgd import Sgd, left_of, plain_clamp, plain_update
from dpmf_cli.kernels.sums import Columns
from dpmf_cli.privacy.noise import KeyedNoise, cell_bits, magnitude_uniform, minus_log
from dpmf_cli.privacy.release import Publish, noisy_kernel

CUT_SLACK = 2.0**-10
"""Relative slack of the bound on V. A cell whose value on the grid g is above α has b·|X| ≥ α − g/2. So its V is
below exp(g/2b) ≤ exp(2⁻¹¹) times exp(−α/b), except for the rounding of α to float32."""


@compiled()
def draw_survivors(key, first, rating, cut, places, uniform, noise):
    """Finds the cells of one user that survive in some model, or are rated; returns how many there are.

    first   number of the user's first cell
    rating  (n_items,) float32 by place, NaN where there is none
    cut     exp(−α/b) of the largest scale: blank cells with V at or above it survive in no model
    places, uniform, noise  (n_items,) int32, float64, float64: room for the cells' places, signed V and unit noise
    """
    count = 0
    for y in range(len(rating)):
        bits = cell_bits(key, first + y)
        v = magnitude_uniform(bits)
        places[count] = y
        uniform[count] = v if bits & np.uint64(1) else -v
        count += (v < cut) | (rating[y] == rating[y])  # `or` would be a branch that no CPU can predict
    minus_log(uniform, noise, count)
    return count


def skipped_above(threshold: float, scale: float) -> float:
    """The V from which on a blank cell is skipped: slightly above exp(−α/b), so that only the test in the lanes, of
    the value on the grid, decides whether a cell survives, whichever larger scales share its group."""
    return (1 + CUT_SLACK) * math.exp(-threshold / scale) if scale > 0 else 0.0


def _plain_descend_survivors(
    group: FactorLanes,
    publish: Publish,
    train: Ratings,
    sgd: Sgd,
    order: Ints,
    shifts: Longs,
    samples: Sequence[NDArray[np.uint16]] | None = None,
) -> None:
    """The Python reference of `descend_survivors`, which measures all cells: the clamped residual, 0 without a
    rating."""
    n_users, n_items = train.n_users, train.n_items
    residuals = np.zeros((n_users, n_items, group.lanes))
    rated = group.residuals(train.users, train.items, train.values, sgd.bound)
    if samples is not None:
        bits = samples[group.part.start // MAXIMUM_WIDTH][:, None]
        rated *= bits >> np.arange(group.lanes, dtype=np.uint16) & 1
    residuals[train.users, train.items] = rated
    # (n_users, n_items) the item at each place
    visited = np.stack([np.roll(order, -shift) for shift in shifts])
    clean = np.take_along_axis(residuals, visited[..., None], axis=1).reshape(-1, group.lanes)
    values = plain_clamp(publish(clean), sgd.bound).reshape(residuals.shape)
    p, q = group.rows("users"), group.rows("items")
    for _ in range(sgd.epochs):
        for u in range(n_users):
            for place, i in enumerate(visited[u]):
                kept = np.abs(values[u, place]) > np.float32(sgd.threshold)
                error = values[u, place] - plain_dot(p[u], q[i])
                before = p[u].copy(), q[i].copy()
                plain_update(p[u], q[i], error, sgd)
                p[u], q[i] = np.where(kept, p[u], before[0]), np.where(kept, q[i], before[1])


@noisy_kernel(_plain_descend_survivors)
def descend_survivors(
    group: FactorLanes,
    noise: KeyedNoise,
    train: Ratings,
    sgd: Sgd,
    order: Ints,
    shifts: Longs,
    samples: Sequence[NDArray[np.uint16]] | None = None,
) -> None:
    """Runs SGD on the surviving cells of the perturbed matrix, in place, `epochs` times.

    A cell that survives in only some models changes only these. Cells are visited one user after the other.

    noise    keyed by the cell's number u·n_items + place, where places are in the order of the user's visits
    order, shifts  the items of user u are visited in the order of the permutation `order` (n_items,), rotated by
                   shifts[u]
    samples  for each group of models (n_ratings,), bit e set where model e of the group has the rating; in other
             models its cell is blank. None if all have all ratings
    """
    part = group.part.start // MAXIMUM_WIDTH
    bits = None if samples is None else samples[part]
    cut = skipped_above(sgd.threshold, float(np.max(noise.scale)))
    keyed, near = (np.uint64(noise.key), noise_lanes(noise, group.width)), aligned((len(group.items),))
    visits = Columns.of(train), bits, order, shifts
    _descend_survivors(*visits, *keyed, cut, near, sgd.single(), *group.unrolled)


@compiled(
    example(
        order=[3, 0, 4, 1, 2],
        shifts=[1, 0, 4, 2],
        cut=0.6,
        bits=[1, 3, 0, 65535, 255, 4, 77, 128],
    )
)
def _descend_survivors(ratings, bits, order, shifts, key, noise, cut, near, sgd, P, Q, factors_of, width_of):
    """near  room for the items' rows in the order of the visits, so that successive visits use adjacent rows"""
    _, items, values, starts = ratings
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    low, high, least = splat(-sgd.bound, like), splat(sgd.bound, like), splat(sgd.threshold, like)
    step, keep = splat(sgd.learning_rate, like), splat(left_of(sgd), like)
    one, nothing = splat(np.float32(1), like), zeros(width_of)
    n_users, n_items = len(starts) - 1, len(order)
    place_of = np.empty(n_items, np.int64)
    for y in range(n_items):
        place_of[order[y]] = y
        near[y * row : (y + 1) * row] = Q[order[y] * row : (order[y] + 1) * row]
    rating, having = np.full(n_items, np.float32(np.nan)), np.zeros(n_items, np.uint16)
    places, uniform, unit = np.empty(n_items + 1, np.int32), np.empty(n_items + 1), np.empty(n_items + 1)
    rows = np.empty(n_items, np.int64)
    before = flush_denormals()
    for _ in range(sgd.epochs):
        for u in range(n_users):
            for x in range(starts[u], starts[u + 1]):
                place = place_of[items[x]] - shifts[u]
                place = place if place >= 0 else place + n_items
                rating[place] = values[x]
                if bits is not None:
                    having[place] = bits[x]
            count = draw_survivors(key, u * n_items, rating, cut, places, uniform, unit)
            for k in range(count):
                place = places[k] + shifts[u]
                rows[k] = (place if place < n_items else place - n_items) * row
            p_at, dot, known = u * row, nothing, False
            for k in range(count):
                q_at, next_at, ahead = rows[k], rows[min(k + 1, count - 1)], rows[min(k + 2, count - 1)]
                for f in range(d + 1):
                    prefetch(near, ahead + f * w)
                value = rating[places[k]]
                residual = nothing
                if value == value:
                    residual = splat(value, like) - load(near, q_at + d * w, like)
                    residual = clamp(residual - load(P, p_at + d * w, like), low, high)
                    if bits is not None:
                        residual = lanes_where(having[places[k]], like) * residual
                noisy = cast(released(cast(residual, wide), unit[k], noise, wide), like)
                noisy = clamp(noisy, low, high)
                size = abs(noisy)
                if not any_below(least, size):
                    known = False
                    continue
                if not known:
                    dot = plus_dot(nothing, p_at, q_at, P, near, factors_of, width_of)
                # A dropped cell stores 0·0 + 1·p. When the sum or p was selected and stored instead, the complete fit
                # took 1.7 times as long, perhaps because the store had a mask.
                move = below(least, size, (noisy - dot) * step, nothing)
                kept, dot, known = below(least, size, keep, one), nothing, True
                for f in range(d):
                    p, q = load(P, p_at + f * w, like), load(near, q_at + f * w, like)
                    by_p, by_q = below(least, size, p, nothing), below(least, size, q, nothing)
                    new_p = fma(move, by_q, kept * p)
                    store(P, p_at + f * w, new_p)
                    store(near, q_at + f * w, fma(move, by_p, kept * q))
                    dot = fma(new_p, load(near, next_at + f * w, like), dot)
            for x in range(starts[u], starts[u + 1]):
                place = place_of[items[x]] - shifts[u]
                rating[place if place >= 0 else place + n_items] = np.nan
    restore_denormals(before)
    for y in range(n_items):
        Q[order[y] * row : (order[y] + 1) * row] = near[y * row : (y + 1) * row]

"""Item neighbourhoods with similarities of each model's own: predictions, and gradients of their squared error.

Wang and Tang 2017, equations 2, 4 and 5. The similarities of an item to its neighbours are a row, and a rating (u, i)
has a gradient in row i alone. So the rows are taken one after the other: a row, its gradient and the averages that
it needs stay in the nearest cache while its raters pass by.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.lanes import (
    add,
    below,
    clamp,
    div,
    doubles,
    fma,
    load,
    mul,
    splat,
    sqrt,
    store,
    sub,
    widen,
    zeros,
)
from dpmf_cli.lane_groups import pad, padded_width
from dpmf_cli.ratings import Ratings

LEAST_NORM = np.float32(1e-30)
"""Stands for 0 in denominators: a numerator over it is 0, or there is nothing to predict from."""
GUARD = np.float32(1 - 2**-11)
"""Clipping aims so far below a limit, which rounding then cannot exceed: a float32 sum of m squares, one added after
the other, is too small by m·2⁻²⁴ of itself at most, its root by half of that."""


@dataclass(frozen=True)
class SimilarityLanes:
    """One group of at most 16 models of item neighbourhoods, side by side.

    neighbours  (n_items, k) int32: the neighbours of each item, all different; −1 fills up
    values      flat float32, rows of k vectors of `width` lanes: s_ij for the neighbours j of item i, in their order
    averages    flat float32, a vector for each item: r̄_i, rating scale
    """

    neighbours: NDArray[np.int32]
    values: NDArray[np.float32]
    averages: NDArray[np.float32]
    width: int
    lanes: int

    @property
    def width_of(self) -> tuple[int, ...]:
        """A tuple whose length is the width: kernels read shapes from types."""
        return (0,) * self.width

    def predict(
        self, train: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """(n, lanes) r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| over the neighbours j that u rated in `train`;
        r̄_i where there are none, or their similarities are all 0."""
        out = np.empty(len(users) * self.width, np.float32)
        _predict(
            users,
            items,
            np.argsort(items, kind="stable"),
            train.user_starts,
            train.items,
            train.values,
            self.neighbours,
            self.values,
            self.averages,
            out,
            self.width_of,
        )
        return out.reshape(len(users), self.width)[:, : self.lanes]


def similarity_lanes(
    neighbours: NDArray[np.int32], values: NDArray[np.float32] | float, averages: NDArray[np.float64]
) -> SimilarityLanes:
    """Similarities common to all models, (n_items, k) or one number, beside `averages` (n_items, lanes)."""
    lanes = averages.shape[1]
    width = padded_width(lanes)
    flat = np.empty((*neighbours.shape, width), np.float32)
    flat[:] = values if np.isscalar(values) else np.asarray(values)[:, :, None]
    return SimilarityLanes(neighbours, flat.reshape(-1), pad(averages, width).reshape(-1), width, lanes)


@dataclass(frozen=True)
class Visits:
    """The ratings whose errors are learned from, and the most that each may contribute.

    raters    the item-major view of `train`
    limits    (n_users,) float32: what the norm of the gradient of one rating of the user is clipped to; inf for none
    norm      2, or 1, for which ‖g‖₁ ≤ √m·‖g‖₂ of the m neighbours that the user rated is clipped
    """

    train: Ratings
    raters: Raters
    limits: NDArray[np.float32]
    norm: int = 2


def descend_similarities(
    models: SimilarityLanes,
    visits: Visits,
    sampled: NDArray[np.bool_],
    unit: NDArray[np.floating],
    scale: NDArray[np.float64],
    rates: NDArray[np.float64],
    *,
    regularization: float = 0.0,
    error_bound: float = np.inf,
    floor: float = 0.0,
    everywhere: bool = True,
) -> None:
    """One step of gradient descent on ½Σe² + λ/2·Σs², in place.

        e  = clamp(r̂_ui − r_ui, ±error_bound),   D = max(Σ_j |s_ij|, floor)
        g_j = e·(r_uj − r̄_j − (r̂_ui − r̄_i)·sgn s_ij)/D,  scaled to the user's limit, sgn 0 = 1
        s_ij ← s_ij − rate·(Σ_u g_j + noise + λ·s_ij)

    Where D = 0 there is no gradient. Sums are float64: in float32 a contribution would also move the rounding
    of all that are added after it.

    sampled     (n_ratings,) in the order of the ratings: which of them take part
    unit        (n_items, k) noise; scale, rates (lanes,)
    everywhere  whether all similarities get noise, or those alone for which a rating of the sample has a gradient
    """
    padded = np.zeros((2, models.width))
    padded[:, : models.lanes] = scale, rates
    train, raters = visits.train, visits.raters
    _descend(
        raters.starts,
        raters.positions,
        sampled,
        visits.limits,
        visits.norm,
        train.users,
        train.user_starts,
        train.items,
        train.values,
        models.neighbours,
        models.values,
        models.averages,
        unit.reshape(-1),
        padded[0],
        padded[1],
        everywhere,
        regularization,
        np.float32(error_bound),
        np.float32(floor),
        models.width_of,
    )


@njit(cache=True, nogil=True)
def _index(row, slots, sign):
    """Notes where each neighbour of a row stands (sign 1), or forgets it again (−1)."""
    for a in range(len(row)):
        if row[a] >= 0:
            slots[row[a]] = a if sign > 0 else -1


@njit(cache=True, nogil=True)
def _rated(item, first, last, items, slots, found):
    """The places in `items` of the neighbours that a user rated, the item itself left out; returns how many."""
    count = 0
    for x in range(first, last):
        found[count] = x
        count += slots[items[x]] >= 0 and items[x] != item
    return count


@njit(cache=True, nogil=True, inline="always")
def _sign(value, like, one, minus):
    return below(value, like, minus, one)


@njit(cache=True, nogil=True)
def _predict(users, items, order, user_starts, rated, values, neighbours, S, averages, out, width_of):
    w, like = len(width_of), zeros(width_of)
    k, slots = neighbours.shape[1], np.full(neighbours.shape[0], -1, np.int32)
    found = np.empty(neighbours.shape[0] + 1, np.int64)
    one, minus, tiny = splat(np.float32(1), like), splat(np.float32(-1), like), splat(LEAST_NORM, like)
    last = -1
    for at in order:
        i, u = np.int64(items[at]), users[at]
        if i != last:
            if last >= 0:
                _index(neighbours[last], slots, -1)
            _index(neighbours[i], slots, 1)
            last = i
        count = _rated(i, user_starts[u], user_starts[u + 1], rated, slots, found)
        top, norm = like, like
        for a in range(count):
            j = np.int64(rated[found[a]])
            s = load(S, (i * k + slots[j]) * w, like)
            top = fma(s, sub(splat(values[found[a]], like), load(averages, j * w, like)), top)
            norm = add(norm, mul(s, _sign(s, like, one, minus)))
        norm = below(norm, tiny, tiny, norm)
        store(out, np.int64(at) * w, add(load(averages, i * w, like), div(top, norm)))


@njit(cache=True, nogil=True)
def _descend(
    starts,
    positions,
    sampled,
    limits,
    norm_of_limits,
    users,
    user_starts,
    rated,
    values,
    neighbours,
    S,
    averages,
    unit,
    scale,
    rates,
    everywhere,
    regularization,
    error_bound,
    floor,
    width_of,
):
    w, like, wide = len(width_of), zeros(width_of), doubles(width_of)
    n_items, k = neighbours.shape
    slots, found = np.full(n_items, -1, np.int32), np.empty(n_items + 1, np.int64)
    gradient, met, residuals = np.empty(k * w), np.empty(k, np.bool_), np.empty(k * w, np.float32)
    one, minus, tiny = splat(np.float32(1), like), splat(np.float32(-1), like), splat(LEAST_NORM, like)
    endless = splat(np.float32(np.inf), like)
    low, high, least = (
        splat(-error_bound, like),
        splat(error_bound, like),
        splat(max(floor, LEAST_NORM), like),
    )
    for i in range(n_items):
        gradient[:], met[:] = 0, everywhere
        _index(neighbours[i], slots, 1)
        for at in range(starts[i], starts[i + 1]):
            x = positions[at]
            if not sampled[x]:
                continue
            u = users[x]
            count = _rated(i, user_starts[u], user_starts[u + 1], rated, slots, found)
            top, norm = like, like
            for a in range(count):
                j = np.int64(rated[found[a]])
                s = load(S, (i * k + slots[j]) * w, like)
                own = sub(splat(values[found[a]], like), load(averages, j * w, like))
                store(residuals, a * w, own)
                top, norm = fma(s, own, top), fma(s, _sign(s, like, one, minus), norm)
            offset = div(top, below(norm, tiny, tiny, norm))
            error = sub(add(load(averages, np.int64(i) * w, like), offset), splat(values[x], like))
            divisor = below(norm, least, least, norm)
            move = below(tiny, divisor, div(clamp(error, low, high), divisor), like)
            square = like
            for a in range(count):
                slot = slots[rated[found[a]]]
                met[slot] = True
                sign = _sign(load(S, (i * k + slot) * w, like), like, one, minus)
                slope = sub(load(residuals, a * w, like), mul(offset, sign))
                size = mul(slope, _sign(slope, like, one, minus))
                slope = below(size, endless, slope, like)  # 0 for what is not finite
                store(residuals, a * w, slope)
                square = fma(slope, slope, square)
            if limits[u] < np.inf:
                # Of the numbers that are added: a formula for ‖g‖ would lose its digits where they nearly cancel.
                root = np.sqrt(np.float32(max(count, 1))) if norm_of_limits == 1 else np.float32(1)
                most = splat(GUARD * limits[u] / root, like)
                length = mul(mul(move, _sign(move, like, one, minus)), sqrt(square))
                # A user whose gradient is not finite adds nothing: whether it is there must not show.
                factor = below(most, length, div(most, length), below(length, endless, one, like))
                move = mul(below(length, endless, move, like), factor)
            for a in range(count):
                slot = slots[rated[found[a]]] * w
                added = widen(mul(move, load(residuals, a * w, like)))
                store(gradient, slot, add(added, load(gradient, slot, wide)))
        for a in range(k):
            noise = np.float64(unit[i * k + a]) if met[a] else 0.0
            for lane in range(w):
                s = np.float64(S[(i * k + a) * w + lane])
                slope = gradient[a * w + lane] + noise * scale[lane] + regularization * s
                S[(i * k + a) * w + lane] = s - rates[lane] * slope
        _index(neighbours[i], slots, -1)

"""Unbounded input perturbation without its matrix: every cell's noise is a function of (key, user, item).

The dense method (Friedman et al. 2016, section 4.2, equation 8) adds Laplace(b) noise to all users × items cells,
clamps to [−B, B] and drops the cells with |value| ≤ α. Here a cell's unit noise X is computed when the cell is
visited: SplitMix64 (Steele, Lea, Flood 2014) of the cell's number gives a sign and a uniform V, and |X| = −ln V.

Why the law is the dense one. A blank cell has the value clamp(b·X), X ~ Laplace(1), independent of all others; it
survives iff |clamp(b·X)| > α, which for α < B is |X| > α/b, or V < exp(−α/b). So skipping the cells with V at or
above that before taking the logarithm drops exactly the cells that the dense method drops, each with probability
1 − exp(−α/b), independently; what survives is sign·min(b·|X|, B) with |X| − α/b ~ Exp(1) by memorylessness and
mass exp(−B/b)/exp(−α/b) at ±B. A rated cell is b·X plus its residual, as in the dense matrix.

Why by number and not by a count of survivors at random places: the noise of a cell must not depend on the other ε of
the grid (larger ε see the same X and keep fewer cells), and it must be the same in every epoch without being stored.
Nothing of size users × items is ever in memory.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.denormals import flushing
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import below, clamp, fma, load, mul, pad, prefetch, splat, store, sub, zeros

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_POWERS = 2.0 ** np.arange(64)

CUT_SLACK = 1e-4
"""Relative: far above the rounding of float32 in α/b, far below what would cost time."""


@njit(cache=True, nogil=True, inline="always")
def cell_bits(key: np.uint64, cell: int) -> np.uint64:
    """64 random bits of a cell: SplitMix64's output number `cell` from the state `key`."""
    z = key + np.uint64(cell + 1) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True, inline="always")
def magnitude_uniform(bits: np.uint64) -> float:
    """V in (0, 1], from the upper 53 bits; the magnitude of the unit noise is −ln V."""
    return (np.float64(bits >> np.uint64(11)) + 1.0) * 2.0**-53


@njit(cache=True, nogil=True)
def draw_survivors(key, first, rating, cut, places, uniform, noise):
    """The cells of one user that survive in some model, or are rated: their places, and their unit noise.

    first   number of the user's first cell; rating (n_items,) float32 by place, NaN where there is none
    cut     exp(−α/b) of the largest scale: blank cells with V at or above it survive in no model
    places, uniform, noise  (n_items,) int32, float64, float32: room for the answer; returns how many there are
    """
    count = 0
    for y in range(len(rating)):
        bits = cell_bits(key, first + y)
        v = magnitude_uniform(bits)
        places[count] = y
        uniform[count] = v if bits & np.uint64(1) else -v
        count += v < cut or rating[y] == rating[y]
    minus_log(uniform, noise, count)
    return count


@njit(cache=True, nogil=True)
def minus_log(signed, out, count):
    """out ← −ln|v| with the sign of v, for the first `count` of `signed`, float64 in [−1, 1] without 0.

    |v| = m·2^e with m in [√½, √2); ln m = 2·artanh(s), s = (m − 1)/(m + 1), |s| < 0.1716, by its series to s¹⁵:
    an error below 1e-13. Only IEEE operations in one order, so that every machine gives the same bits (a
    mathematical library's logarithm does not), and a loop that LLVM can vectorise.
    """
    bits = signed.view(np.int64)
    for k in range(count):
        exponent = ((bits[k] >> 52) & 0x7FF) - 1023
        mantissa = np.abs(signed[k]) * _POWERS[-exponent]
        large = mantissa > 1.4142135623730951
        mantissa = 0.5 * mantissa if large else mantissa
        power = np.float64(exponent + 1 if large else exponent)
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        series = 1 / 13 + z * (1 / 15)
        series = 1 / 11 + z * series
        series = 1 / 9 + z * series
        series = 1 / 7 + z * series
        series = 1 / 5 + z * series
        series = 1 / 3 + z * series
        magnitude = -(power * 0.6931471805599453 + 2.0 * s * (1.0 + z * series))
        out[k] = magnitude if signed[k] > 0 else -magnitude


def skipped_above(threshold: float, scale: float) -> float:
    """V from which on a blank cell is skipped: a hair above exp(−α/b), so that the float32 test in the lanes alone
    decides about a cell, whichever larger scales share its group."""
    return (1 + CUT_SLACK) * math.exp(-threshold / scale) if scale > 0 else 0.0


@flushing
def descend_survivors(
    start: FactorLanes,
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    key: int,
    order: NDArray[np.int32],
    shifts: NDArray[np.int64],
    scale: NDArray[np.float64],
    *,
    learning_rate: float,
    regularization: float,
    bound: float,
    threshold: float,
    epochs: int,
) -> None:
    """SGD on the surviving cells of the perturbed matrix, in place, `epochs` times.

    Users are visited one after the other, the items of user u in the order `order` (n_items,), a permutation,
    rotated by shifts[u]. A cell that survives in some models only changes those.

    starts (n_users + 1,), items and values (n_ratings,) by user; key  the state of the cells' noise;
    scale (lanes,) b for each model; threshold  α
    """
    cut = skipped_above(threshold, float(np.max(scale)))
    _descend_survivors(
        starts,
        items,
        values,
        np.uint64(key),
        order,
        shifts,
        pad(scale, start.width),
        cut,
        start.users,
        start.items,
        np.float32(learning_rate),
        np.float32(regularization),
        np.float32(bound),
        np.float32(threshold),
        epochs,
        start.factors_of,
        start.width_of,
    )


@njit(cache=True, nogil=True)
def _descend_survivors(
    starts,
    items,
    values,
    key,
    order,
    shifts,
    scale,
    cut,
    P,
    Q,
    rate,
    regularization,
    bound,
    threshold,
    epochs,
    factors_of,
    width_of,
):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    scales, low, high = load(scale, 0, like), splat(-bound, like), splat(bound, like)
    one, nothing = splat(np.float32(1), like), zeros(width_of)
    step, keep = splat(rate, like), splat(np.float32(1) - rate * regularization, like)
    dropped = splat(threshold * threshold, like)
    n_users, n_items = len(starts) - 1, len(order)
    place_of = np.empty(n_items, np.int64)
    for y in range(n_items):
        place_of[order[y]] = y
    rating = np.full(n_items, np.float32(np.nan))
    places, noise = np.empty(n_items + 1, np.int32), np.empty(n_items + 1, np.float32)
    uniform = np.empty(n_items + 1)
    for _ in range(epochs):
        for u in range(n_users):
            for x in range(starts[u], starts[u + 1]):
                place = place_of[items[x]] - shifts[u]
                rating[place if place >= 0 else place + n_items] = values[x]
            count = draw_survivors(key, u * n_items, rating, cut, places, uniform, noise)
            p_at = u * row
            for k in range(count):
                place = places[k] + shifts[u]
                q_at = np.int64(order[place if place < n_items else place - n_items]) * row
                ahead = places[min(k + 2, count - 1)] + shifts[u]
                ahead = np.int64(order[ahead if ahead < n_items else ahead - n_items]) * row
                for f in range(d + 1):
                    prefetch(Q, ahead + f * w)
                value = rating[places[k]]
                residual = nothing
                if value == value:
                    residual = sub(splat(value, like), load(Q, q_at + d * w, like))
                    residual = clamp(sub(residual, load(P, p_at + d * w, like)), low, high)
                noisy = clamp(fma(splat(noise[k], like), scales, residual), low, high)
                dot = zeros(width_of)
                for f in range(d):
                    dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
                square = mul(noisy, noisy)
                move = below(dropped, square, mul(sub(noisy, dot), step), nothing)
                kept = below(dropped, square, keep, one)
                for f in range(d):
                    p, q = load(P, p_at + f * w, like), load(Q, q_at + f * w, like)
                    store(P, p_at + f * w, fma(move, q, mul(kept, p)))
                    store(Q, q_at + f * w, fma(move, p, mul(kept, q)))
            for x in range(starts[u], starts[u + 1]):
                place = place_of[items[x]] - shifts[u]
                rating[place if place >= 0 else place + n_items] = np.nan

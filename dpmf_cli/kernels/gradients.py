"""Mini-batch gradient descent of a factorisation, each model of a group on its own sample of the ratings.

A rating's bit e says whether model e has it: its gradient is multiplied by 1 or by 0, which adds nothing to a sum, so
that a model's factors are those of a fit of its sample alone, to the bit.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import add, fma, lanes_where, load, mul, prefetch, splat, store, sub, zeros

Side = Literal["users", "items"]


@dataclass(frozen=True)
class SampledVisits:
    """Ratings in the order in which gradients are summed.

    users, items (n,) int32; values (n,) float32; bits (n,) uint16, bit e set where model e has the rating
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    bits: NDArray[np.uint16]


class Descent:
    """Factors, and the gradients of ½Σe², e = r − effects − u·v, summed since each model's last step."""

    def __init__(self, factors: FactorLanes, momentum: float) -> None:
        self.factors = factors
        self.momentum = np.float32(momentum)
        self._rows: dict[Side, NDArray[np.float32]] = {"users": factors.users, "items": factors.items}
        self._sums = {side: np.zeros_like(rows) for side, rows in self._rows.items()}
        self._speeds = {
            side: np.zeros_like(rows) if momentum else np.empty(0, np.float32)
            for side, rows in self._rows.items()
        }

    def add_gradients(self, visits: SampledVisits, first: int, last: int, *, users: bool) -> None:
        """Sums e·u for items, and with `users` e·v for users, over the visits [first, last)."""
        factors = self.factors
        _add_gradients(
            visits.users[first:last],
            visits.items[first:last],
            visits.values[first:last],
            visits.bits[first:last],
            factors.users,
            factors.items,
            self._sums["users"],
            self._sums["items"],
            users,
            factors.factors_of,
            factors.width_of,
        )

    def step(
        self,
        side: Side,
        rates: NDArray[np.float32],
        regularization: float,
        unit: NDArray[np.floating] | None = None,
        scale: NDArray[np.float32] | None = None,
    ) -> None:
        """u ← u + rate·(sum − λ·u − η) in the models with a rate above 0, whose sums begin anew; the others wait.

        The same for items. rates (width,); η = unit (n, d), a row a user or item, times scale (width,), 0 without.
        With momentum μ the step is μ times the step before plus this one.
        """
        factors = self.factors
        _step_rows(
            self._rows[side],
            self._sums[side],
            self._speeds[side],
            rates,
            (rates == 0).astype(np.float32),
            np.float32(regularization),
            self.momentum,
            np.empty(0, np.float32) if unit is None else unit.astype(np.float32).ravel(),
            rates if scale is None else scale,
            factors.factors_of,
            factors.width_of,
        )


@njit(cache=True, nogil=True)
def _add_gradients(users, items, values, bits, P, Q, to_P, to_Q, both, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    last = len(values) - 1
    for x in range(len(values)):
        if bits[x] == 0:
            continue
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        ahead = np.int64(items[min(x + 2, last)]) * row
        for f in range(d):
            prefetch(Q, ahead + f * w)
            prefetch(to_Q, ahead + f * w)
        dot = add(load(Q, q_at + d * w, like), load(P, p_at + d * w, like))
        for f in range(d):
            dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
        error = mul(lanes_where(bits[x], like), sub(splat(values[x], like), dot))
        for f in range(d):
            at = q_at + f * w
            store(to_Q, at, fma(error, load(P, p_at + f * w, like), load(to_Q, at, like)))
        if both:
            for f in range(d):
                at = p_at + f * w
                store(to_P, at, fma(error, load(Q, q_at + f * w, like), load(to_P, at, like)))


@njit(cache=True, nogil=True)
def _step_rows(P, to_P, speed, rates, waits, ridge, momentum, unit, scale, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    rate, wait, scales = load(rates, 0, like), load(waits, 0, like), load(scale, 0, like)
    go, weight, keep = sub(splat(np.float32(1), like), wait), splat(-ridge, like), splat(momentum, like)
    slow = fma(keep, go, wait)
    for r in range(len(P) // row):
        for f in range(d):
            at = r * row + f * w
            value, gathered = load(P, at, like), load(to_P, at, like)
            slope = fma(weight, value, gathered)
            if len(unit) > 0:
                slope = sub(slope, mul(splat(unit[r * d + f], like), scales))
            if len(speed) > 0:
                moved = fma(rate, slope, mul(slow, load(speed, at, like)))
                store(speed, at, moved)
                store(P, at, fma(go, moved, value))
            else:
                store(P, at, fma(rate, slope, value))
            store(to_P, at, mul(wait, gathered))

"""The audit's own accountant: what steps cost together. It shares no code with the accountant that it judges.

ε of pure steps add up. Of an ε-DP step on a sample of a fraction γ, ln(1 + γ(e^ε − 1)) is added.

*Gaussian steps.* Let P and Q be the laws of the released numbers on two neighbours. δ(ε) = E_P[(1 − e^(ε − L))₊],
where L = ln dP/dQ is the privacy loss. Losses of independent steps add up. For N(μ, 1) and N(0, 1) the loss has the
law N(μ²/2, μ²), so K such steps are one with μ² = Σμ_k², and

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)        (Balle and Wang 2018, theorem 8)

*Gaussian steps on samples.* A step has the laws P = (1 − γ)·N(0, 1) + γ·N(a, 1) and Q, which has b in the place of a.
If a user is present on one side only, a is the user's contribution c/σ, and b is 0. If the contribution is exchanged,
a = c/σ and b = −a. The loss grows with x, since a > 0 ≥ b. So an interval of x with the probability p under P adds p
to the least loss in the interval, rounded down to a multiple of h. What is beyond nine standard deviations is left
out. Both can only make losses smaller. As δ(ε) grows with the losses, the sum over steps, which is a convolution,
gives a *lower* bound on the true δ(ε), and on ε. So no accountant that is right is found at fault.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

INTERVALS, CELLS = 1 << 15, 4000
"""Intervals of x in a step, and the least number of multiples of h up to the ε that is found."""

BEYOND = 9.0
"""The standard deviations beyond which a law is left out."""


class OnSamples(NamedTuple):
    """`times` steps on samples: the `move` c/σ of a contribution, and whether it is exchanged, or comes and goes."""

    move: float
    rate: float
    exchanged: bool
    times: int


@dataclass
class Spent:
    """The cost of steps: the ε of `pure` steps, Σμ² of Gaussian steps, and steps on samples."""

    pure: float = 0.0
    squares: float = 0.0
    sampled: tuple[OnSamples, ...] = ()

    @classmethod
    def of(cls, costs: Iterable[Self]) -> Self:
        """Returns the cost of all together."""
        every = tuple(costs)
        together = tuple(step for each in every for step in each.sampled)
        return cls(sum(each.pure for each in every), sum(each.squares for each in every), together)

    def epsilon(self, delta: float) -> float:
        """Returns a lower bound on the ε at `delta`; the exact ε without steps on samples. nan if it is no sum."""
        if math.isnan(self.pure) or math.isinf(self.pure + self.squares):
            return self.pure + self.squares
        return self.pure + _epsilon(self.squares, self.sampled, delta)


def on_a_sample(epsilon: float, rate: float) -> float:
    """Returns ln(1 + γ(e^ε − 1)), also where e^ε is no float."""
    return epsilon + math.log1p((1 - rate) * math.expm1(-epsilon))


@lru_cache(maxsize=4096)
def _epsilon(squares: float, sampled: tuple[OnSamples, ...], delta: float) -> float:
    full = squares + sum(step.times * (step.move * (1 + step.exchanged)) ** 2 for step in sampled)
    unsampled = _gaussian(math.sqrt(full), delta)
    if not sampled or unsampled == 0:
        return unsampled
    steps = [*sampled, OnSamples(math.sqrt(squares), 1.0, False, 1)]
    width = unsampled / CELLS
    while (found := max(_composed(steps, delta, width, way) for way in (1, -1))) < CELLS * width / 2:
        if width < 1e-6 * unsampled:
            break
        width = max(found / CELLS, width / 16)
    return found


def _gaussian(mu: float, delta: float) -> float:
    """Returns the ε of one Gaussian step: the root of the closed form."""
    if delta == 0 or math.erf(mu / math.sqrt(8)) <= delta:  # the latter is δ(0)
        return math.inf if delta == 0 < mu else 0.0

    def excess(epsilon: float) -> float:
        below = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(min(below, 0.0)) - delta)

    return float(brentq(excess, 0, mu * (mu / 2 - float(ndtri(delta)) + 1), rtol=1e-12))


def _composed(steps: list[OnSamples], delta: float, width: float, way: int) -> float:
    """Returns a lower bound on the ε of the laws P against Q, or of Q against P if `way` is −1; `width` is h."""
    rows = [(_losses(step, width, way), step.times) for step in steps if step.move > 0]
    length = sum(count * (len(mass) - 1) for (mass, _), count in rows) + 1
    size = next_fast_len(length, real=True)
    product = np.ones(size // 2 + 1, np.complex128)
    for (mass, _), count in rows:
        product *= rfft(mass, size) ** count
    first = sum(count * least for (_, least), count in rows)
    losses, mass = width * (first + np.arange(length)), irfft(product, size)[:length]
    losses, mass = losses[losses > 0], mass[losses > 0]

    def excess(epsilon: float) -> float:
        return float(mass @ -np.expm1(np.minimum(epsilon - losses, 0.0))) - delta

    if not len(losses) or excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0, losses[-1], rtol=1e-9))


def _losses(step: OnSamples, width: float, way: int) -> tuple[NDArray[np.float64], int]:
    """Returns the probabilities of a step's losses on the multiples of `width`, and the least multiple."""
    a, b = step.move, -step.move if step.exchanged else 0.0
    x = np.linspace(b - BEYOND, a + BEYOND, INTERVALS + 1)
    with np.errstate(divide="ignore"):
        without = np.log1p(-step.rate)
    with_a, with_b = (np.logaddexp(without, math.log(step.rate) + at * x - at * at / 2) for at in (a, b))
    loss = way * (with_a - with_b if step.exchanged or step.rate < 1 else a * x - a * a / 2)
    at = a if way > 0 else b
    mass = np.diff((1 - step.rate) * ndtr(x) + step.rate * ndtr(x - at))
    cells = np.floor(np.minimum(loss[:-1], loss[1:]) / width).astype(np.int64)
    return np.bincount(cells - cells.min(), mass).astype(np.float64), int(cells.min())

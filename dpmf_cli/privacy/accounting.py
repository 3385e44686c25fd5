"""What steps of Gaussian noise cost together, and what a step costs that looks at a random sample.

N(0, σ²) noise on a measurement of L2 sensitivity Δ is μ-GDP with μ = Δ/σ (Dong, Roth, Su 2022, "Gaussian differential
privacy", theorem 1). Steps that are μ_i-GDP compose to √(Σμ_i²)-GDP, even if each is chosen after seeing the results
of the steps before it (corollary 3.3). This is exact: the composition provides what one Gaussian mechanism of that μ
provides, no more and no less. In zCDP terms ρ_i = μ_i²/2. `dp_accounting` converts between μ and (ε, δ) by Balle and
Wang 2018, theorem 8.

*Samples of the records.* Each record is in the sample with probability γ, independently of the others.

*Pure steps.* If M is ε-DP, then M on a sample is ln(1 + γ(e^ε − 1))-DP (Balle, Barthe and Gaboardi 2018). Their
theorem 8 is about a record that is present or absent, and this sampling. Their theorem 9 is about a record that is
exchanged, and samples of a fixed size, γ of all records. Let A, B and B′ be the laws of the output without the
record, with it, and with the record that replaces it. The sampled mechanism has the laws P = (1 − γ)A + γB and
P′ = (1 − γ)A + γB′. Let x = dB/dA and y = dB′/dA.
    Present or absent: dP/dA = 1 − γ + γx ≤ 1 + γ(e^ε − 1). By convexity dA/dP ≤ 1 − γ + γ/x, with the same bound.
    Exchanged: dP/dP′ = (1 − γ + γx)/(1 − γ + γy). Where y ≤ 1, x ≤ e^ε·y, and (1 − γ + γe^ε·y)/(1 − γ + γy) grows
    with y. Where y ≥ 1, x ≤ e^ε, and (1 − γ + γe^ε)/(1 − γ + γy) falls with y. So dP/dP′ is at most the value of
    both at y = 1, which is again 1 + γ(e^ε − 1).
The exchanged case needs x ≤ e^ε too: *leaving the record out* must move the measurement no further than exchanging it
may. This holds where contributions are clipped to [−c, c] and Δ = 2c. It does not hold for sums of ratings within
[1, 5] and Δ = 4.

*Gaussian steps.* The composition of sampled Gaussian steps has no closed form, so `dp_accounting` computes it by
privacy loss distributions, which it rounds pessimistically. The sample is of *users*, each of whom adds a vector of
L2 norm c at most. A user who is present or absent moves the sum by c. A user whose ratings change moves it by 2c,
from a point of the ball of radius c to the opposite point. This is dp_accounting's REPLACE_ONE, under which an
unsampled Gaussian step moves by 2c as well.
"""

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.privacy.neighbours import Neighbours

TOLERANCE = 1e-15
"""Absolute tolerance of the search for ε or σ."""

LEAST_EPSILON, MOST_EPSILON = 1e-6, 1e6
"""The ε that a fit may have.

Kernels in single precision square what they add noise to. A unit draw is 37 at most, and its scale is some stars over
a part of ε. So with the least ε and one least share, 10⁸ squares still add up to less than 3·10³⁸, the largest number
in single precision. Beyond the largest ε, the grid of the noise, 2⁻¹¹/ε of a rating, falls below the last bit of a
double that holds the sum of 10⁶ ratings."""

LEAST_SHARE = 1e-6
"""The least of each fraction that a config states. A step may have the product of two, or a part of one."""

LEAST_DELTA, MOST_DELTA = TOLERANCE, 0.01
"""The δ that noise is calibrated for: smaller ones are not tested, and a larger one protects
nothing, since one in a hundred may then be revealed."""


@lru_cache(maxsize=4096)
def epsilon_of_mu(mu: float, delta: float) -> float:
    """The least ε ≥ 0 for which one Gaussian mechanism with Δ/σ = `mu` is (ε, `delta`)-DP."""
    from dp_accounting import get_epsilon_gaussian  # this import takes more than a second

    if mu == 0:
        return 0.0
    with np.errstate(divide="ignore"):  # a probability of 0 has the logarithm −∞
        return float(get_epsilon_gaussian(0.0 if math.isinf(mu) else 1 / mu, delta, TOLERANCE))


@lru_cache(maxsize=4096)
def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest Δ/σ for which one Gaussian mechanism is (`epsilon`, `delta`)-DP: the inverse of `epsilon_of_mu`."""
    from dp_accounting import get_sigma_gaussian

    if math.isinf(epsilon):
        return math.inf
    with np.errstate(divide="ignore"):
        return 1 / float(get_sigma_gaussian(epsilon, delta, TOLERANCE))


def epsilons_of_mus(mus: Doubles, delta: float) -> Doubles:
    """(E,) `epsilon_of_mu` of each of `mus`."""
    return np.array([epsilon_of_mu(float(mu), delta) for mu in mus])


EXCESS = 1e-4
"""How much a calibrated noise multiplier may exceed the least that the accountant certifies, relative to that."""

COARSE, FINEST, CELLS = 1e-2, 1e-5, 1e5
"""Intervals of privacy loss distributions: the first, the finest, and the largest number of intervals within ε."""

FINER, SETTLED = 4, 2e-3
"""Each interval is `FINER` times finer than the one before, until ε falls by less than the fraction `SETTLED`.

Rounding adds a term of second order in the interval. So at the end a fifteenth of the last fall is left."""


LEAST_CERTIFIED_DELTA = 1e-12
"""The least δ that can be certified for steps on samples.

Below it, the mass that double precision and truncated tails lose of a distribution is no longer small beside δ."""


LEAST_MULTIPLIER = 0.05
"""The least noise multiplier that the search tries: less noise hides nothing about the users in a sample."""


def amplified(epsilon: ArrayLike, rate: float) -> Doubles:
    """ln(1 + γ(e^ε − 1)): the ε of an `epsilon`-DP step that runs on a sample, with γ = `rate`."""
    epsilon = np.asarray(epsilon, dtype=np.float64)
    _refuse_rate(rate)
    # For ε > 1: ε + ln(γ + (1 − γ)e^−ε), which cannot overflow. Otherwise the formula itself, which loses no digits.
    large = epsilon + np.log(rate + (1 - rate) * np.exp(-epsilon))
    small = np.log1p(rate * np.expm1(np.minimum(epsilon, 1.0)))
    return np.asarray(np.where(epsilon > 1, large, small))


def before_sampling(epsilon: ArrayLike, rate: float) -> Doubles:
    """ln(1 + (e^ε − 1)/γ), the inverse of `amplified`: the ε of a step that costs `epsilon` on a sample."""
    epsilon = np.asarray(epsilon, dtype=np.float64)
    _refuse_rate(rate)
    large = epsilon - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-epsilon))
    small = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / rate)
    return np.asarray(np.where(epsilon > 1, large, small))


def moves(neighbours: Neighbours) -> int:
    """How far a user's contribution can move, in units of the bound on its norm: 1 if it is present or absent, and 2
    if it is exchanged, as by one rating more or less, or by another value of a rating."""
    if neighbours is Neighbours.LOCAL:
        raise ValueError("sampled steps are not for the local model")
    return 1 if neighbours is Neighbours.USER else 2


@dataclass(frozen=True)
class SampledSteps:
    """Equal Gaussian steps, each on a sample of the users.

    multiplier   (E,) σ/c: the noise's standard deviation over the bound on a user's contribution; 0 means no noise
    rate         γ, the probability that a user is in a sample
    repetitions  the number of steps
    """

    multiplier: Doubles
    rate: float
    repetitions: int

    def epsilons(self, delta: float, neighbours: Neighbours) -> Doubles:
        """(E,) the ε of these steps alone."""
        if self.rate == 1:
            return epsilons_of_mus(self.mu(neighbours), delta)
        return composed_epsilons((self,), np.zeros_like(self.multiplier), delta, neighbours)

    def mu(self, neighbours: Neighbours) -> Doubles:
        """(E,) Δ/σ of all steps together as if each looked at all users: exact at rate 1."""
        with np.errstate(divide="ignore"):
            return math.sqrt(self.repetitions) * moves(neighbours) / self.multiplier

    @property
    def mechanism(self) -> str:
        return f"Gaussian × {self.repetitions}" + (f", of a part {self.rate:g}" if self.rate < 1 else "")

    def record(self) -> dict[str, Any]:
        """The steps as plain data for a result file."""
        multiplier = self.multiplier.tolist()
        return {"rate": self.rate, "repetitions": self.repetitions, "multiplier": multiplier}


def composed_epsilons(
    steps: tuple[SampledSteps, ...], mu: Doubles, delta: float, neighbours: Neighbours
) -> Doubles:
    """(E,) the ε of sampled steps composed with Gaussian steps on all users, whose total Δ/σ is `mu` (E,)."""
    found = []
    for lane, others in enumerate(mu.tolist()):
        sampled = tuple((float(step.multiplier[lane]), step.rate, step.repetitions) for step in steps)
        found.append(_composed_epsilon(sampled, others, delta, neighbours))
    return np.array(found)


@lru_cache(maxsize=65536)
def _composed_epsilon(
    steps: tuple[tuple[float, float, int], ...], mu: float, delta: float, neighbours: Neighbours
) -> float:
    """The ε of `composed_epsilons` for one ε of the grid; each step is (multiplier, rate, repetitions).

    Any interval gives a bound, but because K steps round K times, the interval is made finer until rounding no longer
    shows. The first interval suits the ε without sampling, which may be a thousand times the result, but is a bound
    as well, and the smaller one where rounding outweighs what sampling gains.
    """
    times = moves(neighbours)
    if math.isinf(mu) or delta < LEAST_CERTIFIED_DELTA or any(multiplier == 0 for multiplier, _, _ in steps):
        return math.inf
    unsampled = math.sqrt(mu**2 + sum(count * (times / multiplier) ** 2 for multiplier, _, count in steps))
    largest = epsilon_of_mu(unsampled, delta)
    interval = max(COARSE, FINER * largest / CELLS)
    epsilon = _by_loss_distributions(steps, mu, delta, neighbours, interval)
    settled = epsilon == 0
    while not settled and (finer := max(interval / FINER, epsilon / CELLS, FINEST)) < interval / 2:
        interval, found = finer, _by_loss_distributions(steps, mu, delta, neighbours, finer)
        settled = found > (1 - SETTLED) * epsilon
        epsilon = min(epsilon, found)
    return min(epsilon, largest)


def _by_loss_distributions(
    steps: tuple[tuple[float, float, int], ...],
    mu: float,
    delta: float,
    neighbours: Neighbours,
    interval: float,
) -> float:
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    times = moves(neighbours)
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE if times == 1 else NeighboringRelation.REPLACE_ONE
    accountant = PLDAccountant(relation, interval)
    for multiplier, rate, count in steps:
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier)), count)
    if mu > 0:
        accountant.compose(GaussianDpEvent(times / mu))
    return float(accountant.get_epsilon(delta))


def noise_multipliers(
    epsilons: Doubles,
    delta: float,
    *,
    rate: float,
    steps: int,
    neighbours: Neighbours,
    beside: Doubles | None = None,
) -> Doubles:
    """(E,) the least σ/c for which `steps` sampled Gaussian steps are (ε, δ)-DP; 0 where ε = inf.

    c bounds the L2 norm of a user's contribution, under any `neighbours`. At rate 1 the result is exact. Otherwise
    the accountant certifies it, and it is at most `EXCESS` above the least that the accountant certifies.

    beside  (E,) Δ/σ of other Gaussian steps that the (ε, δ) covers too
    raises  ValueError if those steps use up ε, or if δ is below `LEAST_CERTIFIED_DELTA` and the rate is below 1
    """
    _refuse_rate(rate)
    others = np.zeros_like(epsilons) if beside is None else beside
    both = zip(epsilons.tolist(), others.tolist(), strict=True)
    return np.array([_noise_multiplier(epsilon, delta, rate, steps, neighbours, mu) for epsilon, mu in both])


@lru_cache(maxsize=4096)
def _noise_multiplier(
    epsilon: float, delta: float, rate: float, steps: int, neighbours: Neighbours, beside: float
) -> float:
    """A multiplier, not below the least, at most `EXCESS` above it or below 3·`LEAST_MULTIPLIER`."""
    from scipy.optimize import brentq

    if math.isinf(epsilon):
        return 0.0
    left = mu_of_epsilon(epsilon, delta) ** 2 - beside**2
    if not left > 0:
        raise ValueError(f"other Gaussian steps leave nothing of ε = {epsilon:g}")
    unsampled = moves(neighbours) * math.sqrt(steps / left)
    if rate == 1:
        return unsampled
    if delta < LEAST_CERTIFIED_DELTA:
        raise ValueError(f"no sampled step can be certified at δ = {delta:g}")

    @cache  # because the search evaluates its ends, and the root, again
    def excess(logarithm: float) -> float:
        composed = (math.exp(logarithm), rate, steps)
        return math.log(max(_composed_epsilon((composed,), beside, delta, neighbours) / epsilon, 1e-9))

    high, floor = math.log(unsampled), math.log(min(LEAST_MULTIPLIER, unsampled / 10))
    while excess(high) > 0:  # by the rounding of the closed form
        high += EXCESS
    low = high - math.log(3)
    while excess(low) <= 0:
        high, low = low, low - math.log(3)
        if low < floor:
            return math.exp(high)
    root: float = brentq(excess, low, high, xtol=EXCESS / 2)
    while excess(root) > 0:
        root += EXCESS / 2
    return math.exp(root)


def _refuse_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise ValueError(f"a sampling rate must be above 0 and at most 1, not {rate}")

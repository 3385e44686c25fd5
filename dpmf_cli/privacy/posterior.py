"""Sampling from a posterior by Langevin dynamics: the steps, their claimed ε, and why nothing is provable.

Welling and Teh 2011 (SGLD); Wang, Fienberg and Smola 2015; Liu, Wang and Smola 2015; Wang and Tang 2017, section 4.
With the energy U(θ) = −log posterior, each of K steps is

    θ ← θ − (η_t/2)·s·∇U(θ) + z_t,    z_t ~ N(0, ρ·η_t),    η_t = η₁·t^−ξ,    s = min(ε/4B, 1)

The publications claim: if each user's log-likelihood is within B of 0, one sample from the posterior to the power s
costs ε. Two things break the claim for these steps. (1) Noise of variance ρ·η_t instead of η_t has the stationary law
exp(−s·U/ρ), so even in the limit the sample costs ε/ρ. (2) A finite chain has not converged. Within a distance δ of
the limit it costs (ε/ρ, (1 + e^(ε/ρ))δ), and because no bound on δ is known, nothing is provable.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise, unit_normal
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity, no_bound_known


@dataclass(frozen=True)
class LangevinSchedule:
    """K `steps` of sizes η_t = η₁·t^−ξ and noise of variance ρ·η_t: `initial_rate` η₁, `decay` ξ, `temperature` ρ."""

    initial_rate: float
    decay: float
    temperature: float
    steps: int

    def rate(self, t: int) -> float:
        """η_t, t from 1."""
        return float(self.initial_rate * t**-self.decay)

    def deviation(self, t: int) -> float:
        """√(ρ·η_t), the deviation of the noise of step t."""
        return math.sqrt(self.temperature * self.rate(t))


def posterior_sampling(
    step: str,
    shape: tuple[int, ...],
    *,
    schedule: LangevinSchedule,
    bound: float,
    epsilon: Doubles,
    neighbours: Neighbours,
    curator: Curator,
) -> Iterator[tuple[Doubles, Release]]:
    """Yields the steps of a chain over `shape` numbers, as published: it claims ε, and nothing is provable.

    A step subtracts its drift (E,) times the gradient of −log posterior, and adds its noise, for the complete ε grid.
    The claim is in the ledger before the first draw. Where ε = inf, the drift is untempered and there is no noise:
    the noise-free run descends to the mode instead of sampling.

    bound    B, the largest distance of one user's log-likelihood from 0
    epsilon  (E,) what the publication charges for the sample
    raises   OverspentError (a bug); in corrected mode always, if ε is finite
    """
    why = f"a chain of {schedule.steps} steps, whose distance from its limit nobody has bounded"
    spent = f"{1 / schedule.temperature:g} times ε"  # for ε up to 4B
    source = f"Wang and Tang 2017, theorem 2: 2B of the log-likelihood; a chain at its limit spends {spent}"
    published = Sensitivity(2 * bound, 2, neighbours, source)
    entry = curator.ledger.spend(
        step,
        f"SGLD × {schedule.steps}, temperature {schedule.temperature:g}",
        no_bound_known(2, neighbours, why, published),
        epsilon,
        np.full_like(epsilon, np.inf),
        repetitions=schedule.steps,
        temperature=schedule.temperature,
    )
    # At ε = 4B sampling is "identical to the non-private sampling" (Wang and Tang 2017, section 4.3). A larger ε
    # changes nothing.
    power = np.minimum(epsilon / (4 * bound), 1.0)
    rng, times = curator.noise(step), range(1, schedule.steps + 1)
    scales = (np.where(np.isinf(epsilon), 0.0, schedule.deviation(t)) for t in times)
    noises = (LaneNoise(unit_normal(shape, rng), scale, unit_normal) for scale in scales)
    drifts = (schedule.rate(t) / 2 * power for t in times)
    return zip(drifts, curator.releases(entry, noises), strict=True)

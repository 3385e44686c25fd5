"""Accounting of Gaussian noise: what (ε, δ) a composition of Gaussian mechanisms provides, exactly.

N(0, σ²) noise on a measurement of L2 sensitivity Δ is μ-GDP with μ = Δ/σ (Dong, Roth, Su 2022, "Gaussian differential
privacy", theorem 1), and steps that are μ_i-GDP, each chosen in the light of those before, compose to √(Σμ_i²)-GDP
(corollary 3.3): what one Gaussian mechanism of that μ provides is all that can be said, and nothing is lost. In zCDP
terms ρ_i = μ_i²/2. The conversion between μ and (ε, δ) is Balle and Wang's (2018, theorem 8), by `dp_accounting`.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-15
"""Of the search for ε or σ, absolute."""


@lru_cache(maxsize=4096)
def epsilon_of_mu(mu: float, delta: float) -> float:
    """The least ε ≥ 0 for which one Gaussian mechanism with Δ/σ = `mu` is (ε, `delta`)-DP."""
    from dp_accounting import get_epsilon_gaussian  # takes more than a second to import

    if mu == 0:
        return 0.0
    with np.errstate(divide="ignore"):  # the logarithm of a probability that is 0
        return float(get_epsilon_gaussian(0.0 if math.isinf(mu) else 1 / mu, delta, TOLERANCE))


@lru_cache(maxsize=4096)
def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest Δ/σ for which one Gaussian mechanism is (`epsilon`, `delta`)-DP: inverse of `epsilon_of_mu`."""
    from dp_accounting import get_sigma_gaussian

    if math.isinf(epsilon):
        return math.inf
    with np.errstate(divide="ignore"):
        return 1 / float(get_sigma_gaussian(epsilon, delta, TOLERANCE))


def epsilons_of_mus(mus: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """(E,) `epsilon_of_mu` of each."""
    return np.array([epsilon_of_mu(float(mu), delta) for mu in mus])

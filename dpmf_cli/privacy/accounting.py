"""Accounting of Gaussian noise: the exact (ε, δ) of a composition of Gaussian mechanisms.

N(0, σ²) noise on a measurement of L2 sensitivity Δ is μ-GDP with μ = Δ/σ (Dong, Roth, Su 2022, "Gaussian differential
privacy", theorem 1). Steps that are μ_i-GDP compose to √(Σμ_i²)-GDP, even if each is chosen after seeing the results
of the steps before it (corollary 3.3). This is exact: the composition provides what one Gaussian mechanism of that μ
provides, no more and no less. In zCDP terms ρ_i = μ_i²/2. `dp_accounting` converts between μ and (ε, δ) by Balle and
Wang 2018, theorem 8.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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
    """Returns the least ε ≥ 0 for which one Gaussian mechanism with Δ/σ = `mu` is (ε, `delta`)-DP."""
    from dp_accounting import get_epsilon_gaussian  # this import takes more than a second

    if mu == 0:
        return 0.0
    with np.errstate(divide="ignore"):  # a probability of 0 has the logarithm −∞
        return float(get_epsilon_gaussian(0.0 if math.isinf(mu) else 1 / mu, delta, TOLERANCE))


@lru_cache(maxsize=4096)
def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """Returns the largest Δ/σ for which one Gaussian mechanism is (`epsilon`, `delta`)-DP.

    It is the inverse of `epsilon_of_mu`.
    """
    from dp_accounting import get_sigma_gaussian

    if math.isinf(epsilon):
        return math.inf
    with np.errstate(divide="ignore"):
        return 1 / float(get_sigma_gaussian(epsilon, delta, TOLERANCE))


def epsilons_of_mus(mus: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Returns (E,) `epsilon_of_mu` of each of `mus`."""
    return np.array([epsilon_of_mu(float(mu), delta) for mu in mus])

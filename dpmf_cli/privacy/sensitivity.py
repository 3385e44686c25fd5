"""Sensitivities: how far a measurement can move between neighbours, each with its derivation.

Every noisy step names one of these functions. A property test (tests/privacy/test_sensitivity.py) searches
for neighbouring data that exceed them.
"""

from dataclasses import dataclass

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Scale


@dataclass(frozen=True)
class Sensitivity:
    """The largest move of a measurement between `neighbours`, in the L1 or L2 norm (`norm` 1 or 2).

    `source` says which theorem or equation of which paper it is.
    """

    value: float
    norm: int
    neighbours: Neighbours
    source: str


def rating_sums(scale: Scale) -> Sensitivity:
    """Sums of ratings over disjoint groups (all ratings; by item; by user), taken as one vector. Bounded.

    Changing the value of rating (u, i) changes one sum, of the one group that holds (u, i), by
    |r − r'| ≤ r_max − r_min. Friedman et al. 2016, section 4.1 and algorithm 1, lines 1 and 4.
    """
    return Sensitivity(scale.width, 1, Neighbours.BOUNDED, "Friedman et al. 2016, algorithm 1: Δr")


def residual_sums(scale: Scale) -> Sensitivity:
    """Sums over disjoint groups of ratings minus *released* item averages. Bounded.

    The item averages are outputs of an earlier step, hence the same number on both sides; the residual
    of rating (u, i) moves as the rating does, by at most r_max − r_min.
    Friedman et al. 2016, algorithm 2, lines 2 and 5.
    """
    return Sensitivity(scale.width, 1, Neighbours.BOUNDED, "Friedman et al. 2016, algorithm 2: Δr")


def clamped_residuals(clamp: float, scale: Scale) -> Sensitivity:
    """All residuals r − IAvg(i) − UAvg(u) clamped to [−B, B], as one vector, averages released. Bounded.

    One coordinate moves. It stays in [−B, B], so by at most 2B; clamping is 1-Lipschitz, so by at most
    r_max − r_min. Friedman et al. 2016, section 4.2 and algorithm 3, states 2B, which is the smaller
    wherever 2B ≤ Δr (all its data sets).
    """
    value = min(2 * clamp, scale.width)
    return Sensitivity(value, 1, Neighbours.BOUNDED, "Friedman et al. 2016, algorithm 3: Δr = 2B")

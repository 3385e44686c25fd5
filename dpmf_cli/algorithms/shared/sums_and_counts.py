"""Releases sums of numbers within [−1, 1] together with their counts, at the noise of one number each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.sensitivity import weights_of_signs_unbounded


@dataclass(frozen=True)
class SumsAndCounts:
    """Released sums and counts (rows, E), and the standard deviation (E,) of the noise in each of these numbers."""

    sums: NDArray[np.float64]
    counts: NDArray[np.float64]
    deviation: NDArray[np.float64]


def sums_and_counts(
    step: str, halves: NDArray[np.float64], epsilons: Epsilons, curator: Curator
) -> SumsAndCounts:
    """Releases Σ x′ and their number, |x′| ≤ 1, from `halves`: Σ (1 + x′)/2 and Σ (1 − x′)/2, (rows, 2) or (rows, 2,
    E)."""
    noise = laplace(
        step, halves.shape[:2], sensitivity=weights_of_signs_unbounded(), epsilon=epsilons, curator=curator
    )
    positive, negative = np.moveaxis(noise.added_to(halves), 1, 0)
    return SumsAndCounts(positive - negative, positive + negative, 2 * noise.scale)

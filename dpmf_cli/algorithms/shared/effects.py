"""Effects: averages measured under differential privacy, subtracted before a factorisation and added after it.

Friedman, Berkovsky, Kaafar 2016, section 4.1, algorithms 1 and 2 (after McSherry and Mironov 2009).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.core.strict_model import StrictModel, later
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.release import Release

SPREAD = 0.5
"""τ, in stars: a public guess of how much averages differ between items, and between users, in any data set."""


class Part(StrEnum):
    """The part of the budget that a step is charged to, by its name there."""

    OVERALL = "global_averages"
    ITEMS = "item_averages"
    USERS = "user_averages"


Beta = float | NDArray[np.float64]
"""One β for all ε, or (E,) one for each."""


@dataclass(frozen=True)
class Shrinkage:
    """How strongly averages are shrunk to their centre: β ratings at the centre are added to each average.

    If `grows` is set, β + √2·b/τ ratings are added, where b is the scale of the noise on the sum. The best weight of
    a sum of n ratings with noise of variance 2b² is n/(n + σ²/τ² + 2b²/(nτ²)). Its last term is √2·b/τ where it
    matters: at the n for which the noise is as large as the spread τ. b follows from ε alone, so the rule is public.
    """

    beta: float
    grows: bool = False

    def under(self, noise: Release) -> Beta:
        """β for sums with the noise of that release."""
        return self.beta + math.sqrt(2) / SPREAD * noise.scale if self.grows else self.beta


class EffectsParameters(StrictModel):
    """How averages are stabilised and clamped. The paper states the clamps; β_m and β_u were fitted."""

    beta_m: float = Field(
        10.0, ge=0, le=1e12, description="β_m: ratings at the global average added to each item"
    )
    beta_u: float = Field(
        100.0, ge=0, le=1e12, description="β_u: residuals at their average added to each user"
    )
    shrinkage: Literal["fixed", "noise"] = later(
        "fixed",
        description="fixed: β as given; noise: β grows with the scale of the noise, by a public rule. `noise` with "
        "β_m = β_u = 5 is the default of private methods on your own data set",
    )
    user_clamp: float = Field(2.0, gt=0, description="released user averages are clamped to [−this, this]")
    residual_clamp: float = Field(
        1.0, ge=1e-6, le=1e6, description="B: residuals are clamped to [−B, B], equation 7"
    )
    sum_share: float = later(
        0.5,
        ge=LEAST_SHARE,
        lt=1,
        description="fraction of an average's ε that its sum gets; its count gets the rest. Used if both have "
        "Laplace noise (section 4.1 leaves it open); unbounded only",
    )
    noise_on_unrated: bool = later(
        False,
        description="true: averages of users and items without ratings get noise too, as in the paper's algorithms 1 "
        "and 2, though they have nothing to hide. Bounded only; with unbounded they always get noise",
    )

    @property
    def of_items(self) -> Shrinkage:
        return Shrinkage(self.beta_m, self.shrinkage == "noise")

    @property
    def of_users(self) -> Shrinkage:
        return Shrinkage(self.beta_u, self.shrinkage == "noise")


ON_OWN_RATINGS = {"shrinkage": "noise", "beta_m": 5.0, "beta_u": 5.0}
"""How averages are stabilised on a user's own data set. Without noise β = 5 is near the best on each set of the
catalog; the defaults 10 and 100 reproduce the numbers of one paper."""


def stabilised(
    sums: NDArray[np.float64], counts: NDArray[np.float64], beta: Beta, centre: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, E) (sum + β·centre) / (max(count, 0) + β) for each row; the centre if the denominator is 0."""
    weight = np.maximum(counts, 0) + beta
    return np.where(weight > 0, (sums + beta * centre) / np.where(weight > 0, weight, 1.0), centre)

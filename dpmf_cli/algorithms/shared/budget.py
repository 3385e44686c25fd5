"""Parameters that many methods have: fractions of ε or of θ, δ, and how averages are stabilised.

Friedman, Berkovsky, Kaafar 2016, section 4.1, algorithms 1 and 2 (after McSherry and Mironov 2009).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.strict_model import StrictModel, later
from dpmf_cli.privacy.accounting import LEAST_DELTA, LEAST_EPSILON, LEAST_SHARE, MOST_DELTA, MOST_EPSILON
from dpmf_cli.privacy.release import Release

SPREAD = 0.5
"""τ, in stars: a public guess of how much averages differ between items, and between users, in any data set."""


Size = Annotated[float, Field(ge=1e-6, le=1e6)]
"""The size of a bound, a clip or a weight, whose square single precision holds."""

Ridge = Annotated[float, Field(ge=0.01, le=1e6)]
"""The ridge of a user's own regression. With less, users with few ratings cannot be solved."""


class Part(StrEnum):
    """The part of the budget that a step is charged to, by its name there."""

    OVERALL = "global_averages"
    ITEMS = "item_averages"
    USERS = "user_averages"


@dataclass(frozen=True)
class Shrinkage:
    """How strongly averages are shrunk to their centre: β ratings at the centre are added to each average.

    If `grows` is set, β + √2·b/τ ratings are added, where b is the scale of the noise on the sum. The best weight of
    a sum of n ratings with noise of variance 2b² is n/(n + σ²/τ² + 2b²/(nτ²)). Its last term is √2·b/τ where it
    matters: at the n for which the noise is as large as the spread τ. Because b follows from ε alone, the rule is
    public.
    """

    beta: float
    grows: bool = False

    def under(self, noise: Release) -> float | Doubles:
        """β for sums with the noise of that release: one for all ε, or (E,) one for each."""
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
    residual_clamp: Size = Field(1.0, description="B: residuals are clamped to [−B, B], equation 7")
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


def stabilised(sums: Doubles, counts: Doubles, beta: float | Doubles, centre: Doubles) -> Doubles:
    """(n, E) (sum + β·centre) / (max(count, 0) + β) for each row; the centre if the denominator is 0."""
    weight = np.maximum(counts, 0) + beta
    return np.where(weight > 0, (sums + beta * centre) / np.where(weight > 0, weight, 1.0), centre)


def _not_noise_alone(budget: float) -> float:
    if budget < LEAST_EPSILON:
        raise PydanticCustomError("budget", "an ε or θ below 1e-6 leaves nothing but noise")
    return budget


Budget = Annotated[float, Field(gt=0, le=MOST_EPSILON), AfterValidator(_not_noise_alone)]
"""A value of ε, or of θ."""

Delta = Annotated[float, Field(ge=LEAST_DELTA, le=MOST_DELTA)]
"""The δ of (ε, δ)."""


class Fractions(StrictModel):
    """Fractions of ε (or of θ) that sum to 1."""

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        for name, share in self.fractions.items():
            if share < LEAST_SHARE:
                message = "{name} gets less than 1e-6 of ε, which leaves nothing but noise"
                raise PydanticCustomError("budget", message, {"name": name})
        total = math.fsum(self.fractions.values())
        if abs(total - 1) > 1e-9:
            message, context = "the fractions sum to {total}, not 1", {"total": float(f"{total:.6g}")}
            raise PydanticCustomError("budget_sum", message, context)
        return self

    @property
    def fractions(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in type(self).model_fields}


class AveragesBudget(Fractions):
    """Fractions of ε for averages and nothing else (private global effects)."""

    global_averages: float = Field(gt=0, lt=1, description="both global averages together")
    item_averages: float = Field(gt=0, lt=1)
    user_averages: float = Field(gt=0, lt=1)

    def for_effects(self, epsilons: Doubles) -> dict[Part, Doubles]:
        """(E,) the ε of each step of a part, given the total ε. The two global averages halve theirs."""
        parts = {part: self.fractions[part] * epsilons for part in Part}
        return parts | {Part.OVERALL: parts[Part.OVERALL] / 2}


class ItemAveragesBudget(Fractions):
    """Fractions of θ for both global averages and the item averages, of methods that measure no covariance.

    The difference between `mm_averages` and `mm_public`, and `mm_knn` and `mm_svd`, *at the same ε* therefore shows
    what measuring a covariance is worth. With Gaussian noise, the difference at the same θ does not show it:
    μ = θ·√Σf_i² is 0.98θ for the first two methods and 0.81θ for the last two.
    """

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.98, gt=0, lt=1)


class FactorizationBudget(AveragesBudget):
    """Fractions of ε for the averages and for the factorisation of the residuals."""

    factorization: float = Field(gt=0, lt=1)

"""Budget splits: which fraction of the total ε each part of a method spends."""

import math
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.effects import Part
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.privacy.accounting import (
    LEAST_DELTA,
    LEAST_EPSILON,
    LEAST_SHARE,
    MOST_DELTA,
    MOST_EPSILON,
)


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
                raise PydanticCustomError(
                    "budget",
                    "{name} gets less than 1e-6 of ε, which leaves nothing but noise",
                    {"name": name},
                )
        total = math.fsum(self.fractions.values())
        if abs(total - 1) > 1e-9:
            raise PydanticCustomError(
                "budget_sum", "the fractions sum to {total}, not 1", {"total": float(f"{total:.6g}")}
            )
        return self

    @property
    def fractions(self) -> dict[str, float]:
        """The fractions by the name of the part."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class AveragesBudget(Fractions):
    """Fractions of ε for averages and nothing else (private global effects)."""

    global_averages: float = Field(gt=0, lt=1, description="both global averages together")
    item_averages: float = Field(gt=0, lt=1)
    user_averages: float = Field(gt=0, lt=1)

    def for_effects(self, epsilons: NDArray[np.float64]) -> dict[Part, NDArray[np.float64]]:
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

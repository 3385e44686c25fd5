"""The grids of an experiment: values of ε or θ, and growing portions of the ratings."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.budget import Budget
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.strict_model import StrictModel


class GeometricGrid(StrictModel):
    """`count` values of ε (or θ) from `first` to `last`, equally spaced in its log, rounded to three digits."""

    first: Budget
    last: Budget
    count: int = Field(ge=2, le=1000)

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if not self.first < self.last:
            raise PydanticCustomError(
                "grid",
                "`first` ({first}) is not below `last` ({last}); swap them, a grid ascends",
                {"first": f"{self.first:g}", "last": f"{self.last:g}"},
            )
        return self

    @property
    def values(self) -> list[float]:
        step = (self.last / self.first) ** (1 / (self.count - 1))
        return [float(f"{self.first * step**k:.3g}") for k in range(self.count)]


def _expand_grid(value: Any) -> Any:
    return GeometricGrid.model_validate(value).values if isinstance(value, dict) else value


Grid = Annotated[
    list[Budget],
    Field(min_length=1, max_length=1000),
    BeforeValidator(_expand_grid, json_schema_input_type=list[Budget] | GeometricGrid),
]


class GrowthKeys(StrictModel):
    """The same experiment on growing portions of the ratings: McSherry and Mironov 2009, figure 2."""

    portions: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=1, max_length=100, description="ascending fractions of the ratings; 1 is all of them"
    )
    order: Order = Field(description="which ratings come first: the oldest, or a random sample")

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if sorted(set(self.portions)) != self.portions:
            raise PydanticCustomError("grid", "the portions must ascend without repetition")
        return self

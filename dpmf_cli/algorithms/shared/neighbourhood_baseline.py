"""The base of neighbourhood models without noise. Wang and Tang 2017."""

from pydantic import Field

from dpmf_cli.algorithms.shared.averages_baseline import AveragesBaseline
from dpmf_cli.algorithms.shared.cost import (
    Cost,
    Shape,
    effects_cost,
    met_cost,
    neighbourhood_cost,
    pairs_cost,
)
from dpmf_cli.algorithms.shared.effects import EffectsParameters


class NeighbourhoodBaseline(AveragesBaseline):
    """Every item has k neighbours. `effects` sets the averages, by default plain ones."""

    effects: EffectsParameters = EffectsParameters(beta_m=0)
    k: int = Field(500, ge=1, le=100_000, description="N_k: number of neighbours of an item")

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid) + neighbourhood_cost(shape, 1, self.k, steps=0)

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        return pairs_cost(grid, pairs) + met_cost(shape, grid, pairs, self.k)

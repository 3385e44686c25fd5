"""The base of private item neighbourhoods: averages, neighbours, and predictions from the user's own ratings."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.averages import Part, bounded_item_averages
from dpmf_cli.algorithms.shared.cost import (
    Cost,
    Shape,
    effects_cost,
    met_cost,
    neighbourhood_cost,
    pairs_cost,
)
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.neighbourhood import all_others, most_co_rated
from dpmf_cli.algorithms.shared.own_means import OwnMeansAlgorithm
from dpmf_cli.algorithms.shared.theta import Measurer
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings

CERTIFIED = Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER
"""The neighbours of a neighbourhood with noisy averages."""


class PrivateNeighbourhood(OwnMeansAlgorithm):
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij|, from the target user's own ratings: *joint* privacy.

    Averages r̄ are noisy. Neighbours are found from public data only. With bounded neighbours, who rated what is
    public, and the N_k items with the most common raters are an item's neighbours. Otherwise nothing is public, and
    every other item is a neighbour. As published, averages have no noise, and neighbours are chosen from the ratings
    whether or not that is public.
    """

    neighbours: Neighbours = Neighbours.BOUNDED
    effects: EffectsParameters = EffectsParameters(beta_m=10)
    neighbourhood: int = Field(500, ge=1, le=100_000, description="N_k, if neighbours of items can be chosen")

    def item_averages(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NDArray[np.float64]:
        """(n_items, E) r̄. Published: without noise, and the paper does not charge for it."""
        if self.mode is Mode.PUBLISHED:
            return self.uncharged_averages(train, len(epsilons), curator, self.effects.beta_m)
        if self.neighbours is not Neighbours.BOUNDED:
            return self.released_averages(train, self.measurer(epsilons, curator)).items
        pieces: dict[str, int] = {Part.OVERALL: 1, Part.ITEMS: 1}
        measurer = Measurer(self.accounting, pieces, epsilons, curator)
        moves = sensitivity.rating_sums(train.scale, self.noise.norm)
        return bounded_item_averages(train, measurer.noise, moves, shrinkage=self.effects.of_items)[1]

    @model_validator(mode="after")
    def _refuse_a_choice_that_would_not_be_private(self) -> Self:
        if "neighbourhood" in self.model_fields_set and not self.chooses_neighbours:
            own = type(self).model_fields["neighbourhood"].default
            if self.neighbourhood != own:
                fix = "every item is a neighbour if who rated what is not public; remove `neighbourhood`"
                raise PydanticCustomError("neighbourhood", "{fix}", {"fix": fix, "path": ("neighbourhood",)})
        return self

    @property
    def chooses_neighbours(self) -> bool:
        """Whether an item has N_k chosen neighbours; otherwise all other items are its neighbours."""
        return self.neighbours is Neighbours.BOUNDED or self.mode is Mode.PUBLISHED

    @property
    def charges_averages(self) -> bool:
        return self.mode is Mode.CORRECTED

    def neighbours_of_items(self, train: Ratings) -> NDArray[np.int32]:
        """(n_items, k) the neighbours of each item."""
        if self.chooses_neighbours:
            return most_co_rated(train, self.neighbourhood)
        return all_others(train.n_items)

    @property
    def steps_of_learning(self) -> int:
        """How many steps learn similarities."""
        return 0

    def cost(self, shape: Shape, grid: int) -> Cost:
        k = self.neighbourhood if self.chooses_neighbours else shape.items
        return effects_cost(shape, grid) + neighbourhood_cost(shape, grid, k, steps=self.steps_of_learning)

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        k = self.neighbourhood if self.chooses_neighbours else shape.items
        return pairs_cost(grid, pairs) + met_cost(shape, grid, pairs, k)

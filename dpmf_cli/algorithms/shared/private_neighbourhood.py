"""What private item neighbourhoods share: averages, neighbours, predictions from the user's own ratings."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.item_averages import Part, bounded_item_averages
from dpmf_cli.algorithms.shared.neighbourhood import (
    all_others,
    most_co_rated,
)
from dpmf_cli.algorithms.shared.own_means import PureAsPublished
from dpmf_cli.algorithms.shared.theta import Measurer
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings


class PrivateNeighbourhood(PureAsPublished):
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij|, from the target user's own ratings: *joint* privacy.

    Neighbours are found with what is public. Bounded, that is who rated what: the N_k items with the most common
    raters. Otherwise nothing is, and every other item is a neighbour. (Published mode takes common raters always.)
    """

    neighbours: Neighbours = Neighbours.BOUNDED
    effects: EffectsParameters = EffectsParameters(beta_m=10)
    neighbourhood: int = Field(
        500, ge=1, le=100_000, description="N_k, where neighbours of items can be chosen"
    )

    def item_averages(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NDArray[np.float64]:
        """(n_items, E) r̄."""
        beta_m, norm = self.effects.beta_m, self.noise.norm
        if self.mode is Mode.PUBLISHED:
            return self.uncharged_averages(train, len(epsilons), curator, beta_m)
        if self.neighbours is Neighbours.BOUNDED:
            pieces: dict[str, int] = {Part.OVERALL: 1, Part.ITEMS: 1}
            measurer = Measurer(self.accounting, pieces, epsilons, curator)
            moves = sensitivity.rating_sums(train.scale, norm)
            return bounded_item_averages(train, measurer.noise, moves, beta_m=beta_m)[1]
        return self.released_averages(train, self.measurer(epsilons, curator)).items

    @model_validator(mode="after")
    def _refuse_a_choice_that_would_not_be_private(self) -> Self:
        if "neighbourhood" in self.model_fields_set and not self.chooses_neighbours:
            own = type(self).model_fields["neighbourhood"].default
            if self.neighbourhood != own:
                fix = "where who rated what is not public, every item is a neighbour; remove `neighbourhood`"
                raise PydanticCustomError("neighbourhood", "{fix}", {"fix": fix, "path": ("neighbourhood",)})
        return self

    @property
    def chooses_neighbours(self) -> bool:
        """Whether an item has N_k neighbours, or all other items."""
        return self.mode is Mode.PUBLISHED or self.neighbours is Neighbours.BOUNDED

    def neighbours_of_items(self, train: Ratings) -> NDArray[np.int32]:
        """(n_items, k)"""
        if self.chooses_neighbours:
            return most_co_rated(train, self.neighbourhood)
        return all_others(train.n_items)

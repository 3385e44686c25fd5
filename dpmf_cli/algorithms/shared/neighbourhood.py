"""Item neighbourhoods: which items are neighbours, private averages, and similarities learned with a certified ε."""

from collections.abc import Iterator
from typing import Self

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from scipy.sparse import csc_matrix, csr_matrix

from dpmf_cli.algorithms.shared import cost as costs
from dpmf_cli.algorithms.shared.averages import OwnMeansAlgorithm, bounded_item_averages
from dpmf_cli.algorithms.shared.budget import EffectsParameters, Part
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.theta import Measurer
from dpmf_cli.core.arrays import Doubles, Ints
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours

BLOCK = 512
"""The number of items whose similarities to all others are held at a time."""


def by_user(train: Ratings, values: Doubles) -> csr_matrix:
    """(n_users, n_items) a sparse matrix with a number for each rating."""
    return csr_matrix((values, (train.users, train.items)), (train.n_users, train.n_items))


def item_products(left: csr_matrix, right: csr_matrix) -> Iterator[tuple[slice, Doubles]]:
    """Yields Σ_u left_ui·right_uj (b, n_items) for one block of items i after the other."""
    columns = csc_matrix(left)
    for first in range(0, left.shape[1], BLOCK):
        block = slice(first, min(first + BLOCK, left.shape[1]))
        yield block, (columns[:, block].T @ right).toarray()


def largest(scores: Doubles, items: slice, k: int) -> Ints:
    """(b, k) for each row the k items with the largest scores, in ascending order of items.

    Among equal scores the lower items are taken. `scores` (b, n_items) belong to the rows' `items`; an item is not
    its own neighbour. k < n_items. Overwrites the scores of each item with itself.
    """
    scores[np.arange(len(scores)), np.arange(items.start, items.stop)] = -np.inf
    last = scores.shape[1] - max(k, 1)  # k is 0 if there is one item
    least = np.partition(scores, last, axis=1)[:, last, None]
    above, equal = scores > least, scores == least
    room = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= room))
    return np.nonzero(chosen)[1].reshape(len(scores), k).astype(np.int32)


def most_co_rated(train: Ratings, k: int) -> Ints:
    """(n_items, min(k, n_items − 1)) for each item, the items that most users rated together with it."""
    ones = by_user(train, np.ones(len(train)))
    k = min(k, train.n_items - 1)
    return np.concatenate([largest(counts, items, k) for items, counts in item_products(ones, ones)])


def all_others(n_items: int) -> Ints:
    """(n_items, n_items − 1) for each item, every other item. Uses no rating."""
    others = np.arange(n_items - 1, dtype=np.int32)[None, :]
    return np.asarray(others + (others >= np.arange(n_items)[:, None]), dtype=np.int32)


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

    def item_averages(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> Doubles:
        """(n_items, E) r̄. Published: without noise, and the paper does not charge for it."""
        if self.mode is Mode.PUBLISHED:
            return self.uncharged_averages(train, len(epsilons), curator, self.effects.beta_m)
        if self.neighbours is not Neighbours.BOUNDED:
            return self.released_averages(train, self.measurer(epsilons, curator)).items
        pieces: dict[str, int] = {Part.OVERALL: 1, Part.ITEMS: 1}
        measurer = Measurer(self.accounting, pieces, epsilons, curator)
        moves = sensitivity.rating_sums(train.scale, self.noise.norm)
        return bounded_item_averages(train, measurer.noise, moves, self.effects.of_items)[1]

    @model_validator(mode="after")
    def _refuse_a_choice_that_would_not_be_private(self) -> Self:
        own = type(self).model_fields["neighbourhood"].default
        if self.neighbourhood != own and not self.chooses_neighbours:
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

    def start(
        self, train: Ratings, epsilons: Epsilons, curator: Curator, similarity: float
    ) -> tuple[NeighbourhoodModel, int]:
        """The model with averages, the neighbours of each item and the same similarity of all; and how many
        similarities it has."""
        averages = self.item_averages(train, epsilons, curator)
        others = (
            most_co_rated(train, self.neighbourhood) if self.chooses_neighbours else all_others(train.n_items)
        )
        return neighbourhood_model(train, others, similarity, averages), others.size

    @property
    def steps_of_learning(self) -> int:
        return 0

    def cost(self, shape: Shape, grid: int) -> Cost:
        k = self.neighbourhood if self.chooses_neighbours else shape.items
        return costs.effects_cost(shape, grid) + costs.neighbourhood_cost(
            shape, grid, k, steps=self.steps_of_learning
        )

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        k = self.neighbourhood if self.chooses_neighbours else shape.items
        return costs.pairs_cost(grid, pairs) + costs.met_cost(shape, grid, pairs, k)


def error_bound(scale: Scale, t: int) -> float:
    """0.5 + (φ − 1)/(t + 1), φ = r_max − r_min: the bound to which section 3 clamps errors in step t = 1, 2, …"""
    return 0.5 + (scale.width - 1) / (t + 1)

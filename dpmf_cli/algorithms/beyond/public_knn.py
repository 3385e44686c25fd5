"""The comparison for private kNN: the same predictor with a fixed covariance, which needs no data."""

from typing import ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.averages import averages_of
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.budget import AveragesBudget
from dpmf_cli.algorithms.shared.cost import ASKED, Cost, Shape, effects_cost, pairs_cost
from dpmf_cli.algorithms.shared.covariance_cost import covariance_cost, search_cost
from dpmf_cli.algorithms.shared.fixed_covariance import AllAlike, NearestAlike, public_weights
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PublicKNN(PrivateAlgorithm):
    """`PrivateKNN` with Avg_ii = v and Avg_ij = c for all items, where v and c are public. The averages get all of ε.

        r̂_ui = IAvg(i) + UAvg(u) + c/(v + ridge + (m − 1)·c) · Σ_{j ∈ N} (r_uj − IAvg(j) − UAvg(u)),   m = |N|

    The factor before the sum is the value of (Avg_NN + ridge·I)⁻¹ Avg_Ni. The difference from this method shows what
    a private covariance is worth. Like private kNN, it uses the target user's own ratings without noise: *joint*
    differential privacy.

    Neighbours are chosen from public data. Bounded, who rated what is public, and the neighbours are the k items j of
    the user with the largest Wgt_ij, as in private kNN. Unbounded, nothing is public, and the neighbours are all
    other items that the user rated.
    """

    title: ClassVar[str] = "kNN, fixed covariance"
    paper: ClassVar[Paper] = Paper.DPMF
    joint: ClassVar[bool] = True
    revision: ClassVar[int] = 3

    algorithm: Literal["public_knn"]
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.54, user_averages=0.44)
    k: int = Field(20, ge=1, le=1000, description="the most neighbours of a prediction; bounded only")
    ridge: float = Field(0.2, gt=0, description="as in private kNN, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    @property
    def of_an_item(self) -> float:
        """v + ridge, in units of B²."""
        return self.variance + self.ridge

    def bounded(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NearestAlike:
        """Who rated what is public. The neighbours are the k nearest items by Wgt."""
        effects = averages_of(self, train, self.budget.for_effects(epsilons), curator)
        return NearestAlike(train, effects, self.of_an_item, self.covariance, public_weights(train), self.k)

    def unbounded(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> AllAlike:
        """Nothing is public. The neighbours are all other items that the user rated."""
        effects = averages_of(self, train, self.budget.for_effects(epsilons), curator)
        return AllAlike(train, effects, self.of_an_item, self.covariance)

    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, run=bounded) | in_both_modes(
        Neighbours.UNBOUNDED, run=unbounded
    )

    def cost(self, shape: Shape, grid: int) -> Cost:
        sums = Cost(5e-9 * grid * (1 + self.k * ASKED) * shape.ratings, 40.0 * shape.ratings)
        cost = effects_cost(shape, grid) + sums
        if self.neighbours is not Neighbours.BOUNDED:
            return cost
        search = search_cost(shape, self.k, searches=1)
        return cost + covariance_cost(shape, 0, private_weights=False) + search

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        sums = Cost(pairs * grid * self.k * 5e-9, 8.0 * self.k * pairs / calls)
        return pairs_cost(grid, pairs) + sums

"""What a private covariance or similarity has to beat: the same predictors with public numbers in its place."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import averages_of
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants, in_both_modes, in_mode
from dpmf_cli.algorithms.shared.budget import AveragesBudget, ItemAveragesBudget
from dpmf_cli.algorithms.shared.cost import ASKED, Cost, Shape, effects_cost, pairs_cost
from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.item_products import (
    covariance_cost,
    inverse_counts,
    own_residuals,
    search_cost,
)
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.neighbourhood import CERTIFIED, PrivateNeighbourhood
from dpmf_cli.algorithms.shared.own_means import OwnMeansAlgorithm, OwnMeansModel, effects_of
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.covariance import Raters, weighted_products
from dpmf_cli.kernels.neighbours import nearest
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours


@dataclass(frozen=True)
class AlikeItems(ABC):
    """Averages, and a matrix with `variance` on the diagonal (ridge included) and `covariance` elsewhere.

    own      the ratings of every user who may ask; a prediction for user u uses only those of u
    effects  averages for each ε; the users' part may be unreleased
    variance, covariance  public, in units of B²
    """

    own: Ratings
    effects: Effects
    variance: float
    covariance: float

    @abstractmethod
    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(n,) how many neighbours each pair has, (n, E) the sum of their residuals."""

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        counts, totals = self.neighbours(users, items)
        spread = self.variance + (counts - 1) * self.covariance
        # Without neighbours `spread` may be 0 or less; their sum is 0, so the weight does not matter.
        weight = np.where(counts > 0, self.covariance / np.where(counts > 0, spread, 1.0), 0.0)
        return np.asarray(out + weight[:, None] * totals)

    @property
    def published(self) -> Arrays:
        """The released averages."""
        return self.effects.published


@dataclass(frozen=True)
class NearestAlike(AlikeItems):
    """Predicts from the `k` of the user's items that share the most raters with the target item, by Wgt. Who rated
    what must be public.

    weight  Wgt: a packed triangle
    """

    weight: NDArray[np.float32]
    k: int

    @property
    def published(self) -> Arrays:
        """The released averages, and Wgt, which is public."""
        return {**super().published, "weight": self.weight}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        effects = effects_of(arrays, entry, own)
        return cls(own, effects, entry.of_an_item, entry.covariance, arrays["weight"], entry.k)

    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        own = self.own
        found = nearest(own, users, items, self.weight, self.k)
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            # A user with fewer than k items has place −1, which is the 0 appended after the last residual.
            residuals = np.append(own_residuals(own, self.effects, lane), 0.0)
            totals[:, lane] = residuals[found].sum(axis=1)
        return (found >= 0).sum(axis=1), totals


@dataclass(frozen=True)
class AllAlike(AlikeItems):
    """Predicts from all items that the user rated, except the target item."""

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        return cls(own, effects_of(arrays, entry, own), entry.of_an_item, entry.covariance)

    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        own = self.own
        # A sentinel after the last rating: the search for a greater pair ends there, and no pair equals it.
        keys = np.append(own.users.astype(np.int64) * own.n_items + own.items, own.n_users * own.n_items)
        asked = users.astype(np.int64) * own.n_items + items
        places = np.searchsorted(keys, asked)
        itself = keys[places] == asked
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            residuals = own_residuals(own, self.effects, lane)
            sums = np.bincount(own.users, residuals, own.n_users)
            totals[:, lane] = sums[users] - np.where(itself, np.append(residuals, 0.0)[places], 0.0)
        return own.user_counts[users] - itself, totals


def public_weights(train: Ratings) -> NDArray[np.float32]:
    """Wgt without noise, for methods under which who rated what is public: a packed triangle."""
    return weighted_products(train, Raters.of(train), np.ones(len(train)), inverse_counts(train)).astype(
        np.float32
    )


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
    about: ClassVar[str] = (
        "The comparison for private kNN: the same predictor with a fixed covariance, which needs no data."
    )
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


class AveragesAndOwnMean(OwnMeansAlgorithm):
    """r̂_ui = MAvg_i + r̄_u: released item averages, and the user's own mean, which only the user sees."""

    title: ClassVar[str] = "MM averages"
    about: ClassVar[str] = (
        "Private item averages and the user's own mean: the covariance methods without their covariance."
    )
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["mm_averages"]
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnMeansModel:
        averages = self.released_averages(train, self.measurer(epsilons, curator))
        return OwnMeansModel(self.own_means(train, averages))


class OwnMeanFixedCovariance(OwnMeansAlgorithm):
    """`CovarianceKNN` over all the user's other ratings, with Avg_ii = v and Avg_ij = c, both public.

        r̂_ui = MAvg_i + r̄_u + c/(v + ridge + (m − 1)·c) · Σ_j (r_uj − MAvg_j − r̄_u)

    m is the number of u's other ratings. `CovarianceSVD` on this covariance predicts the same: the only direction
    that counts has the same coordinate for all items.
    """

    title: ClassVar[str] = "MM fixed covariance"
    about: ClassVar[str] = (
        "The covariance methods of McSherry and Mironov 2009 with a covariance that needs no data."
    )
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["mm_public"]
    budget: ItemAveragesBudget = ItemAveragesBudget()
    ridge: float = Field(0.2, ge=1e-6, le=1e6, description="as in mm_knn, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> AllAlike:
        averages = self.released_averages(train, self.measurer(epsilons, curator))
        own_means = self.own_means(train, averages)
        return AllAlike(train, own_means, self.of_an_item, self.covariance)

    @property
    def of_an_item(self) -> float:
        """v + ridge, in units of B²."""
        return self.variance + self.ridge

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid) + Cost(5e-9 * grid * shape.ratings, 40.0 * shape.ratings)


class PrivateConstantNeighbourhood(PrivateNeighbourhood):
    """`ConstantNeighbourhood` with private item averages, which get all of ε.

    The difference from this model at the same ε shows what a privately learned similarity is worth.
    """

    title: ClassVar[str] = "Constant similarity, private averages"
    about: ClassVar[str] = "The neighbourhood model with a constant similarity and private averages."
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = in_mode(Mode.CORRECTED, *CERTIFIED)
    revision: ClassVar[int] = 2

    algorithm: Literal["private_constant_nbm"]
    mode: Mode = Mode.CORRECTED
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        return neighbourhood_model(train, self.neighbours_of_items(train), 1.0, averages)

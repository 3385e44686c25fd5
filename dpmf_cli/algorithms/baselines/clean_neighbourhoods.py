"""Neighbourhoods without noise. Wang and Tang 2017, sections 2 and 5.1."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.baselines.clean_averages import AveragesBaseline
from dpmf_cli.algorithms.shared.cost import (
    Cost,
    Shape,
    effects_cost,
    met_cost,
    neighbourhood_cost,
    pairs_cost,
)
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.neighbourhood import (
    by_user,
    error_bound,
    item_products,
    largest,
    most_co_rated,
)
from dpmf_cli.core.ratings import Ratings, transposed
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_similarities
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons


class NeighbourhoodBaseline(AveragesBaseline):
    """Every item has k neighbours. `effects` sets the averages, by default plain ones."""

    effects: EffectsParameters = EffectsParameters(beta_m=0)
    k: int = Field(500, ge=1, le=100_000, description="N_k: number of neighbours of an item")

    def start(
        self, train: Ratings, epsilons: Epsilons, curator: Curator, similarity: float
    ) -> NeighbourhoodModel:
        """The model with one similarity; neighbours are the items with the most common raters."""
        averages = self.measure(train, epsilons, curator).items
        return neighbourhood_model(train, most_co_rated(train, self.k), similarity, averages)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid) + neighbourhood_cost(shape, 1, self.k, steps=0)

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        return pairs_cost(grid, pairs) + met_cost(shape, grid, pairs, self.k)


@dataclass(frozen=True)
class BetweenUsers:
    """The neighbourhoods of users: those of the `items` of the transposed ratings."""

    items: NeighbourhoodModel

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, E) predictions for n pairs."""
        return self.items.predict(items, users)


class CorrelationKNN(NeighbourhoodBaseline):
    """Predicts from k neighbours of item i:  r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij|.

    Between users it does the same on the transposed ratings:  r̂_ui = r̄_u + Σ_v s_uv(r_vi − r̄_v)/Σ_v |s_uv|.
    """

    k: int = Field(900, ge=1, le=100_000, description="N_k: 900 for ML-100K, 1300 for ML-1M")
    nearest: Literal["similarity", "common_raters"] = Field(
        "similarity", description="how the neighbours of an item are chosen; not in the paper"
    )
    between: Literal["items", "users"] = later(
        "items",
        description="similarities between items, or between users: the same method on the transposed ratings",
    )

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        if self.between == "users":
            return BetweenUsers(self.of_items(transposed(train), epsilons, curator))
        return self.of_items(train, epsilons, curator)

    def of_items(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NeighbourhoodModel:
        """The neighbourhoods of the items."""
        averages = self.measure(train, epsilons, curator).items
        k = min(self.k, train.n_items - 1)
        neighbours, values = [], []
        common = most_co_rated(train, k) if self.nearest == "common_raters" else None
        for items, scores in self.similarities(train, averages[:, 0]):
            nearest = largest(scores, items, k) if common is None else common[items]
            neighbours.append(nearest)
            values.append(np.take_along_axis(scores, nearest.astype(np.intp), axis=1).astype(np.float32))
        return neighbourhood_model(train, np.concatenate(neighbours), np.concatenate(values), averages)

    @abstractmethod
    def similarities(
        self, train: Ratings, averages: NDArray[np.float64]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yields s_ij (b, n_items) for one block of items i after the other; `averages` (n_items,) are r̄."""

    def cost(self, shape: Shape, grid: int) -> Cost:
        if self.between == "users":
            shape = Shape(shape.items, shape.users, shape.ratings)
        products = Cost(3 * shape.squares * 4e-9 + shape.items**2 * 1e-7, shape.squares / 4 * 12.0)
        return effects_cost(shape, grid) + products + neighbourhood_cost(shape, 1, self.k, steps=0)


def over_co_raters(
    train: Ratings, values: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yields Σ_u v_ui·v_uj/√(Σ_u v_ui²·Σ_u v_uj²) by blocks; every sum is over the users who rated both items."""
    rated, squares = by_user(train, np.ones(len(train))), by_user(train, values**2)
    numbers = by_user(train, values)
    sums = zip(
        item_products(numbers, numbers),
        item_products(squares, rated),
        item_products(rated, squares),
        strict=True,
    )
    for (items, products), (_, own), (_, other) in sums:
        yield items, over_norms(products, np.sqrt(own * other))


def over_norms(products: NDArray[np.float64], norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products divided by norms; 0 where a norm is 0."""
    return np.where(norms > 1e-12, products / np.maximum(norms, 1e-12), 0.0)


class PearsonKNN(CorrelationKNN):
    """s_ij = Σ_u (r_ui − r̄_i)(r_uj − r̄_j)/√(Σ_u (r_ui − r̄_i)²·Σ_u (r_uj − r̄_j)²).

    All sums run over the users who rated both items.
    """

    title = "PCC"
    algorithm: Literal["pcc"]

    def similarities(
        self, train: Ratings, averages: NDArray[np.float64]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        return over_co_raters(train, train.values.astype(np.float64) - averages[train.items])


class CosineKNN(CorrelationKNN):
    """s_ij = Σ_u r_ui·r_uj/√(Σ_u r_ui²·Σ_u r_uj²).

    The sum of products runs over the users who rated both items. The paper does not say which users the sums of
    squares run over. With all raters of an item, its similarity to items with few common raters is small, which is
    more accurate.
    """

    title = "COS"
    algorithm: Literal["cos"]
    over: Literal["raters", "co_raters"] = Field(
        "raters", description="the users over whom squares are summed: raters of the item, or of both items"
    )

    def similarities(
        self, train: Ratings, averages: NDArray[np.float64]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        values = train.values.astype(np.float64)
        if self.over == "co_raters":
            yield from over_co_raters(train, values)
            return
        norms = np.sqrt(np.bincount(train.items, values**2, train.n_items))
        ratings = by_user(train, values)
        for items, products in item_products(ratings, ratings):
            yield items, over_norms(products, norms[items, None] * norms)


class ConstantNeighbourhood(NeighbourhoodBaseline):
    """r̂_ui = r̄_i + the mean of r_uj − r̄_j over the neighbours of item i that user u rated: s_ij = 1.

    Neighbours are the items with the most common raters. The difference from this model shows what a learned
    similarity is worth.
    """

    title = "Constant similarity"

    algorithm: Literal["constant_nbm"]

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        return self.start(train, epsilons, curator, similarity=1.0)


class ProbabilisticNeighbourhood(NeighbourhoodBaseline):
    """PNBM: Wang and Tang 2017, equations 2 to 5, by gradient descent from a constant similarity s₀:

        s_ij ← s_ij − η·(Σ_u e_ui·∂r̂_ui/∂s_ij + λ·s_ij),   e = r̂ − r,   K times over all ratings

    Neighbours are the items with the most common raters. Predictions do not depend on the scale of S, so only η/s₀²
    and λ·η matter. The model overfits, so K has to be chosen. The published η (0.1 or 0.4) hardly moves S from
    s₀ = 1.
    """

    title = "PNBM"

    algorithm: Literal["pnbm"]
    initial_similarity: float = Field(1.0, gt=0, description="s₀")
    learning_rate: float = Field(2.0, gt=0, description="η, on sums of gradients")
    iterations: int = Field(8, ge=1, description="K")
    regularization: float = Field(0.005, ge=0, description="λ; the paper's 0.05 or 0.005")
    clamp_errors: bool = later(
        False,
        description="whether errors are clamped as DPSGD-PNBM clamps them, section 3",
    )

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        model = self.start(train, epsilons, curator, self.initial_similarity)
        learned = LearnedRatings.unclipped(train)
        everybody = np.ones(len(train), np.bool_)
        rates = np.array([self.learning_rate])
        for t in range(1, self.iterations + 1):
            bound = error_bound(train.scale, t) if self.clamp_errors else np.inf
            step = SimilarityStep(everybody, rates, self.regularization, error_bound=bound)
            descend_similarities(model, learned, step)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid) + neighbourhood_cost(shape, 1, self.k, steps=self.iterations)

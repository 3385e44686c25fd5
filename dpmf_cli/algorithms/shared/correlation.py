"""kNN with correlations or cosines as similarities, without noise: Wang and Tang 2017, section 5.1."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost, neighbourhood_cost
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.neighbourhood import by_user, item_products, largest, most_co_rated
from dpmf_cli.algorithms.shared.neighbourhood_baseline import NeighbourhoodBaseline
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings, transposed
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import later


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

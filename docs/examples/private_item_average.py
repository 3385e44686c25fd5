"""A plugin in one file: every item's average rating, private, with the whole ε for averages of items."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import rating_sums, residual_sums


class PrivateItemAverage(PrivateAlgorithm):
    """r̂_ui = A + (Σ_u (r_ui − A) + noise)/(n_i + β), A being the noisy average of all ratings.

    Bounded: who rated what is public, so are the counts, and another value of one rating moves one sum by Δr at most.
    """

    title: ClassVar[str] = "PIA"
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED)

    algorithm: Literal["private_item_average"]
    beta: float = Field(5, ge=0, description="β: how many ratings an item without ratings is taken to have")
    overall: float = Field(0.05, gt=0, lt=1, description="the part of ε for the average of all ratings")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        total = laplace(
            "sum of ratings",
            (1,),
            sensitivity=rating_sums(train.scale),
            epsilon=self.overall * epsilons,
            curator=curator,
        ).added_to([train.values.sum(dtype=np.float64)])
        average = np.clip(total / max(len(train), 1), train.scale.minimum, train.scale.maximum)  # (1, E)
        sums = (
            np.bincount(train.items, train.values, train.n_items)[:, None]
            - train.item_counts[:, None] * average
        )
        noisy = laplace(
            "item sums",
            (train.n_items,),
            sensitivity=residual_sums(train.scale),
            epsilon=(1 - self.overall) * epsilons,
            curator=curator,
        ).added_to(sums)  # (n_items, E)
        items = average + noisy / np.maximum(train.item_counts + self.beta, 1)[:, None]
        return EffectsModel(items, np.zeros((train.n_users, len(epsilons))))

    def cost(self, shape: Shape, grid: int) -> Cost:
        return Cost(
            3e-8 * shape.ratings + 5e-8 * shape.items * grid, 8.0 * (shape.users + 3 * shape.items) * grid
        )

"""A plugin in one file: the median rating of each item, by the exponential mechanism.

An item's median is the allowed rating that has as many of the item's ratings below it as above. The larger of these
two numbers is a candidate's loss. Changing the value of one rating moves each loss of its item by 1 at most, and no
other item's. Items are disjoint, so all of them together cost what one does (parallel composition).
"""

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import exponential_choice, laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity, rating_sums

LARGER_SIDE = Sensitivity(
    1.0, math.inf, Neighbours.BOUNDED, "one rating more or less on either side of a candidate"
)


class ItemMedian(PrivateAlgorithm):
    """r̂_ui = the candidate c with the least noisy max(ratings of i below c, ratings of i above c).

    Bounded: who rated what is public. An item without ratings has the noisy average of all ratings.
    """

    title: ClassVar[str] = "Item median"
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED)

    algorithm: Literal["item_median"]
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
        candidates = allowed_ratings(train.scale)
        losses = exponential_choice(
            "medians",
            len(candidates),
            choices=train.n_items,
            sensitivity=LARGER_SIDE,
            epsilon=(1 - self.overall) * epsilons,
            curator=curator,
        ).added_to(larger_sides(train, candidates))  # (n_items, C, E)
        medians = candidates[losses.argmin(axis=1)]
        items = np.where(train.item_counts[:, None] > 0, medians, average)
        return EffectsModel(items, np.zeros((train.n_users, len(epsilons))))

    def cost(self, shape: Shape, grid: int) -> Cost:
        return Cost(
            1e-7 * shape.ratings + 1e-6 * shape.items * grid, 8.0 * (shape.users + 200 * shape.items) * grid
        )


def allowed_ratings(scale: Scale) -> NDArray[np.float64]:
    """(C,) the ratings that the scale allows; 21 of them, evenly, where it allows any."""
    count = round(scale.width / scale.step) + 1 if scale.step else 21
    return np.linspace(scale.minimum, scale.maximum, count)


def larger_sides(train: Ratings, candidates: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_items, C) of each item's ratings those below a candidate or those above it, whichever are more."""
    sides = np.empty((train.n_items, len(candidates)))
    for place, candidate in enumerate(candidates):
        below, above = (
            np.bincount(train.items, side, train.n_items)
            for side in (train.values < candidate, train.values > candidate)
        )
        sides[:, place] = np.maximum(below, above)
    return sides

"""The most rated items first: the baseline for recommendations, as averages are for errors."""

from typing import ClassVar, Literal

import numpy as np

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class Popularity(Algorithm):
    """score_ui = c_i, the number of training ratings of item i, whatever their values. Every user gets the same
    order.

    A score is not a rating, so it has no errors. Cremonesi, Koren and Turrin 2010 call this method TopPop.
    """

    title: ClassVar[str] = "Popularity"
    stochastic: ClassVar[bool] = False
    scores_only: ClassVar[bool] = True

    algorithm: Literal["popularity"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        counts = np.repeat(train.item_counts[:, None].astype(np.float64), len(epsilons), axis=1)
        return EffectsModel(counts, np.zeros((train.n_users, len(epsilons))))

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)

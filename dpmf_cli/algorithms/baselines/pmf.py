"""PMF without noise. Zhang, Liu, Chen and Zhong 2018, algorithm 2, lines 1 to 13."""

from typing import ClassVar, Literal

import numpy as np

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.shared.probabilistic import GradientDescentPMF, Kept, sampled_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class ProbabilisticMF(GradientDescentPMF, Algorithm):
    """PMF without noise: the first half of Zhang et al. 2018, algorithm 2, lines 1–13.

    U(0) and V(0) have uniformly random rows of norm 1; ratings are not centred. For a user or item without training
    ratings, which the paper leaves open, the model predicts the global average.
    """

    title: ClassVar[str] = "PMF"

    shares_lanes: ClassVar[bool] = True

    algorithm: Literal["pmf"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> KnownModel:
        return self.fit_samples(
            train, np.ones((len(train), 1), np.bool_), epsilons, streams=streams, curator=curator
        )

    def fit_samples(
        self, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> KnownModel:
        """Fits one model for each column of `kept` (n_ratings, E)."""
        model, _ = self.descend(train, kept, streams)
        return sampled_model(train, kept, model)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return self.descent_cost(shape, grid, self.epochs)

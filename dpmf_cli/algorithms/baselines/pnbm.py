"""PNBM: the probabilistic neighbourhood model, without noise. Wang and Tang 2017, equations 2 to 5."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost, neighbourhood_cost
from dpmf_cli.algorithms.shared.learned_neighbourhood import error_bound
from dpmf_cli.algorithms.shared.neighbourhood import most_co_rated
from dpmf_cli.algorithms.shared.neighbourhood_baseline import NeighbourhoodBaseline
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_similarities
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import later


class ProbabilisticNeighbourhood(NeighbourhoodBaseline):
    """PNBM: Wang and Tang 2017, equations 2 to 5, by gradient descent from a constant similarity s₀:

        s_ij ← s_ij − η·(Σ_u e_ui·∂r̂_ui/∂s_ij + λ·s_ij),   e = r̂ − r,   K times over all ratings

    Neighbours are the items with the most common raters. Predictions do not depend on the scale of S, so only η/s₀²
    and λ·η matter. The model overfits, so K has to be chosen. The published η (0.1 or 0.4) hardly moves S from
    s₀ = 1.
    """

    title: ClassVar[str] = "PNBM"

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
        averages = self.measure(train, epsilons, curator).items
        model = neighbourhood_model(train, most_co_rated(train, self.k), self.initial_similarity, averages)
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

"""Matrix factorisations of perturbed ratings on [0, 1]."""

from abc import abstractmethod

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm
from dpmf_cli.compiled.lane_groups import groups
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams


class LocalFactorization(LocalAlgorithm):
    """r̂_ui = p_u·q_i on [0, 1], fitted to the ratings that the aggregator received."""

    factors: int = Field(10, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(
        0.03,
        ge=1e-6,
        description="λ; the paper has none; with less, rows with few ratings cannot be solved",
    )
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=0.5)

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> FactorModel:
        model = self.start(received, streams)
        self.factorise(model, received, streams)
        return model

    def start(self, received: PerturbedRatings, streams: Streams) -> FactorModel:
        """The start: start factors, the same for each ε, and the averages that are added to p_u·q_i."""
        users, items = initial_factors(received, self.initial_factors, self.factors, streams)
        averages = self.averages_of(received)
        return factor_model(users, items, averages.users, averages.items)

    def averages_of(self, received: PerturbedRatings) -> EffectsModel:
        """The averages that are added to p_u·q_i: 0, unless a subclass has some."""
        grid = len(received.epsilons)
        return EffectsModel(np.zeros((received.n_items, grid)), np.zeros((received.n_users, grid)))

    @abstractmethod
    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        """Fits the factors to the received values, in place."""

    def cost(self, shape: Shape, grid: int) -> Cost:
        rows = shape.rows * (self.factors + 1) * LINE * len(groups(grid))
        return super().cost(shape, grid) + Cost(0, rows)

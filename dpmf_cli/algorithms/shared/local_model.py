"""Algorithms of the local model: devices perturb and send ratings, and an aggregator predicts from the messages."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Model, PrivateAlgorithm, in_both_modes
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, UnitModel, start_model
from dpmf_cli.core.compiled.lane_groups import groups, padded_grid
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.local import PerturbedRatings, Traffic, perturb_ratings
from dpmf_cli.privacy.local_mechanisms import LocalMechanism, Mechanism, mechanism_on
from dpmf_cli.privacy.neighbours import Neighbours

SECONDS_PER_MESSAGE = 3e-8
"""Per rating to perturb and ε."""


@dataclass(frozen=True)
class LocalModel(UnitModel):
    """The aggregator's model, and the traffic of the messages sent for it."""

    traffic: Traffic


class LocalAlgorithm(PrivateAlgorithm):
    """Each rating is perturbed with the complete ε by `mechanism` and sent, once. `aggregate` does the rest.

    This is ε-LDP for the value of one rating, and n·ε for a user who sends n ratings. Because the aggregator, whose
    code gets only `PerturbedRatings`, is post-processing, the claimed ε is provable, and both modes are the same.
    """

    variants = in_both_modes(Neighbours.LOCAL)
    averaged = False

    neighbours: Neighbours = Neighbours.LOCAL
    mechanism: Mechanism = Field(Mechanism.BLP, description="how a device perturbs each rating")
    debias: bool = Field(
        False,
        description="blp, laplace, grr: read messages as ½ + (p − ½)/s, so that their mean is the rating",
    )
    levels: int | None = Field(
        None,
        ge=2,
        le=101,
        description="grr, oue: number of answers; by default the scale's own grid, or 5 if it has none",
    )

    @model_validator(mode="after")
    def _refuse_idle_parameters(self) -> "LocalAlgorithm":
        name = {"name": self.mechanism.value}
        if self.debias and mechanism_on(Scale(0, 1), self.mechanism).unbiased:
            raise PydanticCustomError("debias", "{name} is unbiased already; remove `debias`", name)
        if self.levels is not None and self.mechanism not in (Mechanism.GRR, Mechanism.OUE):
            message = "{name} has no levels, only grr and oue have; remove `levels`"
            raise PydanticCustomError("levels", message, name)
        return self

    def device(self, scale: Scale) -> LocalMechanism:
        return mechanism_on(scale, self.mechanism, self.levels)

    @final
    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> LocalModel:
        device = self.device(train.scale)
        received = perturb_ratings(train, device, epsilons, debias=self.debias, curator=curator)
        known, model = (received.user_counts > 0, received.item_counts > 0), self.aggregate(received, streams)
        return LocalModel(model, received.scale, *known, received.means, received.traffic)

    @abstractmethod
    def aggregate(self, received: PerturbedRatings, streams: Streams) -> Model:
        """The aggregator: a model that predicts on [0, 1]."""

    def cost(self, shape: Shape, grid: int) -> Cost:
        held = shape.ratings * (4.0 * padded_grid(grid) + 16)
        return Cost(shape.ratings * grid * SECONDS_PER_MESSAGE, held)


class LocalFactorization(LocalAlgorithm):
    """r̂_ui = p_u·q_i on [0, 1], fitted to the ratings that the aggregator received."""

    factors: int = Field(10, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(
        0.03, ge=1e-6, description="λ; the paper has none; with less, rows with few ratings cannot be solved"
    )
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=0.5)

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> FactorModel:
        averages = self.averages_of(received)
        model = start_model(received, self, streams, averages.users, averages.items)
        self.factorise(model, received, streams)
        return model

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

"""Matrix factorisations of perturbed ratings on [0, 1]: unweighted, by ALS and by SGD; and SGD without noise."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.base import Cost, Shape
from dpmf_cli.algorithms.baselines import EffectsModel
from dpmf_cli.algorithms.factorization import FactorModel, InitialFactors, initial_factors, visiting_order
from dpmf_cli.algorithms.local_averages import item_and_user_means
from dpmf_cli.algorithms.local_model import LocalAlgorithm
from dpmf_cli.algorithms.papers import Paper
from dpmf_cli.kernels.factors import FactorLanes, factor_lanes
from dpmf_cli.kernels.lanes import groups
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    REFERENCE,
    Mixture,
    Side,
    solve_mixture_items,
    solve_mixture_users,
)
from dpmf_cli.kernels.sgd import descend_values
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.streams import Streams

SECONDS_PER_GRAM_ENTRY = 2.5e-9
"""One rating, one entry of the lower triangle of its row's Gram matrix, one group of 16 lanes."""
SECONDS_PER_VISIT_AND_FACTOR = 5e-9
"""One rating visited by SGD, per latent factor, one group of 16 lanes."""


class LocalFactorization(LocalAlgorithm):
    """r̂_ui = p_u·q_i on [0, 1], fitted to what the aggregator received."""

    factors: int = Field(10, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.03, gt=0, description="λ; not in the paper, which has none")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=0.5)

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> FactorModel:
        users, items = initial_factors(received, self.initial_factors, self.factors, streams)
        effects = self.effects_of(received)
        models = []
        for lanes, values in zip(groups(len(received.epsilons)), received.groups, strict=True):
            factors = factor_lanes(users, items, effects.users[:, lanes], effects.items[:, lanes])
            self.factorise(factors, received, values, streams)
            models.append(factors)
        return FactorModel(models)

    def effects_of(self, received: PerturbedRatings) -> EffectsModel:
        """What is added to p_u·q_i: nothing."""
        grid = len(received.epsilons)
        return EffectsModel(np.zeros((received.n_items, grid)), np.zeros((received.n_users, grid)))

    def factorise(
        self, factors: FactorLanes, received: PerturbedRatings, values: NDArray[np.float32], streams: Streams
    ) -> None:
        """Fits the factors of one group of models, in place, to their values (n, width)."""
        raise NotImplementedError

    def solve_both(
        self,
        factors: FactorLanes,
        of: tuple[Side, Side],
        values: NDArray[np.float32],
        mixture: Mixture,
        active: NDArray[np.bool_],
    ) -> None:
        """Users, then items, by least squares weighted by the mixture, in place; `of` as `sides` has them."""
        for solve, side in zip((solve_mixture_users, solve_mixture_items), of, strict=True):
            solve(factors, side, values, mixture, regularization=self.regularization, active=active)

    def factors_cost(self, shape: Shape, grid: int) -> Cost:
        """What perturbing takes, and memory of factors."""
        rows = Cost(0, (shape.users + shape.items) * (self.factors + 1) * 64.0 * len(groups(grid)))
        return self.messages_cost(shape, grid) + rows


def sides(received: PerturbedRatings) -> tuple[Side, Side]:
    """The messages by user and by item."""
    places = np.arange(len(received), dtype=np.int32)
    by_item = np.argsort(received.items, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(received.item_counts)])
    return (
        Side(received.user_starts, received.items, places),
        Side(starts, received.users[by_item], by_item),
    )


class LocalMatrixFactorization(LocalFactorization):
    """Alternating least squares on the perturbed ratings, all of the same weight; ‖·‖² weighted by n as in ALS-WR.

    What a mixture of Gaussians adds is the difference between `MixtureFactorization` and this.

    With `means` it factorises what `LocalMeans` leaves, and the ridge grows with the variance of that: λ is the same
    prior for every mechanism and ε. Without, messages of large variance (unbiased ones at small ε) are overfitted.
    """

    title: ClassVar[str] = "MF of perturbed ratings"
    paper: ClassVar[Paper] = Paper.DPMF

    algorithm: Literal["local_mf"]
    means: bool = Field(
        False, description="factorise what shrunk item and user means leave, λ in units of its variance"
    )
    iterations: int = Field(20, ge=1, description="users, then items, so many times")

    def factorise(
        self, factors: FactorLanes, received: PerturbedRatings, values: NDArray[np.float32], streams: Streams
    ) -> None:
        users, items = sides(received)
        variances = np.full((1, factors.lanes), REFERENCE)
        if self.means:
            values = values - factors.effects(received.users, received.items)
            variances = values[:, : factors.lanes].var(axis=0, dtype=np.float64)[None] + LEAST_VARIANCE
        alone = Mixture(np.ones_like(variances), variances)
        everything = np.ones(factors.lanes, np.bool_)
        for _ in range(self.iterations):
            self.solve_both(factors, (users, items), values, alone, everything)

    def effects_of(self, received: PerturbedRatings) -> EffectsModel:
        return item_and_user_means(received) if self.means else super().effects_of(received)

    def cost(self, shape: Shape, grid: int) -> Cost:
        entries = (self.factors + 1) * (self.factors + 2) / 2
        seconds = 2 * self.iterations * shape.ratings * entries * SECONDS_PER_GRAM_ENTRY * len(groups(grid))
        return self.factors_cost(shape, grid) + Cost(seconds, 12.0 * shape.ratings)


class LocalSGD(LocalFactorization):
    """ISGD in the local model: Laplace noise on the scaled rating, clamped, then SGD. Section 4; no averages.

    The paper prints none of its parameters, and its improvements over ISGD depend on them
    (docs/papers/neera2020.md): they come out against the defaults here, which are unregularised.
    """

    title: ClassVar[str] = "ISGD, local"
    paper: ClassVar[Paper] = Paper.NEERA

    algorithm: Literal["isgd_local"]
    mechanism: Mechanism = Field(Mechanism.LAPLACE, description="what a device does to each rating")
    factors: int = Field(20, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.0, ge=0, description="λ; not in the paper")
    learning_rate: float = Field(0.05, gt=0, le=1, description="γ, on [0, 1]; not in the paper")
    epochs: int = Field(30, ge=1, description="not in the paper")
    order: Literal["user_major", "shuffled"] = "user_major"

    def factorise(
        self, factors: FactorLanes, received: PerturbedRatings, values: NDArray[np.float32], streams: Streams
    ) -> None:
        descend_values(
            factors,
            received.users,
            received.items,
            visiting_order(received, self.order, streams.generator("order of visits")),
            values,
            learning_rate=self.learning_rate,
            regularization=self.regularization,
            epochs=self.epochs,
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        visits = self.epochs * shape.ratings * len(groups(grid))
        seconds = visits * self.factors * SECONDS_PER_VISIT_AND_FACTOR
        return self.factors_cost(shape, grid) + Cost(seconds, 8.0 * shape.ratings)

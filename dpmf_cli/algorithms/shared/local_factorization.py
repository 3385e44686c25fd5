"""Matrix factorisations of perturbed ratings on [0, 1]: unweighted, by ALS and by SGD; and SGD without noise."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, factor_model
from dpmf_cli.kernels.mixture import (
    Mixture,
    Side,
    solve_mixture_items,
    solve_mixture_users,
)
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams


class LocalFactorization(LocalAlgorithm):
    """r̂_ui = p_u·q_i on [0, 1], fitted to what the aggregator received."""

    factors: int = Field(10, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.03, gt=0, description="λ; not in the paper, which has none")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=0.5)

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> FactorModel:
        users, items = initial_factors(received, self.initial_factors, self.factors, streams)
        effects = self.effects_of(received)
        model = factor_model(users, items, effects.users, effects.items)
        for group, values in zip(model.groups, received.groups, strict=True):
            self.factorise(group, received, values, streams)
        return model

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


def sides(received: PerturbedRatings) -> tuple[Side, Side]:
    """The messages by user and by item."""
    places = np.arange(len(received), dtype=np.int32)
    by_item = np.argsort(received.items, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(received.item_counts)])
    return (
        Side(received.user_starts, received.items, places),
        Side(starts, received.users[by_item], by_item),
    )

"""Matrix factorisation by SGD without noise: the baseline of Neera et al. 2020, section 4."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors, visiting_order
from dpmf_cli.algorithms.shared.unit_scale import UnitModel
from dpmf_cli.compiled.lane_groups import LaneValues
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.sgd import Sgd, descend_values
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings, average_of
from dpmf_cli.streams import Streams


class SGDFactorization(Algorithm):
    """(P, Q) = SGD on Σ (r_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²), r scaled to [0, 1].

    This is "Non-Private MF" in figures 3 and 4. The paper prints none of its parameters.
    """

    title: ClassVar[str] = "Clean MF (SGD)"

    algorithm: Literal["mf_sgd"]
    factors: int = Field(20, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.02, ge=0, description="λ; not in the paper")
    learning_rate: float = Field(0.05, gt=0, le=1, description="γ, on [0, 1]; not in the paper")
    epochs: int = Field(30, ge=1, description="not in the paper")
    order: Literal["user_major", "shuffled"] = "user_major"
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=0.5)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> UnitModel:
        users, items = initial_factors(train, self.initial_factors, self.factors, streams)
        model = factor_model(users, items, np.zeros((train.n_users, 1)), np.zeros((train.n_items, 1)))
        values = (train.values[:, None] - train.scale.minimum) / train.scale.width
        descend_values(
            model,
            train.users,
            train.items,
            visiting_order(train, self.order, streams.generator("order of visits")),
            LaneValues.of_grid(values),
            Sgd(self.learning_rate, self.regularization, epochs=self.epochs),
        )
        average = np.array([average_of(values[:, 0], 0.5)])
        known = train.user_counts > 0, train.item_counts > 0
        return UnitModel(model, train.scale, *known, average)

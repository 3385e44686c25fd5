"""The public pattern for joint differential privacy: users solve for their own part of the model, without noise."""

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.algorithms.shared.pattern import Pattern
from dpmf_cli.algorithms.shared.pattern_measurements import AVERAGES, FACTORS, PatternAlgorithm
from dpmf_cli.kernels.als import RowProblem, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model, move_factors, set_effects
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class OwnPattern(PatternAlgorithm):
    """r̂_ui = b_i + p_u·(a, y_i, q_i). p_u is the user's own ridge regression on clean ratings:

        p_u = argmin Σ_j (r_uj − b_j − p·(a, y_j, q_j))² + w·‖p‖²

    b, q and y are as in `PublicPattern`: averages of items, coefficients on the features of users, and features of
    items (more of them here). The constant a makes room for the user's average. Nothing about users is released, so b
    and q share all of ε. *Joint* differential privacy: predictions use the target user's own ratings.
    """

    title: ClassVar[str] = "Public pattern, own ratings"
    joint: ClassVar[bool] = True
    measured: ClassVar[tuple[str, ...]] = (AVERAGES["items"], FACTORS["items"])

    algorithm: Literal["own_pattern"]
    own_features: int = Field(24, ge=1, le=64, description="how many features y_i has; y_i has norm 1")
    own_average: float = Field(1.3, ge=0, le=100, description="a, where y_i has norm 1")
    own_ridge: float = Field(5.0, ge=0.01, le=1e6, description="w, the ridge of a user's own regression")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        whole = Pattern.of(train, max(self.own_features, self.factors))
        pattern, own, grid = whole.first(self.factors), whole.first(self.own_features), len(epsilons)
        overall = self.overall(train, epsilons, curator)
        nothing, no_effects = np.zeros_like(pattern.items), np.zeros((train.n_users, grid))
        overall_of_items = np.tile(overall, (train.n_items, 1))
        model = factor_model(np.zeros_like(pattern.users), nothing, no_effects, overall_of_items)
        measured = self.measurements(train, pattern, model, epsilons, curator)
        averages = np.clip(overall + measured.averages("items"), train.scale.minimum, train.scale.maximum)
        set_effects(model, "items", averages)
        features = np.hstack([np.full((train.n_items, 1), self.own_average), own.items, nothing])
        released = factor_model(features[:0], features, no_effects[:0], averages)
        move_factors(released, "items", slice(-self.factors, None), measured.factors("items"))
        return OwnFactors(self, released.without_users(), {}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """Returns the items with each user's own regression on them."""
        model = items.with_users(np.zeros((own.n_users, items.published["items"].shape[2])))
        solve_rows(model, by_user(own), RowProblem(self.own_ridge, math.inf, per_rating=False))
        return model

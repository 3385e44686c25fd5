"""Averages and factors on features of who rated what, for neighbours under which this is public."""

from typing import ClassVar, Literal

import numpy as np

from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.pattern import Pattern
from dpmf_cli.algorithms.shared.pattern_measurements import AVERAGES, CORE, FACTORS, PatternAlgorithm
from dpmf_cli.kernels.factors import FactorModel, factor_model, move_factors, set_effects
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PublicPattern(PatternAlgorithm):
    """r̂_ui = b_i + c_u + x_uᵀ·W·y_i + x_u·q_i + p_u·y_i, for neighbours that differ in the value of one rating.

        x_u, y_i   features of norm 1, from the singular vectors of who rated what (`Pattern`): they cost nothing
        b          from the average of all ratings, then from the sum of each item's residuals x
        c          from the sum of each user's residuals
        W          from Σ x·(x_u ⊗ y_i) over all ratings
        q_i, p_u   from Σ x·x_u over an item's ratings, then from Σ x·y_i over a user's ratings

    Each line fits the residuals x of the lines before it. Each step releases sums of residuals clamped to [−B, B]. A
    rating's value enters one of these sums and moves it by 2B·‖feature‖ at most, however many ratings there are.
    `shrunk_sums` turns the sums into estimates: it shrinks an average towards the prediction of a regression on
    log-counts and features, more strongly where there is more noise.

    ε is split so that the sum of the expected errors is least. These errors follow from ε and the pattern
    (`predicted_errors`). At a small ε, averages get nearly all of it. Factors get a part once rows have enough
    ratings.
    """

    title: ClassVar[str] = "Public pattern"
    measured: ClassVar[tuple[str, ...]] = (
        AVERAGES["items"],
        AVERAGES["users"],
        CORE,
        FACTORS["items"],
        FACTORS["users"],
    )

    algorithm: Literal["public_pattern"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        pattern, k = Pattern.of(train, self.factors), self.factors
        overall = self.overall(train, epsilons, curator)
        model = factor_model(
            np.hstack([np.zeros((train.n_users, k)), pattern.users]),
            np.hstack([pattern.items, np.zeros((train.n_items, k))]),
            np.zeros((train.n_users, len(epsilons))),
            np.tile(overall, (train.n_items, 1)),
        )
        measured = self.measurements(train, pattern, model, epsilons, curator)
        first, second = slice(None, k), slice(k, None)
        items = overall + measured.averages("items")
        set_effects(model, "items", np.clip(items, train.scale.minimum, train.scale.maximum))
        set_effects(model, "users", measured.averages("users"))
        move_factors(model, "users", first, np.einsum("ua,abe->ube", pattern.users, measured.core()))
        move_factors(model, "items", second, measured.factors("items"))
        move_factors(model, "users", first, measured.factors("users"))
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        k = self.factors
        return self.measured_cost(shape, grid, features=k, passes=3 * 2 * k + 3 * k + 2)

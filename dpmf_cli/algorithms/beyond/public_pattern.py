"""Averages and factors on features of who rated what, where that is public."""

from typing import ClassVar, Literal

import numpy as np

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
        b          the average of all ratings, then of what it leaves of each item's
        c          of what b leaves of each user's
        W          of what both leave, Σ x·(x_u ⊗ y_i) over all ratings
        q_i, p_u   of what is left then, Σ x·x_u over an item's ratings, then Σ x·y_i over a user's

    Each step releases sums of residuals clamped to [−B, B]. A rating's value is in one of its sums, which it moves by
    2B·‖feature‖ at most, whoever rated how much. Then the sums are read as `shrunk_sums` has it: an average is drawn
    to what a regression on log-counts and features says of it, by as much as its noise asks for.

    The parts of ε are those for which the expected errors, which follow from ε and the pattern, add up to the least
    (`predicted_errors`). At a small ε averages have nearly all; factors begin where the ratings of a row carry them.
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

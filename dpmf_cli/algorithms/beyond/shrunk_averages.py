"""Averages for neighbours that differ in the presence of a rating, believed as far as their noise allows."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.budget import AveragesBudget
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.pattern import LEAST_SPREAD
from dpmf_cli.algorithms.shared.shrunk_sums import Law, averages_of
from dpmf_cli.algorithms.shared.sums_and_counts import sums_and_counts
from dpmf_cli.kernels.als import by_item, by_user
from dpmf_cli.kernels.clamped_sums import clamped_sums
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model, set_effects
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class ShrunkAverages(PrivateAlgorithm):
    """r̂_ui = b_i + c_u, for neighbours that differ in the presence of one rating.

        GAvg   from all r − middle of the scale, in units of half its width
        b_i    = GAvg + what is believed of Σ clamp(r_ui − GAvg)/B over the item's ratings
        c_u    = what is believed of Σ clamp(r_ui − b_i)/B over the user's ratings

    Every sum is released with its count, as Σ (1 + x′)/2 and Σ (1 − x′)/2, x′ being its terms. A rating moves both
    by 1 in all. So sum and count have the noise of one number each, of the whole ε of their step; Friedman et al.'s
    algorithms halve ε between the two. `shrunk_sums` says what is believed: an average is drawn to what a regression
    on the logarithms of noisy counts says of it, by as much as the noise of sum and count asks for.
    """

    title: ClassVar[str] = "Shrunk averages"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = frozenset({(Neighbours.UNBOUNDED, Mode.CORRECTED)})
    averaged: ClassVar[bool] = False

    algorithm: Literal["shrunk_averages"]
    neighbours: Neighbours = Neighbours.UNBOUNDED
    mode: Mode = Mode.CORRECTED
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.47, user_averages=0.51)
    clamp: float = Field(1.5, ge=1e-3, le=4, description="B, in stars, to which residuals are clamped")
    of_items: Law = Law(of_rows=0.2, of_ratings=1.1)
    of_users: Law = Law(of_rows=0.17, of_ratings=0.9)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        parts, scale, grid = self.budget.for_effects(epsilons), train.scale, len(epsilons)
        half = scale.width / 2
        everything = np.full((1, grid), (train.values.astype(np.float64) - scale.middle).sum() / half)
        of_all = sums_and_counts(
            "global average", halves_of(everything, np.array([len(train)])), parts.global_averages, curator
        )
        overall = scale.middle + half * np.clip(of_all.sums / np.maximum(of_all.counts, 1), -1, 1)

        items = np.repeat(overall, train.n_items, axis=0)
        model = factor_model(
            np.zeros((train.n_users, 0)), np.zeros((train.n_items, 0)), np.zeros((train.n_users, grid)), items
        )
        items += self.believed(model, "items", train, parts.item_averages, curator)
        np.clip(items, scale.minimum, scale.maximum, out=items)
        set_effects(model, "items", items)
        return EffectsModel(items, self.believed(model, "users", train, parts.user_averages, curator))

    def believed(
        self, model: FactorModel, side: Side, train: Ratings, epsilons: Epsilons, curator: Curator
    ) -> NDArray[np.float64]:
        """(rows, E) what is believed of what a model leaves of each row of a side."""
        if side == "items":
            law, ratings, counts, others = self.of_items, by_item(train), train.item_counts, train.n_users
        else:
            law, ratings, counts, others = self.of_users, by_user(train), train.user_counts, train.n_items
        sums = clamped_sums(model, side, ratings, np.ones((others, 1)), self.clamp)[:, 0]
        found = sums_and_counts(f"{side[:-1]} averages", halves_of(sums, counts), epsilons, curator)
        star = law.star(self.clamp)
        lanes = zip(found.sums.T, found.counts.T, found.deviation**2, strict=True)
        return np.column_stack(
            [
                averages_of(star * own, np.maximum(n, 0), activity(n, v), law, (star**2 + law.of_rows) * v)
                for own, n, v in lanes
            ]
        )


def halves_of(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(rows, 2, E) Σ (1 + x′)/2 and Σ (1 − x′)/2 of sums (rows, E) of x′ and their counts (rows,)."""
    known = counts[:, None].astype(np.float64)
    return np.stack([known + sums, known - sums], axis=1) / 2


def activity(counts: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """(rows, 2) covariates: 1, and the logarithm of noisy counts in deviations, times what is sure of the count. A
    row whose count may be all noise has 1 alone: its average is that of all."""
    known, deviation = np.maximum(counts, 0), np.sqrt(variance + 1)
    logarithms = np.log(np.hypot(known, deviation))
    activities = (logarithms - logarithms.mean()) / max(float(logarithms.std()), LEAST_SPREAD)
    return np.column_stack([np.ones(len(counts)), activities * known / (known + deviation)])

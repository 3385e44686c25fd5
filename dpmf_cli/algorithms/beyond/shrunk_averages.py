"""Estimates of coefficients from noisy sums of residuals: the best linear prediction, and its error.

Rows (users, or items) have coefficients c with the law N(m, τ²) and ratings x = c·z + e, where e has variance σ². The
release for a row is s = Σ x·z with noise of variance v in each coordinate; G = Σ z·zᵀ is known. Then

    E[c | s] = m + τ²·G·(τ²·G² + σ²·G + v·I)⁻¹·(s − G·m)
    Cov[c | s] = τ²·(σ²·G + v·I)·(τ²·G² + σ²·G + v·I)⁻¹

(Robinson 1991, best linear unbiased prediction). An average has z = 1 and G = n. τ and σ are public guesses, and v
follows from ε. So the weight of a sum follows a public rule.
"""

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.beyond.pattern_features import LEAST_SPREAD, Spectrum
from dpmf_cli.algorithms.shared.averages import EffectsModel, sums_and_counts
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.budget import AveragesBudget
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.kernels.als import by_item, by_user
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model, set_effects
from dpmf_cli.kernels.reports import clamped_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours

LEAST = 1e-300
"""The lower bound of a variance in a denominator."""


class Law(StrictModel):
    """τ² and σ², in stars²: public guesses."""

    of_rows: float = Field(gt=0, le=100, description="τ², the variance of a row's coefficient around m")
    of_ratings: float = Field(gt=0, le=100, description="σ², the variance of a rating around its prediction")

    def star(self, bound: float) -> float:
        """The factor that turns a sum of clamp(x)/B into a sum of residuals x, in stars.

        A clamp to ±B passes the fraction P(|x| ≤ B) of a small shift of normal residuals. Dividing by it undoes that.
        """
        return bound / math.erf(bound / math.sqrt(2 * self.of_ratings))

    def of_sums(self, gram: NDArray[np.float64], noise: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """The variance of s around G·m, for eigenvalues of G."""
        return np.maximum(self.of_rows * gram**2 + self.of_ratings * gram + noise, LEAST)

    def believed(self, gram: NDArray[np.float64], noise: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """The factor that multiplies a sum, for eigenvalues of G and noise of variance v."""
        return self.of_rows * gram / self.of_sums(gram, noise)

    def error(self, gram: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
        """The variance of a coefficient that is left after the estimate."""
        return self.of_rows * (self.of_ratings * gram + noise) / self.of_sums(gram, noise)


RIDGE = 5.0
"""The ridge of the regression of averages on covariates: the inverse of the prior variance of its coefficients."""


def averages_of(
    sums: NDArray[np.float64],
    counts: NDArray[np.float64],
    covariates: NDArray[np.float64],
    law: Law,
    noise: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """(n,) the average of each row. Its m is from the weighted regression of all rows on `covariates` (n, k).

    sums, counts  (n,)
    noise         the variance of the noise in the sums, () or (n,)

    The first covariate is 1. A row whose count is 0 gets m.
    """
    weights = counts**2 / law.of_sums(counts, noise)
    normal = (covariates * weights[:, None]).T @ covariates
    normal += RIDGE * np.eye(covariates.shape[1])
    right = covariates.T @ (weights * sums / np.maximum(counts, 1e-9))
    centre = covariates @ np.linalg.solve(normal, right)
    return np.asarray(centre + law.believed(counts, noise) * (sums - counts * centre))


def coefficients_of(
    sums: NDArray[np.float64], spectrum: Spectrum, law: Law, noise: float
) -> NDArray[np.float64]:
    """(rows, k) the coefficients of each row from `sums` (rows, k), with m = 0."""
    values, vectors = spectrum
    turned = np.einsum("rij,ri->rj", vectors, sums) * law.believed(values, noise)
    return np.asarray(np.einsum("rij,rj->ri", vectors, turned))


class ShrunkAverages(PrivateAlgorithm):
    """r̂_ui = b_i + c_u, for neighbours that differ in the presence of one rating.

        GAvg   from Σ (r − middle of the scale)/(half its width) over all ratings
        b_i    = GAvg + the shrunk average from Σ clamp(r_ui − GAvg)/B over the item's ratings
        c_u    = the shrunk average from Σ clamp(r_ui − b_i)/B over the user's ratings

    Every sum is released with its count, as Σ (1 + x′)/2 and Σ (1 − x′)/2, where x′ are the terms of the sum. A
    rating moves the two numbers by 1 in total, so sum and count together cost the step's ε once. Friedman et al.'s
    algorithms halve ε between the two. `Law` shrinks an average towards the prediction of a regression on the
    logarithms of noisy counts, more strongly where sum and count have more noise.
    """

    title: ClassVar[str] = "Shrunk averages"
    about: ClassVar[str] = (
        "Averages for neighbours that differ in the presence of a rating, shrunk as far as their "
        "noise requires."
    )
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = {(Neighbours.UNBOUNDED, Mode.CORRECTED): None}
    averaged: ClassVar[bool] = False

    algorithm: Literal["shrunk_averages"]
    neighbours: Neighbours = Neighbours.UNBOUNDED
    mode: Mode = Mode.CORRECTED
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.47, user_averages=0.51)
    clamp: float = Field(1.5, ge=1e-3, le=4, description="B: residuals are clamped to ±B, in stars")
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
        """(rows, E) the shrunk average of a model's residuals in each row of a side."""
        if side == "items":
            law, ratings, counts, others = self.of_items, by_item(train), train.item_counts, train.n_users
        else:
            law, ratings, counts, others = self.of_users, by_user(train), train.user_counts, train.n_items
        sums = clamped_sums(model, ratings, np.ones((others, 1)), self.clamp)[:, 0]
        found = sums_and_counts(f"{side[:-1]} averages", halves_of(sums, counts), epsilons, curator)
        star = law.star(self.clamp)
        lanes = zip(found.sums.T, found.counts.T, found.deviation**2, strict=True)
        return np.column_stack(
            [
                averages_of(star * own, np.maximum(n, 0), activity(n, v), law, (star**2 + law.of_rows) * v)
                for own, n, v in lanes
            ]
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)


def halves_of(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(rows, 2, E) Σ (1 + x′)/2 and Σ (1 − x′)/2, from sums (rows, E) of x′ and their counts (rows,)."""
    known = counts[:, None].astype(np.float64)
    return np.stack([known + sums, known - sums], axis=1) / 2


def activity(counts: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """(rows, 2) covariates: 1, and the standardised logarithm of the noisy count, times how certain the count is.

    A row whose count may be all noise has only the 1, so it is shrunk towards the average of all rows.
    """
    known, deviation = np.maximum(counts, 0), np.sqrt(variance + 1)
    logarithms = np.log(np.hypot(known, deviation))
    activities = (logarithms - logarithms.mean()) / max(float(logarithms.std()), LEAST_SPREAD)
    return np.column_stack([np.ones(len(counts)), activities * known / (known + deviation)])

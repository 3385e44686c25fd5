"""Methods on a public pattern: noisy sums of clamped residuals, and a budget split by errors predicted from public
numbers.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.beyond.pattern_features import Pattern, Spectrum
from dpmf_cli.algorithms.beyond.shrunk_averages import Law, averages_of, coefficients_of
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.factorization import OwnFactors
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.kernels.als import RowProblem, SideRatings, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model, move_factors, set_effects
from dpmf_cli.kernels.reports import clamped_sums
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release

QUANTA = 50
"""Shares are integer multiples of 1/QUANTA, and none is 0."""

Predicted = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The mean squared error that a part leaves, for each ε that the part may get."""

NOISES = np.geomspace(1e-6, 1e18, 121)
"""Variances of noise for which an error is computed. Between them it is interpolated."""


def interpolated(
    error: Callable[[float], float], variance: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Predicted:
    """The error as a function of ε. `error` maps a variance of noise to an error, and `variance` maps ε to a variance
    of noise."""
    known = np.array([error(float(noise)) for noise in NOISES])
    logarithms = np.log(NOISES)
    return lambda epsilons: np.interp(np.log(np.maximum(variance(epsilons), NOISES[0])), logarithms, known)


def of_averages(law: Law, rated: NDArray[np.int64], covariates: int) -> Callable[[float], float]:
    """The error of averages, given the number of ratings `rated` of each row, as a function of the noise variance.

    It is the error left in a row's own average, plus the error of the regression on covariates.
    """
    counts = rated.astype(np.float64)

    def error(noise: float) -> float:
        own = float(counts @ law.error(counts, noise)) / max(float(counts.sum()), 1.0)
        weight = float((counts**2 / law.of_sums(counts, noise)).sum())
        return own + 1 / (1 / UNKNOWN + weight / covariates)

    return error


UNKNOWN = 0.3
"""The prior variance, in stars², of the predictions of a regression on covariates."""


def of_coefficients(law: Law, gram: NDArray[np.float64], ratings: int) -> Callable[[float], float]:
    """The error of coefficients, averaged over all ratings: Σ tr(G·Cov)/n, from all eigenvalues of G."""
    values = gram[gram > 0]
    return lambda noise: float(values @ law.error(values, noise)) / max(ratings, 1)


def shares_of(parts: Mapping[str, Predicted], epsilon: float) -> dict[str, float]:
    """The share of each part. Shares are multiples of 1/QUANTA that sum to 1, with the least sum of errors.

    Found by dynamic programming over the parts, because errors need not be convex. Those of vectors are not: noise
    drowns them at small ε.
    """
    quanta = np.arange(1, QUANTA + 1)
    errors = {name: predicted(quanta / QUANTA * epsilon) for name, predicted in parts.items()}
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for name, later in zip(errors, reversed(range(len(errors))), strict=True):
        best = _with_part(best, errors[name], QUANTA - later)
    return {name: chosen / QUANTA for name, chosen in zip(errors, best[QUANTA][1], strict=True)}


def _with_part(
    best: dict[int, tuple[float, tuple[int, ...]]], errors: Sequence[float] | NDArray[np.float64], most: int
) -> dict[int, tuple[float, tuple[int, ...]]]:
    """The best choice for each number of quanta spent, after one more part."""
    found: dict[int, tuple[float, tuple[int, ...]]] = {}
    for spent, (error, chosen) in best.items():
        for quanta in range(1, most - spent + 1):
            total = error + float(errors[quanta - 1])
            if total < found.get(spent + quanta, (np.inf, ()))[0]:
                found[spent + quanta] = total, (*chosen, quanta)
    return found


AVERAGES: Mapping[Side, str] = {"items": "item averages", "users": "user averages"}
FACTORS: Mapping[Side, str] = {"items": "item factors", "users": "user factors"}
CORE = "core"
"""Names of steps, and of the parts of ε that they spend."""

VISIT, SINGULAR = 4e-9, 6e-8
"""Seconds per rating and group of 16 lanes, for each factor in a prediction or feature in a sum; and per rating and
feature, for the singular vectors of who rated what."""


class Laws(StrictModel):
    """The variances assumed for each measured part: chosen on MovieLens 100K, for features of norm 1."""

    item_averages: Law = Law(of_rows=0.1, of_ratings=1.1)
    user_averages: Law = Law(of_rows=0.17, of_ratings=0.9)
    core: Law = Law(of_rows=0.02, of_ratings=0.8)
    item_factors: Law = Law(of_rows=0.015, of_ratings=0.8)
    user_factors: Law = Law(of_rows=0.03, of_ratings=0.8)

    def of(self, part: str) -> Law:
        """The law of a part, by its name."""
        law: Law = getattr(self, part.replace(" ", "_"))
        return law


class PatternAlgorithm(PrivateAlgorithm):
    """A method for neighbours that differ in the value of a rating. Who rated what is public, and used in full.

    measured  the parts among which ε is split, besides the average of all ratings
    """

    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = {(Neighbours.BOUNDED, Mode.CORRECTED): None}
    averaged: ClassVar[bool] = False
    measured: ClassVar[tuple[str, ...]]

    mode: Mode = Mode.CORRECTED
    factors: int = Field(
        8, ge=1, le=32, description="k, the number of features of a user and of an item in the regressions"
    )
    covariates: int = Field(
        5, ge=0, le=32, description="how many of these features averages are regressed on"
    )
    clamp: float = Field(1.5, ge=1e-3, le=2, description="B, in stars, to which residuals are clamped")
    global_share: float = Field(
        0.02, ge=LEAST_SHARE, lt=1, description="fraction of ε for the average of all ratings"
    )
    laws: Laws = Laws()

    def overall(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NDArray[np.float64]:
        """(E,) the noisy average of all ratings, within the scale."""
        noise = laplace(
            "global average",
            (),
            sensitivity=sensitivity.rating_sums(train.scale),
            epsilon=self.global_share * epsilons,
            curator=curator,
        )
        total = noise.added_to(np.asarray(train.values.sum(dtype=np.float64)))
        return np.clip(total / max(len(train), 1), train.scale.minimum, train.scale.maximum)

    def measurements(
        self, train: Ratings, pattern: Pattern, model: FactorModel, epsilons: Epsilons, curator: Curator
    ) -> "Measurements":
        """Splits the ε that the average of all ratings leaves, by public predictions of the errors."""
        rest, predicted = (1 - self.global_share) * epsilons, self.predicted(train, pattern)
        shares = [shares_of(predicted, float(epsilon)) for epsilon in rest]
        split = {part: np.array([each[part] for each in shares]) * rest for part in self.measured}
        return Measurements(train, pattern, model, self.clamp, self.laws, self.covariates, split, curator)

    def predicted(self, train: Ratings, pattern: Pattern) -> dict[str, Predicted]:
        """The predicted error of each part, as a function of the ε that the part gets."""
        k, found = self.factors, {}
        kinds: dict[str, tuple[int, Callable[[Law], Callable[[float], float]]]] = {
            AVERAGES["items"]: (1, lambda law: of_averages(law, train.item_counts, self.covariates + 2)),
            AVERAGES["users"]: (1, lambda law: of_averages(law, train.user_counts, self.covariates + 2)),
            CORE: (k * k, lambda law: of_coefficients(law, pattern.of_pairs[0], len(train))),
            FACTORS["items"]: (k, lambda law: of_coefficients(law, pattern.of_items[0], len(train))),
            FACTORS["users"]: (k, lambda law: of_coefficients(law, pattern.of_users[0], len(train))),
        }
        for part in self.measured:
            law, (dimension, error) = self.laws.of(part), kinds[part]
            scale = sensitivity.clamped_vectors().value * law.star(self.clamp)
            found[part] = interpolated(error(law), partial(variance_at, scale, dimension))
        return found

    def measured_cost(self, shape: Shape, grid: int, *, features: int, passes: int) -> Cost:
        """The cost of measuring. `passes` counts a rating's factors and features in all passes together."""
        k = self.factors
        visits = shape.ratings * passes * len(groups(grid)) * VISIT
        solved = shape.rows * k * k * (1e-7 + grid * 2e-8)
        held = shape.rows * k * (8.0 * k + 40.0 * grid) + shape.ratings * 60.0
        return Cost(visits + solved + shape.ratings * features * SINGULAR, held)


def variance_at(scale: float, dimension: int, epsilons: Epsilons) -> NDArray[np.float64]:
    """`noise_variance` of noise whose scale is `scale` at ε = 1."""
    return noise_variance(scale / epsilons, dimension)


def noise_variance(scale: NDArray[np.float64], dimension: int) -> NDArray[np.float64]:
    """(E,) the variance of a coordinate of K-norm noise in `dimension` dimensions. In one dimension it is Laplace
    noise."""
    return np.asarray((dimension + 1) * scale**2)


@dataclass(frozen=True)
class Measurements:
    """The steps of a fit. Each measures the residuals of the model that the steps before it have released.

    bound     B, to which residuals are clamped
    laws, epsilons  the law and the ε (E,) of each part by its name
    covariates  how many features averages are regressed on
    """

    train: Ratings
    pattern: Pattern
    model: FactorModel
    bound: float
    laws: Laws
    covariates: int
    epsilons: Mapping[str, Epsilons]
    curator: Curator

    def averages(self, side: Side) -> NDArray[np.float64]:
        """(rows, E) the updates of a side's averages: `averages_of` Σ clamp(x) with Laplace noise."""
        part = AVERAGES[side]
        counts = self.train.item_counts if side == "items" else self.train.user_counts
        noise = laplace(
            part,
            (len(counts),),
            sensitivity=sensitivity.clamped_sums(),
            epsilon=self.epsilons[part],
            curator=self.curator,
        )
        others = self.train.n_users if side == "items" else self.train.n_items
        sums, variance = self._believable(part, noise, self._sums(side, np.ones((others, 1)))[:, 0], 1)
        covariates = self.pattern.covariates(side, counts, self.covariates)
        lanes = zip(sums.T, variance, strict=True)
        law, known = self.laws.of(part), counts.astype(np.float64)
        return np.column_stack([averages_of(lane, known, covariates, law, float(v)) for lane, v in lanes])

    def core(self) -> NDArray[np.float64]:
        """(k, k, E) W of predictions x_uᵀ·W·y_i, from Σ clamp(x)·x_u ⊗ y_i over all ratings with K-norm noise."""
        k = self.pattern.users.shape[1]
        by_users = self._sums("users", self.pattern.items)
        lanes = [self.pattern.users.T @ np.ascontiguousarray(each) for each in np.moveaxis(by_users, -1, 0)]
        sums = np.stack(lanes, axis=-1).reshape(1, k * k, -1)
        return self._coefficients(CORE, sums, self.pattern.of_pairs).reshape(k, k, -1)

    def factors(self, side: Side) -> NDArray[np.float64]:
        """(rows, k, E) coefficients of each row on the other side's features, from Σ clamp(x)·z with K-norm noise."""
        if side == "items":
            return self._coefficients(
                FACTORS[side], self._sums(side, self.pattern.users), self.pattern.of_items
            )
        return self._coefficients(FACTORS[side], self._sums(side, self.pattern.items), self.pattern.of_users)

    def _coefficients(self, part: str, sums: NDArray[np.float64], spectrum: Spectrum) -> NDArray[np.float64]:
        """(rows, k, E) coefficients from the clean sums (rows, k, E): adds noise to them and shrinks them."""
        rows, k, _ = sums.shape
        (noise,) = repeated_k_norm(
            part,
            (rows, k),
            repetitions=1,
            sensitivity=sensitivity.clamped_vectors(),
            epsilon=self.epsilons[part],
            curator=self.curator,
        )
        noisy, variance = self._believable(part, noise, sums, k)
        lanes = zip(np.moveaxis(noisy, -1, 0), variance, strict=True)
        found = [coefficients_of(lane, spectrum, self.laws.of(part), float(v)) for lane, v in lanes]
        return np.stack(found, axis=-1)

    def _sums(self, side: Side, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(rows, k, E) the clean sums Σ clamp(x)/B·z: see `kernels.clamped_sums`."""
        return clamped_sums(self.model, self._ratings[side], features, self.bound)

    @cached_property
    def _ratings(self) -> Mapping[Side, SideRatings]:
        """The ratings by the rows of each side, sorted once."""
        return {"items": by_item(self.train), "users": by_user(self.train)}

    def _believable(
        self, part: str, noise: Release, sums: NDArray[np.float64], dimension: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The noisy sums in stars, and (E,) the variance of the noise in each number."""
        unit = self.laws.of(part).star(self.bound)
        return unit * noise.added_to(sums), noise_variance(unit * noise.scale, dimension)


class PublicPattern(PatternAlgorithm):
    """r̂_ui = b_i + c_u + x_uᵀ·W·y_i + x_u·q_i + p_u·y_i, for neighbours that differ in the value of one rating.

        x_u, y_i   features of norm 1, from the singular vectors of who rated what (`Pattern`): they cost nothing
        b          from the average of all ratings, then from the sum of each item's residuals x
        c          from the sum of each user's residuals
        W          from Σ x·(x_u ⊗ y_i) over all ratings
        q_i, p_u   from Σ x·x_u over an item's ratings, then from Σ x·y_i over a user's ratings

    Each line fits the residuals x of the lines before it. Each step releases sums of residuals clamped to [−B, B]. A
    rating's value enters one of these sums and moves it by 2B·‖feature‖ at most, however many ratings there are.
    `shrunk_averages` turns the sums into estimates: it shrinks an average towards the prediction of a regression on
    log-counts and features, more strongly where there is more noise.

    ε is split so that the sum of the expected errors is least. These errors follow from ε and the pattern
    (`shares_of`). At a small ε, averages get nearly all of it. Factors get a part once rows have enough
    ratings.
    """

    title: ClassVar[str] = "Public pattern"
    about: ClassVar[str] = (
        "Averages and factors on features of who rated what, for neighbours under which this is public."
    )
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


class OwnPattern(PatternAlgorithm):
    """r̂_ui = b_i + p_u·(a, y_i, q_i). p_u is the user's own ridge regression on clean ratings:

        p_u = argmin Σ_j (r_uj − b_j − p·(a, y_j, q_j))² + w·‖p‖²

    b, q and y are as in `PublicPattern`: averages of items, coefficients on the features of users, and features of
    items (more of them here). The constant a makes room for the user's average. Nothing about users is released, so b
    and q share all of ε. *Joint* differential privacy: predictions use the target user's own ratings.
    """

    title: ClassVar[str] = "Public pattern, own ratings"
    about: ClassVar[str] = (
        "The public pattern for joint differential privacy: users solve for their own part of the "
        "model, without noise."
    )
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

    def cost(self, shape: Shape, grid: int) -> Cost:
        k, features = self.factors, max(self.own_features, self.factors)
        measured = self.measured_cost(shape, grid, features=features, passes=3 * k + 1)
        entries, parts = gram_entries(self.own_features + k + 1), len(groups(grid))
        own = parts * (shape.ratings + 10 * shape.users) * entries * 1.5e-9
        return measured + Cost(own, shape.rows * (self.own_features + k + 2) * LINE * parts)

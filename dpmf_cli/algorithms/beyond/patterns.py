"""Methods that shrink noisy sums of clamped residuals as far as their noise requires; two know who rated what.

Rows (users, or items) have coefficients c with the law N(m, τ²) and ratings x = c·z + e, where e has variance σ². The
release for a row is s = Σ x·z with noise of variance v in each coordinate; G = Σ z·zᵀ is known. Then

    E[c | s] = m + τ²·G·(τ²·G² + σ²·G + v·I)⁻¹·(s − G·m)
    Cov[c | s] = τ²·(σ²·G + v·I)·(τ²·G² + σ²·G + v·I)⁻¹

(Robinson 1991, best linear unbiased prediction). An average has z = 1 and G = n. Because τ and σ are public guesses
and v follows from ε, the weight of a sum follows a public rule. Where who rated what is public, the budget is split
by the errors that these formulas predict.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import svds

from dpmf_cli.algorithms.shared.averages import EffectsModel, sums_and_counts
from dpmf_cli.algorithms.shared.base import Arrays, Paper, PrivateAlgorithm, by_mode
from dpmf_cli.algorithms.shared.budget import AveragesBudget, Part, Ridge
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape, effects_cost, gram_entries
from dpmf_cli.algorithms.shared.factorization import OwnFactors, regress
from dpmf_cli.core.arrays import Doubles, Longs
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings, UserMajor
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.kernels.als import SideRatings, by_item, by_user
from dpmf_cli.kernels.covariance import with_fixed_signs
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model, move_factors, set_effects
from dpmf_cli.kernels.gradients import clamped_sums
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours

SMALL = 64
"""Patterns with at most this many users or items are decomposed densely."""

LEAST_SPREAD = 1e-3
"""The least deviation by which logarithms of counts are divided. Logarithms that are nearer together tell nothing."""

Spectrum = tuple[Doubles, Doubles]
"""Eigenvalues (rows, k), none negative, and eigenvectors (rows, k, k) of each row's Gram matrix."""


@dataclass(frozen=True)
class Pattern:
    """Who rated what, A (n_users, n_items) of 0 and 1, and features that follow from it.

    D_u and D_i are the diagonal matrices of counts. The leading k singular triples of D_u^−½·A·D_i^−½ = U·S·Vᵀ give

        users   rows of U·S, each divided by its norm
        items   rows of V·S, each divided by its norm

    A user or an item without ratings has features 0. Nothing here depends on a rating's value.

    rated    A by user; users (n_users, k), items (n_items, k)
    """

    rated: csr_array
    users: Doubles
    items: Doubles

    @classmethod
    def of(cls, pairs: UserMajor, k: int) -> "Pattern":
        """The pattern of all ratings, with k features. Features that a small matrix does not have are 0."""
        ones, shape = np.ones(len(pairs)), (pairs.n_users, pairs.n_items)
        rated = csr_array((ones, pairs.items, pairs.user_starts), shape=shape)
        counts = (pairs.user_counts, pairs.item_counts)
        by_user, by_item = (1 / np.sqrt(np.maximum(each, 1)) for each in counts)
        left, singular, right = _leading(diags_array(by_user) @ rated @ diags_array(by_item), k)
        return cls(rated, _unit_rows(left * singular), _unit_rows(right * singular))

    def first(self, k: int) -> "Pattern":
        """The same pattern with the first k features, divided by their norm again."""
        return Pattern(self.rated, _unit_rows(self.users[:, :k]), _unit_rows(self.items[:, :k]))

    def covariates(self, side: Side, counts: Longs, features: int) -> Doubles:
        """(rows, 2 + features) the covariates on which averages of a side are regressed.

        They are 1, the logarithm of the counts in units of its deviation, and the first features. For a row without
        ratings all but the 1 are 0, so its average is that of all rows.
        """
        rated = counts > 0
        logarithms = np.log1p(counts)
        known = logarithms[rated] if rated.any() else np.zeros(1)
        activity = (logarithms - known.mean()) / max(float(known.std()), LEAST_SPREAD)
        own = self.users if side == "users" else self.items
        return np.column_stack([np.ones(len(counts)), np.where(rated, activity, 0.0), own[:, :features]])

    @cached_property
    def _gram_of_users(self) -> Doubles:
        return _grams(self.rated, self.items)

    @cached_property
    def of_users(self) -> Spectrum:
        """The spectrum of Σ y_i·y_iᵀ over the items that each user rated."""
        return _spectrum(self._gram_of_users)

    @cached_property
    def of_items(self) -> Spectrum:
        """The spectrum of Σ x_u·x_uᵀ over the users who rated each item."""
        return _spectrum(_grams(self.rated.T.tocsr(), self.users))

    @cached_property
    def of_pairs(self) -> Spectrum:
        """The spectrum, with one row, of Σ z·zᵀ over all ratings, z = x_u ⊗ y_i: Σ_u x_u·x_uᵀ ⊗ Σ_i y_i·y_iᵀ."""
        k = self.users.shape[1]
        outer = (self.users[:, :, None] * self.users[:, None]).reshape(-1, k * k)
        both = (outer.T @ self._gram_of_users.reshape(-1, k * k)).reshape(k, k, k, k)
        return _spectrum(both.transpose(0, 2, 1, 3).reshape(1, k * k, k * k))


def _leading(matrix: csr_array, k: int) -> tuple[Doubles, Doubles, Doubles]:
    """U (n, k), S (k,), V (m, k) of the leading singular triples, the largest first; 0 if there are fewer than k."""
    rank = min(matrix.shape)
    if matrix.nnz == 0:  # Lanczos fails on a matrix of zeros
        return np.zeros((matrix.shape[0], k)), np.zeros(k), np.zeros((matrix.shape[1], k))
    if rank <= max(SMALL, 2 * k):
        left, singular, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        left, singular, right = svds(matrix, k, v0=np.cos(np.arange(rank)))  # any start, always the same
    order = np.argsort(-singular, kind="stable")[:k]
    signed = with_fixed_signs(right[order].T)
    turned = left[:, order] * np.sign(np.einsum("ij,ij->j", signed, right[order].T))
    padding = ((0, 0), (0, k - len(order)))
    return np.pad(turned, padding), np.pad(singular[order], padding[1]), np.pad(signed, padding)


def _unit_rows(rows: Doubles) -> Doubles:
    """Each row divided by its norm. Rows that are 0 up to rounding become 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 1e-9, rows / np.maximum(lengths, 1e-9), 0.0)


def _grams(rated: csr_array, features: Doubles) -> Doubles:
    """(rows, k, k) Σ z·zᵀ over the ratings of each row; z (k,) are the features of the other side."""
    k = features.shape[1]
    first, second = np.tril_indices(k)
    grams = np.empty((rated.shape[0], k, k))
    grams[:, first, second] = grams[:, second, first] = rated @ (features[:, first] * features[:, second])
    return grams


def _spectrum(grams: Doubles) -> Spectrum:
    values, vectors = np.linalg.eigh(grams)
    return np.maximum(values, 0), vectors


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

    def of_sums(self, gram: Doubles, noise: Doubles | float) -> Doubles:
        """The variance of s around G·m, for eigenvalues of G."""
        return np.maximum(self.of_rows * gram**2 + self.of_ratings * gram + noise, LEAST)

    def believed(self, gram: Doubles, noise: Doubles | float) -> Doubles:
        """The factor that multiplies a sum, for eigenvalues of G and noise of variance v."""
        return self.of_rows * gram / self.of_sums(gram, noise)

    def error(self, gram: Doubles, noise: float) -> Doubles:
        """The variance of a coefficient that is left after the estimate."""
        return self.of_rows * (self.of_ratings * gram + noise) / self.of_sums(gram, noise)


RIDGE = 5.0
"""The ridge of the regression of averages on covariates: the inverse of the prior variance of its coefficients."""


def averages_of(
    sums: Doubles, counts: Doubles, covariates: Doubles, law: Law, noise: Doubles | float
) -> Doubles:
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


def coefficients_of(sums: Doubles, spectrum: Spectrum, law: Law, noise: float) -> Doubles:
    """(rows, k) the coefficients of each row from `sums` (rows, k), with m = 0."""
    values, vectors = spectrum
    turned = np.einsum("rij,ri->rj", vectors, sums) * law.believed(values, noise)
    return np.asarray(np.einsum("rij,rj->ri", vectors, turned))


QUANTA = 50
"""Shares are integer multiples of 1/QUANTA, and none is 0."""

Predicted = Callable[[Doubles], Doubles]
"""The mean squared error that a part leaves, for each ε that the part may get."""

NOISES = np.geomspace(1e-6, 1e18, 121)
"""Variances of noise for which an error is computed. Between them it is interpolated."""


def interpolated(error: Callable[[float], float], scale: float, dimension: int) -> Predicted:
    """The error as a function of ε, from `error` as one of a variance of noise, which has `scale` at ε = 1."""
    known = [error(float(noise)) for noise in NOISES]

    def predicted(epsilons: Doubles) -> Doubles:
        variances = np.maximum(noise_variance(scale / epsilons, dimension), NOISES[0])
        return np.asarray(np.interp(np.log(variances), np.log(NOISES), known))

    return predicted


def noise_variance(scale: Doubles, dimension: int) -> Doubles:
    """(E,) the variance of a coordinate of K-norm noise in `dimension` dimensions: Laplace noise in one."""
    return np.asarray((dimension + 1) * scale**2)


UNKNOWN = 0.3
"""The prior variance, in stars², of the predictions of a regression on covariates."""


def of_averages(law: Law, rated: Longs, covariates: int, noise: float) -> float:
    """The error of averages, given the number of ratings `rated` of each row: what is left in a row's own average,
    plus the error of the regression on covariates."""
    counts = rated.astype(np.float64)
    own = float(counts @ law.error(counts, noise)) / max(float(counts.sum()), 1.0)
    weight = float((counts**2 / law.of_sums(counts, noise)).sum())
    return own + 1 / (1 / UNKNOWN + weight / covariates)


def of_coefficients(law: Law, gram: Doubles, ratings: int, noise: float) -> float:
    """The error of coefficients, averaged over all ratings: Σ tr(G·Cov)/n, from all eigenvalues of G."""
    values = gram[gram > 0]
    return float(values @ law.error(values, noise)) / max(ratings, 1)


def shares_of(parts: Mapping[str, Predicted], epsilon: float) -> dict[str, float]:
    """The share of each part: multiples of 1/QUANTA that sum to 1, with the least sum of errors.

    They are found by dynamic programming over the parts, because errors need not be convex: those of vectors, which
    noise drowns at small ε, are not.
    """
    errors = [predicted(np.arange(1, QUANTA + 1) / QUANTA * epsilon) for predicted in parts.values()]
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}  # by the number of quanta spent
    for part, of_part in enumerate(errors, start=1):
        before, best = best, {}
        for spent, (error, chosen) in before.items():
            for quanta in range(1, QUANTA - (len(errors) - part) - spent + 1):
                total = error + float(of_part[quanta - 1])
                if total < best.get(spent + quanta, (np.inf, ()))[0]:
                    best[spent + quanta] = total, (*chosen, quanta)
    return {name: chosen / QUANTA for name, chosen in zip(parts, best[QUANTA][1], strict=True)}


VISIT, SINGULAR = 4e-9, 6e-8
"""Seconds per rating and group of 16 lanes, for each factor in a prediction or feature in a sum; and per rating and
feature, for the singular vectors of who rated what."""


def counts_of(train: Ratings, side: Side) -> tuple[Longs, int]:
    """The number of ratings of each row of a side, and the number of the other side's rows."""
    return (train.item_counts, train.n_users) if side == "items" else (train.user_counts, train.n_items)


class Laws(StrictModel):
    """The variances assumed for each measured part: chosen on MovieLens 100K, for features of norm 1."""

    item_averages: Law = Law(of_rows=0.1, of_ratings=1.1)
    user_averages: Law = Law(of_rows=0.17, of_ratings=0.9)
    core: Law = Law(of_rows=0.02, of_ratings=0.8)
    item_factors: Law = Law(of_rows=0.015, of_ratings=0.8)
    user_factors: Law = Law(of_rows=0.03, of_ratings=0.8)

    def of(self, part: str) -> Law:
        law: Law = getattr(self, part.replace(" ", "_"))
        return law


class PatternAlgorithm(PrivateAlgorithm):
    """A method for neighbours that differ in the value of a rating, which uses in full who rated what, which is
    public.

    measured  the parts among which ε is split, besides the average of all ratings
    """

    paper = Paper.DPMF
    variants = by_mode(Neighbours.BOUNDED, corrected=None)
    averaged = False
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

    def begin(
        self,
        train: Ratings,
        pattern: Pattern,
        factors: tuple[Doubles, Doubles],
        epsilons: Epsilons,
        curator: Curator,
    ) -> "tuple[Measurements, Doubles]":
        """Measures the averages of all ratings and of items (n_items, E), for a model with these factors of users and
        items. Public predictions of the errors split what the first leaves of ε."""
        moves, epsilon = sensitivity.rating_sums(train.scale), self.global_share * epsilons
        noise = laplace("global average", (), sensitivity=moves, epsilon=epsilon, curator=curator)
        overall = noise.added_to(np.asarray(train.values.sum(dtype=np.float64))) / max(len(train), 1)
        overall = np.clip(overall, train.scale.minimum, train.scale.maximum)
        rest, predicted = (1 - self.global_share) * epsilons, self.predicted(train, pattern)
        shares = [shares_of(predicted, float(epsilon)) for epsilon in rest]
        split = {part: np.array([each[part] for each in shares]) * rest for part in self.measured}
        no_effects = np.zeros((train.n_users, len(epsilons)))
        model = factor_model(*factors, no_effects, np.tile(overall, (train.n_items, 1)))
        measured = Measurements(self, train, pattern, model, split, curator)
        items = np.clip(overall + measured.averages("items"), train.scale.minimum, train.scale.maximum)
        set_effects(model, "items", items)
        return measured, items

    def predicted(self, train: Ratings, pattern: Pattern) -> dict[str, Predicted]:
        """The predicted error of each part, as a function of the ε that the part gets."""
        k, covariates, n, found = self.factors, self.covariates + 2, len(train), {}
        kinds: dict[str, tuple[int, Callable[[Law, float], float]]] = {
            "item averages": (1, lambda law, v: of_averages(law, train.item_counts, covariates, v)),
            "user averages": (1, lambda law, v: of_averages(law, train.user_counts, covariates, v)),
            "core": (k * k, lambda law, v: of_coefficients(law, pattern.of_pairs[0], n, v)),
            "item factors": (k, lambda law, v: of_coefficients(law, pattern.of_items[0], n, v)),
            "user factors": (k, lambda law, v: of_coefficients(law, pattern.of_users[0], n, v)),
        }
        for part in self.measured:
            law, (dimension, error) = self.laws.of(part), kinds[part]
            scale = sensitivity.clamped_vectors().value * law.star(self.clamp)
            found[part] = interpolated(partial(error, law), scale, dimension)
        return found

    def measured_cost(self, shape: Shape, grid: int, *, features: int, passes: int) -> Cost:
        """The cost of measuring. `passes` counts a rating's factors and features in all passes together."""
        k = self.factors
        visits = shape.ratings * passes * len(groups(grid)) * VISIT
        solved = shape.rows * k * k * (1e-7 + grid * 2e-8)
        held = shape.rows * k * (8.0 * k + 40.0 * grid) + shape.ratings * 60.0
        return Cost(visits + solved + shape.ratings * features * SINGULAR, held)


@dataclass(frozen=True)
class Measurements:
    """The steps of a fit, each of which measures the residuals of the model that the steps before it have released.

    epsilons  the ε (E,) of each part by its name
    """

    entry: PatternAlgorithm
    train: Ratings
    pattern: Pattern
    model: FactorModel
    epsilons: Mapping[str, Epsilons]
    curator: Curator

    def averages(self, side: Side) -> Doubles:
        """(rows, E) the updates of a side's averages: `averages_of` Σ clamp(x) with Laplace noise."""
        part, (counts, others) = f"{side[:-1]} averages", counts_of(self.train, side)
        moves, epsilon = sensitivity.clamped_sums(), self.epsilons[part]
        noise = laplace(part, counts.shape, sensitivity=moves, epsilon=epsilon, curator=self.curator)
        law, known = self.entry.laws.of(part), counts.astype(np.float64)
        covariates = self.pattern.covariates(side, counts, self.entry.covariates)
        unit = law.star(self.entry.clamp)
        sums = unit * noise.added_to(self._sums(side, np.ones((others, 1)))[:, 0])
        lanes = zip(sums.T, noise_variance(unit * noise.scale, 1), strict=True)
        return np.column_stack([averages_of(lane, known, covariates, law, float(v)) for lane, v in lanes])

    def core(self) -> Doubles:
        """(k, k, E) W of predictions x_uᵀ·W·y_i, from Σ clamp(x)·x_u ⊗ y_i over all ratings with K-norm noise."""
        k = self.pattern.users.shape[1]
        by_users = self._sums("users", self.pattern.items)
        lanes = [self.pattern.users.T @ np.ascontiguousarray(each) for each in np.moveaxis(by_users, -1, 0)]
        sums = np.stack(lanes, axis=-1).reshape(1, k * k, -1)
        return self._coefficients("core", sums, self.pattern.of_pairs).reshape(k, k, -1)

    def factors(self, side: Side) -> Doubles:
        """(rows, k, E) coefficients of each row on the other side's features, from Σ clamp(x)·z with K-norm noise."""
        pattern = self.pattern
        of_items = pattern.users, pattern.of_items
        others, spectrum = of_items if side == "items" else (pattern.items, pattern.of_users)
        return self._coefficients(f"{side[:-1]} factors", self._sums(side, others), spectrum)

    def _coefficients(self, part: str, sums: Doubles, spectrum: Spectrum) -> Doubles:
        """(rows, k, E) coefficients from the clean sums (rows, k, E): adds noise to them and shrinks them."""
        rows, k, _ = sums.shape
        moves, epsilon, curator = sensitivity.clamped_vectors(), self.epsilons[part], self.curator
        draw = partial(repeated_k_norm, part, (rows, k), repetitions=1, curator=curator)
        (noise,) = draw(sensitivity=moves, epsilon=epsilon)
        law = self.entry.laws.of(part)
        unit = law.star(self.entry.clamp)
        noisy, variances = unit * noise.added_to(sums), noise_variance(unit * noise.scale, k)
        lanes = zip(np.moveaxis(noisy, -1, 0), variances, strict=True)
        return np.stack([coefficients_of(lane, spectrum, law, float(v)) for lane, v in lanes], axis=-1)

    def _sums(self, side: Side, features: Doubles) -> Doubles:
        """(rows, k, E) the clean sums Σ clamp(x)/B·z: see `kernels.gradients.clamped_sums`."""
        return clamped_sums(self.model, self._ratings[side], features, self.entry.clamp)

    @cached_property
    def _ratings(self) -> Mapping[Side, SideRatings]:
        return {"items": by_item(self.train), "users": by_user(self.train)}


class PublicPattern(PatternAlgorithm):
    """r̂_ui = b_i + c_u + x_uᵀ·W·y_i + x_u·q_i + p_u·y_i, for neighbours that differ in the value of one rating.

        x_u, y_i   features of norm 1, from the singular vectors of who rated what (`Pattern`): they cost nothing
        b          from the average of all ratings, then from the sum of each item's residuals x
        c          from the sum of each user's residuals
        W          from Σ x·(x_u ⊗ y_i) over all ratings
        q_i, p_u   from Σ x·x_u over an item's ratings, then from Σ x·y_i over a user's ratings

    Each line fits the residuals x of the lines before it, and releases sums of them, clamped to [−B, B]. A rating's
    value enters one of these sums and moves it by 2B·‖feature‖ at most, however many ratings there are. `averages_of`
    turns the sums into estimates: it shrinks an average to the prediction of a regression on log-counts and features,
    more strongly where there is more noise.

    ε is split so that the sum of the expected errors, which follow from ε and the pattern, is least (`shares_of`). At
    a small ε, averages get nearly all of it, and factors get a part once rows have enough ratings.
    """

    title = "Public pattern"
    about = "Averages and factors on features of who rated what, for neighbours under which this is public."
    measured = ("item averages", "user averages", "core", "item factors", "user factors")

    algorithm: Literal["public_pattern"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        pattern, k = Pattern.of(train, self.factors), self.factors
        users = np.hstack([np.zeros((train.n_users, k)), pattern.users])
        items = np.hstack([pattern.items, np.zeros((train.n_items, k))])
        measured, _ = self.begin(train, pattern, (users, items), epsilons, curator)
        model, first, second = measured.model, slice(None, k), slice(k, None)
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
    items (more of them here). The constant a makes room for the user's average. Because nothing about users is
    released, b and q share all of ε. *Joint* differential privacy: predictions use the target user's own ratings.
    """

    title = "Public pattern, own ratings"
    about = (
        "The public pattern for joint differential privacy: users solve for their own part of the model, "
        "without noise."
    )
    joint = True
    measured = ("item averages", "item factors")

    algorithm: Literal["own_pattern"]
    own_features: int = Field(24, ge=1, le=64, description="how many features y_i has; y_i has norm 1")
    own_average: float = Field(1.3, ge=0, le=100, description="a, where y_i has norm 1")
    own_ridge: Ridge = Field(5.0, description="w, the ridge of a user's own regression")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        whole = Pattern.of(train, max(self.own_features, self.factors))
        pattern, own = whole.first(self.factors), whole.first(self.own_features)
        of_users, nothing = np.zeros_like(pattern.users), np.zeros_like(pattern.items)
        measured, averages = self.begin(train, pattern, (of_users, nothing), epsilons, curator)
        features = np.hstack([np.full((train.n_items, 1), self.own_average), own.items, nothing])
        released = factor_model(features[:0], features, np.zeros((0, len(epsilons))), averages)
        move_factors(released, "items", slice(-self.factors, None), measured.factors("items"))
        return OwnFactors(self, released.without_users(), {}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        no_effects = np.zeros((own.n_users, items.published["items"].shape[2]))
        return regress(items.with_users(no_effects), own, self.own_ridge)

    def cost(self, shape: Shape, grid: int) -> Cost:
        k, features = self.factors, max(self.own_features, self.factors)
        measured = self.measured_cost(shape, grid, features=features, passes=3 * k + 1)
        entries, parts = gram_entries(self.own_features + k + 1), len(groups(grid))
        own = parts * (shape.ratings + 10 * shape.users) * entries * 1.5e-9
        return measured + Cost(own, shape.rows * (self.own_features + k + 2) * LINE * parts)


class ShrunkAverages(PrivateAlgorithm):
    """r̂_ui = b_i + c_u, for neighbours that differ in the presence of one rating.

        GAvg   from Σ (r − middle of the scale)/(half its width) over all ratings
        b_i    = GAvg + the shrunk average from Σ clamp(r_ui − GAvg)/B over the item's ratings
        c_u    = the shrunk average from Σ clamp(r_ui − b_i)/B over the user's ratings

    Every sum is released with its count, as Σ (1 + x′)/2 and Σ (1 − x′)/2, where x′ are the terms of the sum. A
    rating moves the two numbers by 1 in total, so sum and count together cost the step's ε once, whereas Friedman et
    al.'s algorithms halve ε between the two. `Law` shrinks an average to the prediction of a regression on the
    logarithms of noisy counts, more strongly where sum and count have more noise.
    """

    title = "Shrunk averages"
    about = "Averages for neighbours that differ in the presence of a rating, shrunk as far as their noise requires."
    paper = Paper.DPMF
    variants = by_mode(Neighbours.UNBOUNDED, corrected=None)
    averaged = False

    algorithm: Literal["shrunk_averages"]
    neighbours: Neighbours = Neighbours.UNBOUNDED
    mode: Mode = Mode.CORRECTED
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.47, user_averages=0.51)
    clamp: float = Field(1.5, ge=1e-3, le=4, description="B: residuals are clamped to ±B, in stars")
    of_items: Law = Law(of_rows=0.2, of_ratings=1.1)
    of_users: Law = Law(of_rows=0.17, of_ratings=0.9)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        scale, grid, half = train.scale, len(epsilons), train.scale.width / 2
        charged = {part: self.budget.fractions[part] * epsilons for part in Part}
        everything = np.full((1, grid), (train.values.astype(np.float64) - scale.middle).sum() / half)
        halves = halves_of(everything, np.array([len(train)]))
        sums, counts, _ = sums_and_counts("global average", halves, charged[Part.OVERALL], curator)
        overall = scale.middle + half * np.clip(sums / np.maximum(counts, 1), -1, 1)

        items, nothing = np.repeat(overall, train.n_items, axis=0), np.zeros((train.n_users, grid))
        model = factor_model(np.zeros((train.n_users, 0)), np.zeros((train.n_items, 0)), nothing, items)
        items += self.believed(model, "items", train, charged[Part.ITEMS], curator)
        np.clip(items, scale.minimum, scale.maximum, out=items)
        set_effects(model, "items", items)
        return EffectsModel(items, self.believed(model, "users", train, charged[Part.USERS], curator))

    def believed(
        self, model: FactorModel, side: Side, train: Ratings, epsilons: Epsilons, curator: Curator
    ) -> Doubles:
        """(rows, E) the shrunk average of a model's residuals in each row of a side."""
        counts, others = counts_of(train, side)
        law, ratings = (self.of_items, by_item) if side == "items" else (self.of_users, by_user)
        sums = clamped_sums(model, ratings(train), np.ones((others, 1)), self.clamp)[:, 0]
        part, halves = f"{side[:-1]} averages", halves_of(sums, counts)
        noisy, numbers, deviation = sums_and_counts(part, halves, epsilons, curator)
        star, found = law.star(self.clamp), []
        for own, number, variance in zip(noisy.T, numbers.T, deviation**2, strict=True):
            # A row whose count may be all noise has only the covariate 1: it is shrunk to the average of all rows.
            n, reach = np.maximum(number, 0), np.sqrt(variance + 1)
            logarithms = np.log(np.hypot(n, reach))
            activity = (logarithms - logarithms.mean()) / max(float(logarithms.std()), LEAST_SPREAD)
            covariates = np.column_stack([np.ones(len(n)), activity * n / (n + reach)])
            found.append(averages_of(star * own, n, covariates, law, (star**2 + law.of_rows) * variance))
        return np.column_stack(found)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)


def halves_of(sums: Doubles, counts: Longs) -> Doubles:
    """(rows, 2, E) Σ (1 + x′)/2 and Σ (1 − x′)/2, from sums (rows, E) of x′ and their counts (rows,)."""
    known = counts[:, None].astype(np.float64)
    return np.stack([known + sums, known - sums], axis=1) / 2

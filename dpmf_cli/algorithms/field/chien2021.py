"""Alternating minimisation: each user solves for that user's own factors, and items learn from noisy sums over users.

Chien et al. 2021, with the weights of Krichene et al. 2023.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpmf_cli.algorithms.beyond.learned_features import Items, OwnRegression, of_users
from dpmf_cli.algorithms.shared import base, cost as costs
from dpmf_cli.algorithms.shared.averages import origin_of_sums
from dpmf_cli.algorithms.shared.base import Arrays, ByMode, Choices, Paper, PrivateAlgorithm, Where
from dpmf_cli.algorithms.shared.budget import Delta, EffectsParameters, Fractions, Ridge, Size, stabilised
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import (
    InitialFactors,
    OwnFactors,
    at_most,
    public_features,
    regress,
    start_model,
)
from dpmf_cli.algorithms.shared.theta import Accounting, Measurer, NoiseKind, certified_gradients, rates_under
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.lane_groups import groups, padded_grid
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels import normal_equations as equations
from dpmf_cli.kernels.als import by_item
from dpmf_cli.kernels.factors import FactorModel, set_items
from dpmf_cli.kernels.gradients import descend_items
from dpmf_cli.kernels.sums import residual_sums_by_user
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours

ITEM_ENTRY, EQUATION_ENTRY = 2.4e-9, 3e-8
"""Seconds per rating, entry of a row's Gram matrix and group of 16 lanes, weighted in doubles; and per entry of one
item's Gram matrix and ε, to add noise, round and unpack."""


class Selection(StrEnum):
    """The ratings of a user from which the items learn.

    UNIFORM   k ratings, chosen at random
    TAIL      the k ratings of the items with the lowest noisy counts
    WEIGHTED  all ratings, with weights ∝ (noisy count)^−μ whose squares sum to k: Krichene et al. 2023, algorithm 2
    """

    UNIFORM = "uniform"
    TAIL = "tail"
    WEIGHTED = "weighted"


Learning = Callable[[int, FactorModel, equations.UserParts], None]
"""Moves the items of a model in round t = 1, 2, …, by what users add to them."""


class ItemAlternation(PrivateAlgorithm):
    """Measures a noisy mean m and noisy counts n̂_i from k ratings of each user. Then, with the weights w_ui of the
    `selection`:

        T times:  p_u ← argmin Σ_i (x_ui − p·q_i)² + λ_u‖p‖², over all of the user's ratings;  shortened to ‖p_u‖ ≤ Γ
                  Q ← from noisy sums over users; a subclass says how
        each user solves for p_u once more

    x_ui = r_ui − m; with `centring: users`, the user's own mean of r_ui − m is subtracted too. A prediction is
    m + p_u·q_i plus that own mean. It uses the target user's own ratings (‡). The catalogue of items is public.

    With `averages`, which is not in the paper, the averages of items and the weights W_i of `own_regression` without
    learned features stand for m and, as √k·W_i, for n̂_i. The first two columns of Q start as the items' popularity
    and quality, which follow from them, and the ridges of items draw Q to (popularity, quality, 0, …) instead of 0.
    """

    paper = Paper.CHIEN
    variants = base.in_both_modes(Neighbours.USER)
    joint = True
    only: ClassVar[ByMode] = {Mode.CORRECTED: ("averages",)}
    counts_users = Where(lambda entry: entry.averages is not None, "with `averages`")

    neighbours: Neighbours = Neighbours.USER
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")
    factors: int = Field(6, ge=1, le=64, description="d")
    iterations: int = Field(4, ge=1, le=1000, description="T")
    initial_factors: InitialFactors = InitialFactors(scale=0.3)
    centring: Literal["overall", "users"] = Field(
        "users",
        description="subtracted from ratings: the noisy mean; with `users` each user's own mean too (β_u)",
    )
    selection: Selection = Field(Selection.WEIGHTED, description="which of a user's ratings items learn from")
    most_ratings: int = Field(100, ge=1, le=10_000, description="k")
    weight_exponent: float = Field(0.12, ge=0, le=2, description="μ, for `selection: weighted`")
    user_norm: Size = Field(0.6, description="Γ")
    user_ridge: Ridge = Field(
        3.0, description="λ_u of a user's own regression; with less, users with few ratings cannot be solved"
    )
    effects: EffectsParameters = EffectsParameters(beta_u=16)
    averages: float | None = Field(
        None,
        ge=LEAST_SHARE,
        le=1 - LEAST_SHARE,
        exclude_if=lambda share: share is None,
        description="the fraction of μ² for averages of items, instead of `centre` and `counts` of the budget; "
        "without it ratings are centred by one mean, as in the paper",
    )
    budget: Fractions

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (({}, {"averages": 0.7}),) if mode is Mode.CORRECTED else ()

    @property
    def accounting(self) -> Accounting:
        """The accounting of θ, exact in both modes."""
        return Accounting(NoiseKind.GAUSSIAN, Mode.CORRECTED, self.fractions, self.delta)

    @property
    def fractions(self) -> dict[str, float]:
        """The fractions of θ by measurement. That of `averages` is what makes them the fraction of μ², a sum of
        squares, that they are to get."""
        fractions = self.budget.fractions
        if self.averages is None:
            return fractions
        fractions = {name: part for name, part in fractions.items() if name not in ("centre", "counts")}
        rest = math.hypot(*fractions.values())
        return fractions | {"averages": rest * math.sqrt(self.averages / (1 - self.averages))}

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        measurer = Measurer(self.accounting, self.measurements, epsilons, curator)
        kept = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        if self.averages is None:
            centre = np.tile(self.measured_centre(kept, measurer), (train.n_items, 1))
            moves, features = sensitivity.sampled_counts(self.most_ratings), np.zeros((train.n_items, 0, 1))
            of_counts = measurer.noise("counts", "item counts", (train.n_items,), moves)
            counts = np.maximum(of_counts.added_to(kept.item_counts), 1)
        else:
            averages = self.measured_averages(self.averages, train, epsilons, curator)
            centre, counts = averages.base, np.maximum(math.sqrt(self.most_ratings) * averages.weight, 1)
            features = np.stack([averages.popularity, averages.quality], axis=1)[:, : self.factors]
        learned = kept if self.selection is Selection.UNIFORM else train
        weights = self.weights(learned, counts)
        parts = equations.UserParts(learned, by_item(learned), weights, self.residuals)
        model = self.started(train, streams, self.own_means(train, centre), centre)
        start = model.published["items"][:, :-1].astype(np.float64)
        known, towards = features.shape[1], np.zeros_like(start)
        start[:, :known] = towards[:, :known] = self.initial_factors.scale * features
        set_items(model, slice(None), start)
        learn_items = self.learning(train, counts, towards, measurer, streams)
        for t in range(1, self.iterations + 1):
            regress(model, train, self.user_ridge)
            equations.shorten_users(model, self.user_norm)
            learn_items(t, model, parts)
        return OwnFactors(self, model.without_users(), {}, train)

    def started(self, train: Ratings, streams: Streams, *effects: Doubles) -> FactorModel:
        """The model before the first round, with effects of users and items."""
        return start_model(train, self, streams, *effects)

    @property
    def measurements(self) -> Mapping[str, int]:
        """The number of noise draws of each measurement of the budget."""
        return {"centre": 2, "counts": 1}

    @property
    @abstractmethod
    def residuals(self) -> equations.Residuals:
        """The residuals from which items learn, and how they are clipped."""

    @abstractmethod
    def learning(
        self, train: Ratings, counts: Doubles, towards: Doubles, measurer: Measurer, streams: Streams
    ) -> Learning:
        """How the items learn; `counts` (n_items, E) are n̂, at least 1, and a ridge draws Q to `towards` (n_items, d,
        E)."""

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """The model of Q with each user's own mean and p_u."""
        centre = items.published["items"][:, -1].astype(np.float64)
        return regress(items.with_users(self.own_means(own, centre)), own, self.user_ridge)

    def measured_averages(self, share: float, train: Ratings, epsilons: Epsilons, curator: Curator) -> Items:
        """The items of `own_regression` before it learns, for the fraction `share` of μ²."""
        of = OwnRegression(algorithm="own_regression", neighbours=self.neighbours, delta=self.delta)
        weights, nothing = 1 / np.sqrt(np.maximum(train.user_counts, 1)), np.zeros((train.n_items, 0))
        return of_users(of, train, weights, nothing, epsilons, np.full(len(epsilons), 1 - share), curator)

    def measured_centre(self, kept: Ratings, measurer: Measurer) -> Doubles:
        """(E,) m: the noisy sum of ratings divided by their noisy number, clamped to the scale.

        Published mode scales the noise of the sum to √k·r_max, and that of the number to 1.
        """
        k, scale, origin = self.most_ratings, kept.scale, origin_of_sums(self.mode, kept.scale)
        largest = max(abs(scale.minimum - origin), abs(scale.maximum - origin))

        def noisy(step: str, clean: float, largest: float, published: float) -> Doubles:
            true, stated = (
                sensitivity.sampled_total(k, largest),
                sensitivity.published_sampled_total(published),
            )
            return measurer.noise("centre", step, (), self.calibrated(true, stated)).added_to(clean)

        total = (kept.values.astype(np.float64) - origin).sum()
        total = noisy("global sum", total, largest, math.sqrt(k) * largest)
        count = noisy("global count", len(kept), 1.0, 1.0)
        return np.clip(origin + total / np.maximum(count, 1), scale.minimum, scale.maximum)

    def own_means(self, own: Ratings, centre: Doubles) -> Doubles:
        """(n_users, E) r̄_u = Σ_i (r_ui − centre_i)/(c_u + β_u), or 0 if users are not centred. Not released."""
        nothing = np.zeros(centre.shape[1])
        if self.centring == "overall":
            return np.tile(nothing, (own.n_users, 1))
        counts = own.user_counts[:, None].astype(np.float64)
        sums = residual_sums_by_user(own.users, own.items, own.values, centre, own.n_users)[:-1]
        return stabilised(sums, counts, self.effects.beta_u, nothing)

    def weights(self, learned: Ratings, counts: Doubles) -> equations.RatingWeights:
        """w_ui, with Σ_i w_ui² ≤ k for each user."""
        every = np.ones((learned.n_users, counts.shape[1]))
        if self.selection is Selection.WEIGHTED:
            weights = equations.RatingWeights(every, counts**-self.weight_exponent)
            squares = equations.squared_weights(learned, weights)
            parts = np.sqrt(self.most_ratings / np.where(squares > 0, squares, np.inf))
            return replace(weights, users=parts)
        weights = equations.RatingWeights(every, np.ones_like(counts))
        if self.selection is Selection.UNIFORM:
            return weights
        ranks = np.argsort(np.argsort(counts, axis=0, kind="stable"), axis=0).astype(np.float64)
        return replace(weights, ranks=ranks, last=equations.last_ranks(learned, ranks, self.most_ratings))

    def users_cost(self, shape: Shape, grid: int, times: int) -> Cost:
        """The cost of solving users `times` times and of holding factors, weights, and the ratings by item."""
        parts, d, n_groups = padded_grid(grid) / 16, self.factors, len(groups(grid))
        rows_solved = shape.ratings + costs.ROW_IN_RATINGS * shape.users
        solved = times * parts * rows_solved * costs.gram_entries(d) * costs.SOLVED_ENTRY
        rows = shape.rows * (d + 5) * costs.LINE * n_groups
        far = (costs.fetched(shape.items, d, times * shape.ratings * n_groups),)
        return Cost(solved + 2e-7 * shape.ratings, rows + 60.0 * shape.ratings, far)


EIGEN_ENTRY = 4e-9
"""Seconds per item and ε, times d³, for the eigenvectors of its Gram matrix."""


class EquationsBudget(Fractions):
    """Fractions of θ: for the global mean, the items' counts, all Gram matrices, and all right-hand sides."""

    centre: float = Field(0.015, gt=0, lt=1)
    counts: float = Field(0.08, gt=0, lt=1)
    grams: float = Field(0.2, gt=0, lt=1)
    right_sides: float = Field(0.705, gt=0, lt=1)


class PrivateAlternatingLeastSquares(ItemAlternation):
    """In each of T steps, once the users are solved:

        A_i = Σ_u w_ui·p_u·p_uᵀ + symmetric N(0, (σ₁Γ²)²), projected to matrices without negative eigenvalues
        b_i = Σ_u w_ui·x̃_ui·p_u + N(0, (σ₂ΓΓ_M)²)
        q_i ← (A_i + (λ·f_i + κ·s)·I)⁻¹·b_i,    f_i ∝ (n̂_i + 1)^ν, s = σ₁Γ²√d

    Corrected, x̃ is x clipped to ±Γ_M. As published (the public code), x̃ is x, and the noise is scaled for Γ_M = 1.
    Since a centred rating is within r_max − r_min, the provable ε is finite all the same. κ makes the ridge grow with
    the noise by a public rule. The paper chooses λ anew for each ε instead.

    With `item_features` φ, which are public, Q also has to explain the items' features F: the problem of an item
    gains φ·‖F_i − W·q_i‖², where W ← argmin Σ_i ‖F_i − W·q_i‖² + ‖W‖², and Q starts from the singular vectors of F.
    What that adds to A_i is added before the projection. This is collective factorisation (Curmei et al. 2023, by
    its abstract). F costs no ε, and W follows from F and Q.
    """

    title = "DPALS"
    about = "DPALS: private alternating least squares. Chien, Jain, Krichene, Rendle, Song, Thakurta and Zhang 2021."
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4}
    only: ClassVar[ByMode] = {Mode.CORRECTED: ("averages", "rating_clip")}

    algorithm: Literal["dpals"]
    rating_clip: Size = Field(0.85, description="Γ_M, corrected")
    item_ridge: float = Field(10.0, ge=1e-3, le=1e6, description="λ")
    frequency_exponent: float = Field(
        0.75,
        ge=0,
        le=1,
        description="ν: items with more ratings have a larger ridge; its mean over ratings is λ",
    )
    noise_ridge: float = Field(1.0, ge=0, le=1e6, description="κ")
    item_features: float | None = Field(
        None,
        gt=0,
        le=1e6,
        exclude_if=lambda weight: weight is None,
        description="φ: the weight of the public features of items, which the data set must have "
        "(`item_features: true`); without it they are not used",
    )
    budget: EquationsBudget = EquationsBudget()

    @property
    def measurements(self) -> Mapping[str, int]:
        return {**super().measurements, "grams": self.iterations, "right_sides": self.iterations}

    @property
    def residuals(self) -> equations.Residuals:
        return equations.Residuals(self.rating_clip) if self.mode is Mode.CORRECTED else equations.Residuals()

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (*super().choices(mode), ({}, {"item_features": 1.0}))

    def started(self, train: Ratings, streams: Streams, *effects: Doubles) -> FactorModel:
        model = super().started(train, streams, *effects)
        if self.item_features is not None:
            left, values, _ = np.linalg.svd(public_features(self, train), full_matrices=False)
            start = model.published["items"][:, :-1].astype(np.float64)
            known = left[:, : self.factors] * values[: self.factors]
            start[:, : known.shape[1]] = (known * (self.initial_factors.scale / max(known.std(), 1e-12)))[
                ..., None
            ]
            set_items(model, slice(None), start)
        return model

    def learning(
        self, train: Ratings, counts: Doubles, towards: Doubles, measurer: Measurer, streams: Streams
    ) -> Learning:
        k, d, norm = self.most_ratings, self.factors, self.user_norm
        public, weight = public_features(self, train), self.item_features
        side_moves = sensitivity.item_right_sides(k, norm, self.rating_clip)
        if self.mode is Mode.PUBLISHED:
            true = sensitivity.centred_right_sides(k, norm, train.scale)
            side_moves = self.calibrated(true, sensitivity.published_right_sides(k, norm))
        entries, noise = d * (d + 1) // 2, measurer.noise
        # f_i, with mean 1 over the ratings as counted with noise
        powers = (counts + 1) ** self.frequency_exponent
        by_count = self.item_ridge * (powers * (counts.sum(axis=0) / (counts * powers).sum(axis=0)))
        at_once = max(1, equations.HELD // (entries * by_count.shape[1]))

        def solve_items(t: int, model: FactorModel, parts: equations.UserParts) -> None:
            """Q ← the solutions of noisy normal equations, blocks of items one after the other."""
            of_grams = noise("grams", f"grams {t}", (train.n_items, entries), sensitivity.item_grams(k, norm))
            of_sides = noise("right_sides", f"right sides {t}", (train.n_items, d), side_moves)
            ridge = by_count + self.noise_ridge * np.sqrt(d) * of_grams.scale
            if weight is not None:
                q = np.moveaxis(model.published["items"][:, :-1].astype(np.float64), -1, 0)
                w = np.linalg.solve(
                    q.swapaxes(1, 2) @ q + np.eye(d), q.swapaxes(1, 2) @ public
                )  # (E, d, features)
                explaining, explained = weight * w @ w.swapaxes(1, 2), weight * public @ w.swapaxes(1, 2)
            for first in range(0, train.n_items, at_once):
                items = slice(first, min(first + at_once, train.n_items))
                grams, sides = equations.item_equations(model, parts, items)
                now_grams, of_grams = of_grams.split(len(grams))
                now_sides, of_sides = of_sides.split(len(grams))
                grams, sides = now_grams.added_to(equations.isometric(grams, d)), now_sides.added_to(sides)
                whole = equations.whole(grams, d)
                if weight is not None:
                    whole, sides = whole + explaining, sides + np.moveaxis(explained[:, items], 0, -1)
                pulled = sides + ridge[items, None] * towards[items]
                set_items(model, items, solved(whole, pulled, ridge[items]))

        return solve_items

    def cost(self, shape: Shape, grid: int) -> Cost:
        times, parts, d = self.iterations, padded_grid(grid) / 16, self.factors
        summed = times * parts * shape.ratings * costs.gram_entries(d) * ITEM_ENTRY
        solutions = times * grid * shape.items * (d**3 * EIGEN_ENTRY + costs.gram_entries(d) * EQUATION_ENTRY)
        held = 24.0 * shape.items * costs.gram_entries(d) + 48.0 * equations.HELD
        far = (costs.fetched(shape.users, d, times * shape.ratings * len(groups(grid))),)
        return self.users_cost(shape, grid, times + 1) + Cost(summed + solutions, held, far)


def solved(grams: Doubles, sides: Doubles, ridge: Doubles) -> Doubles:
    """(n, d, E) (A⁺ + ridge·I)⁻¹·b, where A⁺ is the nearest matrix without negative eigenvalues.

    grams (n, E, d, d), sides (n, d, E), ridge (n, E)
    """
    values, vectors = np.linalg.eigh(grams)
    rotated = np.matmul(np.moveaxis(sides, 1, 2)[..., None, :], vectors)[..., 0, :]
    scaled = rotated / (np.maximum(values, 0) + ridge[..., None])
    return np.moveaxis(np.matmul(vectors, scaled[..., None])[..., 0], 2, 1)


FEW = 1000
"""Up to this many users, the learning rate is as given; it falls with more. The number of users is public."""


class ItemGradientsBudget(Fractions):
    """Fractions of θ: for the global mean, the items' counts, and the gradients."""

    centre: float = Field(0.015, gt=0, lt=1)
    counts: float = Field(0.15, gt=0, lt=1)
    gradients: float = Field(0.835, gt=0, lt=1)


class PrivateAlternatingMinimization(ItemAlternation):
    """In each of T rounds, once the users are solved, `steps` steps follow, each on a sample that has each user with
    probability γ:

        Q ← Q + η(Σ_u clip_C((w_ui·(x_ui − p_u·q_i)·p_u)_i) + N(0, (C·σ)²))/γ − η·λ·Q

    An accountant certifies σ for all steps together with the mean and the counts. η is lowered for more than 1000
    users, and where the noise of all steps would add up to more than `spread` in a coordinate of Q. Published and
    corrected mode differ only in the noise of the mean m. The public code, whose rates may adapt, has batches of a
    fixed size and charges for them as for samples.
    """

    title = "DPAM"
    about = "DPAM: private alternating minimisation by noisy gradients. The public code of Chien et al. 2021."
    counts_users = True
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 2, "steps": 3}

    algorithm: Literal["dpam"]
    iterations: int = Field(12, ge=1, le=1000, description="T")
    factors: int = Field(2, ge=1, le=64, description="d")
    user_norm: Size = Field(1.5, description="Γ")
    initial_factors: InitialFactors = InitialFactors(scale=0.05)
    steps: int = Field(3, ge=1, le=10_000, description="steps in each round")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="γ, the fraction of the users in a step")
    clip: Size = Field(5.0, description="C: the most that a user adds to a gradient, in L2 norm")
    learning_rate: float = Field(
        0.01, gt=0, le=10, description="η, for up to 1000 users; it is 1000·η/n for n users, if n is larger"
    )
    item_ridge: float = Field(3.0, ge=0, description="λ; η·λ is 1 at most")
    spread: float = Field(
        0.2,
        gt=0,
        le=100,
        description="the largest standard deviation that noise may have in a coordinate of Q",
    )
    budget: ItemGradientsBudget = ItemGradientsBudget()

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (*super().choices(mode), base.SAMPLED)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
        self.refuse_steps_that_diverge(self.learning_rate, "item_ridge")
        return self

    @property
    def residuals(self) -> equations.Residuals:
        return equations.Residuals(after_factors=True, vector=self.clip)

    def learning(
        self, train: Ratings, counts: Doubles, towards: Doubles, measurer: Measurer, streams: Streams
    ) -> Learning:
        steps = self.iterations * self.steps
        beside = math.hypot(*(part for name, part in self.fractions.items() if name != "gradients"))
        shape, of_whom = (train.n_items, self.factors), (measurer.epsilons, measurer.curator)
        gradients, multiplier = certified_gradients(self, shape, self.clip, steps, beside, *of_whom)
        rng, rates = streams.generator("samples of users"), self.rates(multiplier, train.n_users)

        def descend(t: int, model: FactorModel, parts: equations.UserParts) -> None:
            for _ in range(self.steps):
                sampled = parts
                if self.sampling_rate < 1:
                    chosen = rng.random((train.n_users, 1)) < self.sampling_rate
                    weights = replace(parts.weights, users=parts.weights.users * chosen)
                    sampled = replace(parts, weights=weights)
                _, sides = equations.item_equations(model, sampled, slice(None), with_gram=False)
                noisy = next(gradients).added_to(sides)
                pulled = noisy / self.sampling_rate + self.item_ridge * towards
                descend_items(model, pulled, rates, self.item_ridge)

        return descend

    def rates(self, multiplier: Epsilons, n_users: int) -> Epsilons:
        """(E,) η, lowered for more users than `FEW`, whose gradients add up, and for noise that would add up."""
        noise = math.sqrt(self.iterations * self.steps) * self.clip * multiplier / self.sampling_rate
        return rates_under(noise, self.learning_rate * min(1.0, FEW / n_users), self.spread)

    def cost(self, shape: Shape, grid: int) -> Cost:
        steps, parts, d = self.iterations * self.steps, padded_grid(grid) / 16, self.factors
        summed = steps * parts * shape.ratings * 6 * d * ITEM_ENTRY
        noise = steps * grid * shape.items * d * EQUATION_ENTRY
        held = 48.0 * shape.items * d * padded_grid(grid)
        far = (costs.fetched(shape.users, d, steps * shape.ratings * len(groups(grid))),)
        return self.users_cost(shape, grid, self.iterations + 1) + Cost(summed + noise, held, far)

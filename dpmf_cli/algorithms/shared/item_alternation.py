"""Alternating minimisation: each user solves for that user's own factors, and items learn from noisy sums over users.

Chien et al. 2021, with the weights of Krichene et al. 2023.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs
from dpmf_cli.algorithms.shared.averages import origin_of_sums
from dpmf_cli.algorithms.shared.base import Arrays, Paper, PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.budget import Delta, EffectsParameters, Fractions, stabilised
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors, at_most, initial_factors
from dpmf_cli.algorithms.shared.theta import Accounting, Measurer, NoiseKind
from dpmf_cli.core.compiled.lane_groups import groups, padded_grid
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, SideRatings, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.normal_equations import (
    RatingWeights,
    Residuals,
    UserParts,
    last_ranks,
    shorten_users,
    squared_weights,
)
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

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


class Begun(NamedTuple):
    """The state after the first measurements, from which all steps continue.

    model     start factors and averages
    parts     what users add to items
    by_user   all ratings by user
    centre    (E,) m
    counts    (n_items, E) n̂, at least 1
    measurer  the source of noise
    """

    model: FactorModel
    parts: UserParts
    by_user: SideRatings
    centre: NDArray[np.float64]
    counts: NDArray[np.float64]
    measurer: Measurer


class ItemAlternation(PrivateAlgorithm):
    """Measures a noisy mean m and noisy counts n̂_i from k ratings of each user. Then, with the weights w_ui of the
    `selection`:

        T times:  p_u ← argmin Σ_i (x_ui − p·q_i)² + λ_u‖p‖², over all of the user's ratings;  shortened to ‖p_u‖ ≤ Γ
                  Q ← from noisy sums over users; a subclass says how
        each user solves for p_u once more

    x_ui = r_ui − m; with `centring: users`, the user's own mean of r_ui − m is subtracted too. A prediction is
    m + p_u·q_i plus that own mean. It uses the target user's own ratings (‡). The catalogue of items is public.
    """

    paper: ClassVar[Paper] = Paper.CHIEN
    variants: ClassVar[Variants] = in_both_modes(Neighbours.USER)
    joint: ClassVar[bool] = True

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
    user_norm: float = Field(0.6, ge=1e-6, le=1e6, description="Γ")
    user_ridge: float = Field(
        3.0,
        ge=0.01,
        le=1e6,
        description="λ_u of a user's own regression; with less, users with few ratings cannot be solved",
    )
    effects: EffectsParameters = EffectsParameters(beta_u=16)
    budget: Fractions

    @property
    def spends_delta(self) -> float:
        return self.delta

    @property
    def accounting(self) -> Accounting:
        """The accounting of θ, exact in both modes."""
        return Accounting(NoiseKind.GAUSSIAN, Mode.CORRECTED, self.budget.fractions, self.delta)

    def epsilon_of(self, theta: float) -> float:
        return self.accounting.epsilon_of(theta)

    def theta_of(self, epsilon: float) -> float:
        return self.accounting.theta_of(epsilon)

    @property
    def of_a_user(self) -> RowProblem:
        """A user's own ridge regression on Q."""
        return RowProblem(self.user_ridge, math.inf, per_rating=False)

    def begin(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> Begun:
        """Measures what is measured once, and draws the start factors."""
        measurer = Measurer(self.accounting, self.measurements, epsilons, curator)
        kept = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        centre = self.measured_centre(kept, measurer)
        counts = measurer.noise(
            "counts", "item counts", (train.n_items,), sensitivity.sampled_counts(self.most_ratings)
        ).added_to(kept.item_counts)
        counts = np.maximum(counts, 1)
        parts = self.parts(train, kept, counts)
        users, items = initial_factors(train, self.initial_factors, self.factors, streams)
        model = factor_model(users, items, self.own_means(train, centre), np.tile(centre, (train.n_items, 1)))
        return Begun(model, parts, by_user(train), centre, counts, measurer)

    def parts(self, train: Ratings, kept: Ratings, counts: NDArray[np.float64]) -> UserParts:
        """What users add to items: from the ratings `kept`, or from all ratings, weighted by noisy counts."""
        learned = kept if self.selection is Selection.UNIFORM else train
        return UserParts(
            learned, by_item(learned), self.weights(learned, counts), self.residuals(train.scale)
        )

    @property
    @abstractmethod
    def measurements(self) -> Mapping[str, int]:
        """The number of noise draws of each measurement of the budget."""

    @abstractmethod
    def residuals(self, scale: Scale) -> Residuals:
        """The residuals from which items learn, and how they are clipped."""

    def step_users(self, begun: Begun) -> None:
        """p_u ← the user's own regression on Q, shortened to Γ."""
        solve_rows(begun.model, begun.by_user, self.of_a_user)
        shorten_users(begun.model, self.user_norm)

    def end(self, begun: Begun, train: Ratings) -> OwnFactors:
        """The model that is released: Q and m."""
        return OwnFactors(self, begun.model.without_users(), {"overall": begun.centre}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """Adds each user's own mean and p_u to Q."""
        model = items.with_users(self.own_means(own, beside["overall"]))
        solve_rows(model, by_user(own), self.of_a_user)
        return model

    def measured_centre(self, kept: Ratings, measurer: Measurer) -> NDArray[np.float64]:
        """(E,) m: the noisy sum of ratings divided by their noisy number, clamped to the scale."""
        origin, scale = origin_of_sums(self.mode, kept.scale), kept.scale
        (of_total, total_as), (of_number, number_as) = self.centre_moves(scale)
        total = (kept.values.astype(np.float64) - origin).sum()
        noisy = measurer.noise("centre", "global sum", (), of_total, total_as).added_to(total)
        count = measurer.noise("centre", "global count", (), of_number, number_as).added_to(len(kept))
        return np.clip(origin + noisy / np.maximum(count, 1), scale.minimum, scale.maximum)

    def centre_moves(self, scale: Scale) -> list[tuple[Sensitivity, Sensitivity | None]]:
        """Sensitivities of the global sum and of the number of its ratings, and those to which a paper scales the
        noise instead: published mode scales it to √k·r_max, and to 1."""
        k, origin = self.most_ratings, origin_of_sums(self.mode, scale)
        largest = max(abs(scale.minimum - origin), abs(scale.maximum - origin))
        as_published, published = sensitivity.published_sampled_total, self.mode is Mode.PUBLISHED
        return [
            (
                sensitivity.sampled_total(k, largest),
                as_published(math.sqrt(k) * largest) if published else None,
            ),
            (sensitivity.sampled_total(k, 1.0), as_published(1.0) if published else None),
        ]

    def own_means(self, own: Ratings, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n_users, E) r̄_u = Σ_i (r_ui − m)/(c_u + β_u), or 0 if users are not centred. Not released."""
        if self.centring == "overall":
            return np.zeros((own.n_users, len(centre)))
        counts = own.user_counts[:, None].astype(np.float64)
        sums = np.bincount(own.users, own.values, own.n_users)[:, None] - counts * centre
        return stabilised(sums, counts, self.effects.beta_u, np.zeros_like(centre))

    def weights(self, learned: Ratings, counts: NDArray[np.float64]) -> RatingWeights:
        """w_ui, with Σ_i w_ui² ≤ k for each user."""
        every = np.ones((learned.n_users, counts.shape[1]))
        if self.selection is Selection.WEIGHTED:
            weights = RatingWeights(every, counts**-self.weight_exponent)
            squares = squared_weights(learned, weights)
            parts = np.sqrt(self.most_ratings / np.where(squares > 0, squares, np.inf))
            return replace(weights, users=parts)
        weights = RatingWeights(every, np.ones_like(counts))
        if self.selection is Selection.UNIFORM:
            return weights
        ranks = np.argsort(np.argsort(counts, axis=0, kind="stable"), axis=0).astype(np.float64)
        return replace(weights, ranks=ranks, last=last_ranks(learned, ranks, self.most_ratings))

    def users_cost(self, shape: Shape, grid: int, times: int) -> Cost:
        """The cost of solving users `times` times and of holding factors, weights, and the ratings by item."""
        parts, d, n_groups = padded_grid(grid) / 16, self.factors, len(groups(grid))
        solved = (
            times
            * parts
            * (shape.ratings + costs.ROW_IN_RATINGS * shape.users)
            * costs.gram_entries(d)
            * costs.SOLVED_ENTRY
        )
        rows = shape.rows * (d + 5) * costs.LINE * n_groups
        far = (costs.fetched(shape.items, d, times * shape.ratings * n_groups),)
        return Cost(solved + 2e-7 * shape.ratings, rows + 60.0 * shape.ratings, far)

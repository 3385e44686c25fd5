"""Alternating minimisation in which users solve for themselves, and items learn from noisy sums over users.

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

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.budget import Fractions
from dpmf_cli.algorithms.shared.contributions import origin_of_sums
from dpmf_cli.algorithms.shared.effects import EffectsParameters, stabilised
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.ratings_per_user import at_most
from dpmf_cli.algorithms.shared.theta import CorrectedGaussianAccounting, Measurer
from dpmf_cli.kernels.als import RowProblem, SideRatings, by_item, by_user, solve_users
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.normal_equations import Residuals, UserParts, shorten_users
from dpmf_cli.kernels.rating_weights import RatingWeights, last_ranks, squared_weights
from dpmf_cli.privacy import least_squares_sensitivity as sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams


class Selection(StrEnum):
    """Which of a user's ratings the items learn from.

    UNIFORM   k, chosen at random
    TAIL      k, of the items with the least noisy counts
    WEIGHTED  all, with weights ∝ (noisy count)^−μ of squared length k: Krichene et al. 2023, algorithm 2
    """

    UNIFORM = "uniform"
    TAIL = "tail"
    WEIGHTED = "weighted"


class CentreMoves(NamedTuple):
    """How far the global sum and the number of its ratings move, and what a paper scales their noise to instead."""

    total: Sensitivity
    number: Sensitivity
    total_as: Sensitivity | None = None
    number_as: Sensitivity | None = None


class Begun(NamedTuple):
    """What all steps go on from: the model; what users add to items; all ratings by user; m (E,); n̂ (n_items, E), 1
    at least; and what noise comes from."""

    model: FactorModel
    parts: UserParts
    by_user: SideRatings
    centre: NDArray[np.float64]
    counts: NDArray[np.float64]
    measurer: Measurer


class ItemAlternation(PrivateAlgorithm):
    """From k ratings of each user a noisy mean m and noisy counts n̂_i. Then, with w_ui as the `selection` has it,

        T times:  p_u ← argmin Σ_i (x_ui − p·q_i)² + λ_u‖p‖², all own ratings;  shortened to ‖p_u‖ ≤ Γ
                  Q ← from noisy sums over users, as a subclass has it
        p_u once more, by its user

    x_ui = r_ui − m, less the user's own mean of that where `centring` is of users. Predictions, m + p_u·q_i and the
    own mean, use the target user's own ratings (‡). The catalogue of items is public.
    """

    paper: ClassVar[Paper] = Paper.CHIEN
    variants: ClassVar[Variants] = in_both_modes(Neighbours.USER)
    joint: ClassVar[bool] = True

    neighbours: Neighbours = Neighbours.USER
    delta: float = Field(1e-6, ge=1e-15, le=0.01, description="the δ of Gaussian noise")
    factors: int = Field(6, ge=1, le=64, description="d")
    iterations: int = Field(4, ge=1, le=1000, description="T")
    initial_factors: InitialFactors = InitialFactors(scale=0.3)
    centring: Literal["overall", "users"] = Field(
        "users", description="what is taken from ratings: the noisy mean, or each user's own mean too (β_u)"
    )
    selection: Selection = Field(Selection.WEIGHTED, description="which of a user's ratings items learn from")
    most_ratings: int = Field(100, ge=1, le=10_000, description="k")
    weight_exponent: float = Field(0.12, ge=0, le=2, description="μ, where the selection is weighted")
    user_norm: float = Field(0.6, ge=1e-6, le=1e6, description="Γ")
    user_ridge: float = Field(
        3.0,
        ge=0.01,
        le=1e6,
        description="λ_u: of a user's own regression; less leaves those of few ratings unsolvable",
    )
    effects: EffectsParameters = EffectsParameters(beta_u=16)
    budget: Fractions

    @property
    def spends_delta(self) -> float:
        return self.delta

    @property
    def accounting(self) -> CorrectedGaussianAccounting:
        """How θ is accounted for: exactly, in both modes."""
        return CorrectedGaussianAccounting(self.budget.fractions, self.delta)

    def epsilon_of(self, theta: float) -> float:
        return self.accounting.epsilon_of(theta)

    def theta_of(self, epsilon: float) -> float:
        return self.accounting.theta_of(epsilon)

    @property
    def of_a_user(self) -> RowProblem:
        """A user's own ridge regression on Q."""
        return RowProblem(self.user_ridge, math.inf, per_rating=False)

    def begin(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> Begun:
        """What is measured once, and the start."""
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
        """What users add to items: of the ratings `kept`, or of all with weights that follow from noisy counts."""
        learned = kept if self.selection is Selection.UNIFORM else train
        return UserParts(
            learned, by_item(learned), self.weights(learned, counts), self.residuals(train.scale)
        )

    @property
    @abstractmethod
    def measurements(self) -> Mapping[str, int]:
        """Of how many things each measurement of the budget is."""

    @abstractmethod
    def residuals(self, scale: Scale) -> Residuals:
        """What items learn from, and how it is clipped."""

    def step_users(self, begun: Begun) -> None:
        """p_u ← its user's own regression on Q, shortened to Γ."""
        solve_users(begun.model, begun.by_user, self.of_a_user)
        shorten_users(begun.model, self.user_norm)

    def end(self, begun: Begun, train: Ratings) -> OwnFactors:
        """Q, beside m."""
        return OwnFactors(self, begun.model.without_users(), {"overall": begun.centre}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """Q beside each user's own mean and p_u."""
        model = items.with_users(self.own_means(own, beside["overall"]))
        solve_users(model, by_user(own), self.of_a_user)
        return model

    def measured_centre(self, kept: Ratings, measurer: Measurer) -> NDArray[np.float64]:
        """(E,) m: the noisy sum of ratings over their noisy number, clamped to the scale."""
        origin, moves = origin_of_sums(self.mode, kept.scale), self.centre_moves(kept.scale)
        total = (kept.values.astype(np.float64) - origin).sum()
        noisy = measurer.noise("centre", "global sum", (), moves.total, moves.total_as).added_to(total)
        count = measurer.noise("centre", "global count", (), moves.number, moves.number_as).added_to(
            len(kept)
        )
        return np.clip(origin + noisy / np.maximum(count, 1), kept.scale.minimum, kept.scale.maximum)

    def centre_moves(self, scale: Scale) -> CentreMoves:
        """Published, the noise of the sum is scaled to √k·r_max, and that of the number to 1."""
        k, origin = self.most_ratings, origin_of_sums(self.mode, scale)
        largest = max(abs(scale.minimum - origin), abs(scale.maximum - origin))
        moves = CentreMoves(sensitivity.sampled_total(k, largest), sensitivity.sampled_total(k, 1.0))
        if self.mode is Mode.CORRECTED:
            return moves
        assumed = (sensitivity.published_sampled_total(each) for each in (math.sqrt(k) * largest, 1.0))
        return CentreMoves(moves.total, moves.number, *assumed)

    def own_means(self, own: Ratings, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n_users, E) r̄_u = Σ_i (r_ui − m)/(c_u + β_u), or 0 where users are not centred. Not released."""
        if self.centring == "overall":
            return np.zeros((own.n_users, len(centre)))
        counts = own.user_counts[:, None].astype(np.float64)
        sums = np.bincount(own.users, own.values, own.n_users)[:, None] - counts * centre
        return stabilised(sums, counts, self.effects.beta_u, np.zeros_like(centre))

    def weights(self, learned: Ratings, counts: NDArray[np.float64]) -> RatingWeights:
        """w_ui: Σ_i w_ui² is k at most."""
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

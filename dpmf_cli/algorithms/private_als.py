"""PALS: alternating least squares under privacy. Friedman, Berkovsky, Kaafar 2016, section 4.4, algorithm 6."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.base import Cost, Shape, Variants, in_both_modes
from dpmf_cli.algorithms.factorization import FactorModel
from dpmf_cli.algorithms.factorization_cost import fetched, noise_on_rows, private_cost
from dpmf_cli.algorithms.papers import Paper
from dpmf_cli.algorithms.private_factorization import NormBoundedFactorization, Side
from dpmf_cli.kernels.als import RowProblem, solve_items, solve_users
from dpmf_cli.kernels.lanes import groups
from dpmf_cli.kernels.order import item_major
from dpmf_cli.kernels.perturb import perturb_items, perturb_users
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_GRAM_ENTRY = 7.5e-10
"""One rating, one entry of the lower triangle of its row's Gram matrix, one group of 16 lanes."""
ROW_IN_RATINGS = 10
"""Solving a row's system takes as long as adding so many ratings to it."""


class PrivateLeastSquares(NormBoundedFactorization):
    """k times: every user's ridge regression on the items with noise of ε/(2k), ‖p_u‖ ≤ p_max; then every item's."""

    regularization: float = Field(0.045, gt=0, description="λ, table 3; the noise is scaled by 1/λ")
    iterations: int = Field(5, ge=1, description="k, section 5.2")

    objective: ClassVar[bool] = False

    def sensitivities(self, side: Side, train: Ratings) -> tuple[Sensitivity, Sensitivity | None]:
        """The true sensitivity of one side's rows, and the one that the noise is scaled to if that is another."""
        raise NotImplementedError

    def problem(self, side: Side, train: Ratings) -> RowProblem:
        """What is solved for each row of a side, without its noise."""
        return RowProblem(self.regularization, self.bound(train.scale))

    def noise_factors(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """(rows,) what the scale of each row's noise is multiplied by: 1/(n·λ); 0 for a row that is not solved."""
        return np.where(counts > 0, 1 / (np.maximum(counts, 1) * self.regularization), 0.0)

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> FactorModel:
        effects = self.measure_effects(train, streams, ledger)
        user_noises, item_noises = (
            repeated_k_norm(
                f"{side} factors",
                (rows, self.factors),
                repetitions=self.iterations,
                sensitivity=true,
                calibrated_to=calibrated_to,
                epsilon=self.factorization_epsilon(ledger) / 2,
                rng=streams.generator(f"{side} factors"),
                ledger=ledger,
            )
            for side, rows, (true, calibrated_to) in (
                ("user", train.n_users, self.sensitivities("user", train)),
                ("item", train.n_items, self.sensitivities("item", train)),
            )
        )
        item_starts, raters, values = item_major(train)
        user_rows, item_rows = self.noise_factors(train.user_counts), self.noise_factors(train.item_counts)
        parts = groups(len(ledger.epsilons))
        models = [self.start(train, effects, lanes, streams) for lanes in parts]
        for factors, lanes in zip(models, parts, strict=True):
            perturb_items(factors, None, item_rows, self.item_norm, lanes)
        users, items = self.problem("user", train), self.problem("item", train)
        for user_noise, item_noise in zip(user_noises, item_noises, strict=True):
            if self.objective:
                users, items = replace(users, noise=user_noise), replace(items, noise=item_noise)
            after_users, after_items = (None, None) if self.objective else (user_noise, item_noise)
            for factors, lanes in zip(models, parts, strict=True):
                solve_users(factors, train.user_starts, train.items, train.values, users, lanes)
                perturb_users(factors, after_users, user_rows, self.user_norm, lanes)
                solve_items(factors, item_starts, raters, values, items, lanes)
                perturb_items(factors, after_items, item_rows, self.item_norm, lanes)
        return FactorModel(models)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = self.iterations * len(groups(grid))
        entries = (self.factors + 1) * (self.factors + 2) / 2
        rows = ROW_IN_RATINGS * (shape.users + shape.items)
        seconds = (
            passes * (2 * shape.ratings + rows) * entries * SECONDS_PER_GRAM_ENTRY + 3e-8 * shape.ratings
        )
        whole = private_cost(shape, grid, self.factors, seconds=seconds, held=8.0 * shape.ratings)
        sides = (shape.items, shape.users)
        far = tuple(fetched(side, self.factors, passes * shape.ratings) for side in sides)
        return whole + noise_on_rows(shape, self.factors, self.iterations) + Cost(0.0, 0.0, far)


class PrivateALS(PrivateLeastSquares):
    """Algorithm 6: output perturbation.

    Bounded:    p_u ← argmin J_Q(p_u) + b,  ‖b‖ ~ Gamma(d, 2k·q_max·Δr/(n_u·λ·ε)),  ‖p_u‖ ≤ p_max; items likewise.
                Published mode follows the listing, which prints p_max in the user step and q_max in the item step;
                theorem 6 has them the other way round, and so has corrected mode.
    Unbounded:  published, with the sensitivities of table 1: nothing is provable, since the scale depends on n_u,
                which is private. Corrected: ridge regression within ‖p_u‖ ≤ p_max with a weight `ridge` that does
                not grow with n_u (`sensitivity.constrained_ridge_row_unbounded`); every row gets noise, rated or not.
    """

    title: ClassVar[str] = "PALS"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)

    algorithm: Literal["pals"]
    ridge: float = Field(10.0, gt=0, description="weight of ‖p‖² in unbounded corrected mode, instead of n·λ")

    @property
    def fixed_ridge(self) -> bool:
        return (self.neighbours, self.mode) == (Neighbours.UNBOUNDED, Mode.CORRECTED)

    def sensitivities(self, side: Side, train: Ratings) -> tuple[Sensitivity, Sensitivity | None]:
        own, other = self.norms(side)
        if self.neighbours is Neighbours.BOUNDED:
            true = sensitivity.least_squares_row(other, self.bound(train.scale), train.scale)
            swapped = sensitivity.least_squares_row(own, self.bound(train.scale), train.scale)
            return true, swapped if self.mode is Mode.PUBLISHED else None
        if self.mode is Mode.CORRECTED:
            return sensitivity.constrained_ridge_row_unbounded(
                self.ridge, own, other, self.bound(train.scale)
            ), None
        return (
            sensitivity.no_bound_known(2, Neighbours.UNBOUNDED, "the scale depends on the private n"),
            sensitivity.published_least_squares_row_unbounded(
                self.regularization, own, other, self.bound(train.scale)
            ),
        )

    def problem(self, side: Side, train: Ratings) -> RowProblem:
        if self.fixed_ridge:
            return RowProblem(self.ridge, self.bound(train.scale), per_rating=False, ball=self.norms(side)[0])
        return super().problem(side, train)

    def noise_factors(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.fixed_ridge:
            return np.ones(len(counts))
        if self.neighbours is Neighbours.UNBOUNDED:
            return 1 / (np.maximum(counts, 1) * self.regularization)
        return super().noise_factors(counts)


class ObjectivePrivateALS(PrivateLeastSquares):
    """ALS with objective perturbation, as the paper's conclusion invites (Chaudhuri et al. 2011). Bounded.

        p_u ← argmin J_Q(p_u) + 2·b·p_u = A⁻¹(Σ_i r̃_ui·q_i − b),  A = Σ_i q_i·q_iᵀ + n_u·λ·I

    A is public given the released Q, so this is K-norm noise on the vector Σ r̃·q, whose sensitivity is q_max·Δr
    (`sensitivity.least_squares_right_hand_side`). A ≥ n_u·λ·I: the noise on p_u is never larger than output
    perturbation's with the same ε, and smaller the more items the user rated.
    """

    title: ClassVar[str] = "PALS, objective"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED)
    objective: ClassVar[bool] = True

    algorithm: Literal["pals_objective"]

    def sensitivities(self, side: Side, train: Ratings) -> tuple[Sensitivity, Sensitivity | None]:
        _, other = self.norms(side)
        return sensitivity.least_squares_right_hand_side(other, self.bound(train.scale), train.scale), None

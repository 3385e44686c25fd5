"""PALS: alternating least squares under privacy. Friedman, Berkovsky, Kaafar 2016, section 4.4, algorithm 6."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, Variants
from dpmf_cli.algorithms.shared.private_factorization import PrivateLeastSquares, RowMoves, Side
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours


class PrivateALS(PrivateLeastSquares):
    """Algorithm 6, output perturbation, with its line numbers, on the residuals that the averages leave.

    1        P, Q ← random, within ‖q_i‖ ≤ q_max
    2        for k iterations
    3-5        p_u ← argmin J_Q(p_u) + b,  ‖b‖ ~ Gamma(d, 2k·q_max·Δr/(n_u·λ·ε))     for every user
    6          ‖p_u‖ ≤ p_max
    7-9        q_i ← argmin J_P(q_i) + b,  ‖b‖ ~ Gamma(d, 2k·p_max·Δr/(n_i·λ·ε))     for every item
    10         ‖q_i‖ ≤ q_max
    11       return P, Q
    """

    title: ClassVar[str] = "PALS"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    revision: ClassVar[int] = 2

    algorithm: Literal["pals"]
    ridge: float = Field(
        10.0,
        ge=1e-6,
        description="weight of ‖p‖² in unbounded corrected mode, instead of n·λ; with less, float64 cannot solve "
        "a row of 10⁶ ratings",
    )

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        effects = self.measure_effects(train, epsilons, curator)
        user_noises = self.noises("user", train, epsilons, curator)
        item_noises = self.noises("item", train, epsilons, curator)
        of_users, of_items = self.noise_factors(train.user_counts), self.noise_factors(train.item_counts)
        users, items = self.problem("user", train.scale), self.problem("item", train.scale)
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        model = self.start_within_norms(train, effects, streams)
        for user_rows, item_rows in zip(user_noises, item_noises, strict=True):  # lines 3 to 6, then 7 to 10
            user_rows.inside(solve_perturbed, model, ratings_by_user, users, self.user_norm, of_users)
            item_rows.inside(solve_perturbed, model, ratings_by_item, items, self.item_norm, of_items)
        return model

    def noise_factors(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """(rows,) the factor 1/(n·λ) on the scale of each row's noise, where `counts` (rows,) are the numbers of
        ratings n; 1 if the weight of ‖p‖² does not grow with n. A row without ratings is not solved."""
        if self.is_constrained:
            return np.ones(len(counts))
        return 1 / (np.maximum(counts, 1) * self.regularization)

    def theorem_6(self, side: Side, scale: Scale) -> RowMoves:
        """Algorithm 6 with the norms where theorem 6 has them: q_max in the user step, p_max in the item step."""
        return RowMoves(sensitivity.least_squares_row(self.norms(side)[1], self.bound(scale), scale))

    def as_listed(self, side: Side, scale: Scale) -> RowMoves:
        """Algorithm 6 as listed: p_max in the user step, q_max in the item step. Theorem 6 swaps them."""
        swapped, true = (
            sensitivity.least_squares_row(norm, self.bound(scale), scale) for norm in self.norms(side)
        )
        return RowMoves(true, calibrated_to=swapped)

    def table_1(self, side: Side, scale: Scale) -> RowMoves:
        """Algorithm 6 with the sensitivities of table 1. Nothing is provable: the scale depends on the private n."""
        why = "the scale depends on the private n"
        return RowMoves(
            sensitivity.no_bound_known(2, Neighbours.UNBOUNDED, why),
            sensitivity.published_least_squares_row_unbounded(
                self.regularization, *self.norms(side), self.bound(scale)
            ),
        )

    def constrained(self, side: Side, scale: Scale) -> RowMoves:
        """Ridge regression within ‖p_u‖ ≤ p_max, with a weight `ridge` that does not grow with n_u.

        Every row, rated or not, gets noise of the same scale (`sensitivity.constrained_ridge_row_unbounded`).
        """
        moves = sensitivity.constrained_ridge_row_unbounded
        return RowMoves(moves(self.ridge, *self.norms(side), self.bound(scale)))

    variants: ClassVar[Variants] = {
        (Neighbours.BOUNDED, Mode.PUBLISHED): as_listed,
        (Neighbours.BOUNDED, Mode.CORRECTED): theorem_6,
        (Neighbours.UNBOUNDED, Mode.PUBLISHED): table_1,
        (Neighbours.UNBOUNDED, Mode.CORRECTED): constrained,
    }
    """How far the numbers of one side move that get noise."""

    @property
    def is_constrained(self) -> bool:
        """Whether every row is a ridge regression within a ball, with a weight that does not grow with n."""
        return (self.neighbours, self.mode) == (Neighbours.UNBOUNDED, Mode.CORRECTED)

    def problem(self, side: Side, scale: Scale) -> RowProblem:
        if not self.is_constrained:
            return super().problem(side, scale)
        return RowProblem(self.ridge, self.bound(scale), per_rating=False, ball=self.norms(side)[0])

"""PALS: alternating least squares under privacy. Friedman, Berkovsky, Kaafar 2016, section 4.4, algorithm 6."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Variants, in_both_modes
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.algorithms.shared.private_least_squares import PrivateLeastSquares
from dpmf_cli.kernels.als import RowProblem
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings


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

"""ALS with objective perturbation, which Friedman et al. 2016, section 7, invite."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.base import Variants, in_both_modes
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.algorithms.shared.private_least_squares import PrivateLeastSquares
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings


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

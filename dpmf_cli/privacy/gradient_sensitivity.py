"""Sensitivities of sums of gradients over users or ratings."""

import math

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import moves
from dpmf_cli.ratings import Scale


def clipped_contributions(contribution: float, norm: int, neighbours: Neighbours) -> Sensitivity:
    """A sum over users of vectors whose norm is at most c = `contribution`, whatever the user's ratings.

    A user's vector, and how much it is clipped, are functions of that user's ratings and of released numbers.

    *User.* One vector more moves the sum by c. *Bounded, unbounded.* The value or presence of one rating turns its
    user's vector into another one within the same ball, which moves the sum by 2c. It also changes every prediction
    for that user, hence every part of the vector. So the complete vector has to be clipped.
    """
    times = moves(neighbours)
    return Sensitivity(times * contribution, norm, neighbours, f"{'2' if times == 2 else ''}c, ‖g_u‖ ≤ c")


def pooled_products(longest: float, neighbours: Neighbours) -> Sensitivity:
    """Σ_u p_u·p_uᵀ over users, where ‖p_u‖ ≤ Γ = `longest` whatever the user's ratings.

    It is a lower triangle, with the elements off the diagonal multiplied by √2. So its norm is the Frobenius norm of
    the complete matrix.

    *User.* One product more moves it by ‖p·pᵀ‖ = ‖p‖² ≤ Γ². *Bounded, unbounded.* One rating turns its user's p into
    another vector q, and ‖p·pᵀ − q·qᵀ‖² = ‖p‖⁴ + ‖q‖⁴ − 2(p·q)² ≤ 2Γ⁴. Two orthogonal vectors attain this.
    """
    times = math.sqrt(moves(neighbours))
    return Sensitivity(times * longest**2, 2, neighbours, f"{'√2·' if times > 1 else ''}Γ², ‖p_u‖ ≤ Γ")


def root_counts() -> Sensitivity:
    """Σ_u √n_u for users with n_u ratings. Unbounded.

    One rating more adds √(n + 1) − √n ≤ 1. It adds 1 for a user who had no rating.
    """
    return Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "√(n + 1) − √n ≤ 1")


def published_similarity_gradients(scale: Scale, error_bound: float, floor: float) -> Sensitivity:
    """The sensitivity that Wang and Tang 2017, section 3, assume for the gradient of the similarities:
    2·e_max·(r_max − r_min)/C.

    It bounds the move of *one coordinate* of the gradient of *one rating*, where Σ|s_ij| ≥ C. But the value of a
    rating r_ui enters the gradients of all its user's ratings, and in its own item's row those of all the neighbours.
    """
    value = 2 * error_bound * scale.width / floor
    return Sensitivity(value, 1, Neighbours.BOUNDED, "Wang and Tang 2017, section 3: one coordinate")

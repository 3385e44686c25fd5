"""How far sums of gradients over users or ratings can move between neighbours."""

import math

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import moves
from dpmf_cli.ratings import Scale


def clipped_contributions(contribution: float, norm: int, neighbours: Neighbours) -> Sensitivity:
    """A sum over users of vectors whose norm is at most c = `contribution`, whatever the user's ratings.

    A user's vector, and by how much it is clipped, are functions of that user's ratings and of what is released.

    *User.* One vector more: c. *Bounded, unbounded.* One rating's value or presence turns the vector of its user into
    another within the same ball: 2c. It also changes every prediction for that user, hence all of the vector: nothing
    less than the whole of it has to be clipped.
    """
    times = moves(neighbours)
    return Sensitivity(times * contribution, norm, neighbours, f"{'2' if times == 2 else ''}c, ‖g_u‖ ≤ c")


def pooled_products(longest: float, neighbours: Neighbours) -> Sensitivity:
    """Σ_u p_u·p_uᵀ over users, ‖p_u‖ ≤ Γ = `longest` whatever the user's ratings: a lower triangle, √2 times what is
    off the diagonal, which is as long as the whole matrix is in the Frobenius norm.

    *User.* One product more: ‖p·pᵀ‖ = ‖p‖² ≤ Γ². *Bounded, unbounded.* One rating turns its user's p into another, q:
    ‖p·pᵀ − q·qᵀ‖² = ‖p‖⁴ + ‖q‖⁴ − 2(p·q)² ≤ 2Γ⁴, which two that are orthogonal attain.
    """
    times = math.sqrt(moves(neighbours))
    return Sensitivity(times * longest**2, 2, neighbours, f"{'√2·' if times > 1 else ''}Γ², ‖p_u‖ ≤ Γ")


def root_counts() -> Sensitivity:
    """Σ_u √n_u, n_u ratings of user u. Unbounded: one rating more adds √(n + 1) − √n ≤ 1, and 1 to a user without."""
    return Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "√(n + 1) − √n ≤ 1")


def published_similarity_gradients(scale: Scale, error_bound: float, floor: float) -> Sensitivity:
    """What Wang and Tang 2017, section 3, take for the gradient of the similarities: 2·e_max·(r_max − r_min)/C.

    It bounds the move of *one coordinate* of the gradient of *one rating*, where Σ|s_ij| ≥ C. The value of a rating
    r_ui enters the gradients of all its user's ratings, and in its own item's row those of all the neighbours.
    """
    value = 2 * error_bound * scale.width / floor
    return Sensitivity(value, 1, Neighbours.BOUNDED, "Wang and Tang 2017, section 3: one coordinate")

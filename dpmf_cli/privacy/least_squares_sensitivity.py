"""Sensitivities of the items' normal equations, and of what is measured before them: Chien et al. 2021, section 3.

User u's rating of item i counts w_ui ≥ 0 with Σ_i w_ui² ≤ k: 1 for k ratings at most, or weights of that length. What
a user adds is a function of that user's ratings, of random choices that others' ratings do not enter, and of what is
released. One user more or less moves a sum by that. tests/privacy/test_least_squares_sensitivity.py searches, through
the kernel, for users that exceed what stands here.
"""

import math

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Scale

PAPER = "Chien et al. 2021"
CODE = "the public code of Chien et al. 2021"


def sampled_counts(most: int) -> Sensitivity:
    """Numbers of ratings by item, `most` = k of each user at most: k numbers move by 1, by √k in L2."""
    return Sensitivity(math.sqrt(most), 2, Neighbours.USER, f"{PAPER}: √k, k items of a user")


def sampled_total(most: int, largest: float) -> Sensitivity:
    """Σ x over k = `most` ratings of each user at most, |x| ≤ `largest`: one number, which a user moves by k·largest.

    With x = 1 it is how many there are.
    """
    return Sensitivity(most * largest, 2, Neighbours.USER, f"k·|x|, k = {most} ratings of a user in one sum")


def published_sampled_total(assumed: float) -> Sensitivity:
    """What the public code scales the noise of a global sum, or count, to: √k·r_max, or 1. `sampled_total` is k times
    the largest rating, or k."""
    return Sensitivity(assumed, 2, Neighbours.USER, f"{CODE}, centring")


def item_grams(most: float, longest: float) -> Sensitivity:
    """A_i = Σ_u w_ui·p_u·p_uᵀ for all items, ‖p_u‖ ≤ Γ = `longest`: lower triangles, √2 times what is off the
    diagonal.

    Such a triangle is as long as the whole matrix is in the Frobenius norm: ‖p·pᵀ‖ = ‖p‖² ≤ Γ². Over all items of a
    user √(Σ_i w_ui²)·Γ² ≤ √k·Γ², which every p of length Γ attains.

    Noise of deviation s on it is symmetric noise on A_i of variance s² on the diagonal and s²/2 off it. The triangle
    without the √2 has the squared length (‖p‖⁴ + Σ_f p_f⁴)/2, which p = Γ·e_f brings to Γ⁴ as well: the same
    sensitivity, and twice the variance off the diagonal for nothing.
    """
    value = math.sqrt(most) * longest**2
    return Sensitivity(value, 2, Neighbours.USER, f"{PAPER}, algorithm 1: √k·Γ², whole matrices")


def item_right_sides(most: float, longest: float, largest: float) -> Sensitivity:
    """b_i = Σ_u w_ui·x_ui·p_u for all items, |x_ui| ≤ Γ_M = `largest` and ‖p_u‖ ≤ Γ = `longest`.

    √(Σ_i w_ui²·x_ui²)·‖p_u‖ ≤ √k·Γ_M·Γ.
    """
    value = math.sqrt(most) * longest * largest
    return Sensitivity(value, 2, Neighbours.USER, f"{PAPER}, algorithm 1: √k·Γ·Γ_M")


def centred_right_sides(most: float, longest: float, scale: Scale) -> Sensitivity:
    """`item_right_sides` where x is not clipped: x = r − c with c within the scale, so |x| ≤ r_max − r_min.

    c is the released centre, which is clamped to the scale, or the user's own mean, which is within it.
    """
    return item_right_sides(most, longest, scale.width)


def published_right_sides(most: float, longest: float) -> Sensitivity:
    """What the public code scales the noise of the right sides to: √k·Γ, as if |x| ≤ 1, which nothing enforces."""
    value = math.sqrt(most) * longest
    return Sensitivity(value, 2, Neighbours.USER, f"{CODE}: √k·Γ, no Γ_M")

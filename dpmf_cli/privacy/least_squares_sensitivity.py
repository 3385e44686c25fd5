"""Sensitivities of the items' normal equations and of earlier measurements: Chien et al. 2021, section 3.

User u's rating of item i has the weight w_ui ≥ 0, with Σ_i w_ui² ≤ k. Either at most k ratings of a user have weight
1 each, or the weights of a user have an L2 norm of √k at most. A user's contribution is a function of that user's
ratings, of random choices that do not depend on other users' ratings, and of released numbers. So one user more or
less moves a sum by that contribution. tests/privacy/test_least_squares_sensitivity.py searches, through the kernel,
for users whose contribution exceeds these sensitivities.
"""

import math

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Scale

PAPER = "Chien et al. 2021"
CODE = "the public code of Chien et al. 2021"


def sampled_counts(most: int) -> Sensitivity:
    """Numbers of ratings by item, with at most k = `most` ratings of each user: k numbers move by 1, by √k in L2."""
    return Sensitivity(math.sqrt(most), 2, Neighbours.USER, f"{PAPER}: √k, k items of a user")


def sampled_total(most: int, largest: float) -> Sensitivity:
    """Σ x over at most k = `most` ratings of each user, |x| ≤ `largest`: one number, which a user moves by k·largest.

    With x = 1 the sum is the number of ratings.
    """
    return Sensitivity(most * largest, 2, Neighbours.USER, f"k·|x|, k = {most} ratings of a user in one sum")


def published_sampled_total(assumed: float) -> Sensitivity:
    """The sensitivity that the public code assumes for a global sum, √k·r_max, or for a count, 1.

    The true one is `sampled_total`: k times the largest rating for a sum, k for a count.
    """
    return Sensitivity(assumed, 2, Neighbours.USER, f"{CODE}, centring")


def item_grams(most: float, longest: float) -> Sensitivity:
    """A_i = Σ_u w_ui·p_u·p_uᵀ for all items, ‖p_u‖ ≤ Γ = `longest`: lower triangles, with the elements off the
    diagonal multiplied by √2.

    The norm of such a triangle is the Frobenius norm of the complete matrix: ‖p·pᵀ‖ = ‖p‖² ≤ Γ². Over all items of a
    user this is √(Σ_i w_ui²)·Γ² ≤ √k·Γ², which every p of length Γ attains.

    Noise of standard deviation s on the triangle is symmetric noise on A_i, with variance s² on the diagonal and s²/2
    off it. The triangle without the √2 has the squared norm (‖p‖⁴ + Σ_f p_f⁴)/2, and p = Γ·e_f brings this to Γ⁴ as
    well. So its sensitivity would be the same, and the variance off the diagonal would be twice as large for nothing.
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

    c is the released centre, which is clamped to the scale, or the user's own mean, which lies within the scale.
    """
    return item_right_sides(most, longest, scale.width)


def published_right_sides(most: float, longest: float) -> Sensitivity:
    """The sensitivity that the public code assumes for the right sides: √k·Γ. Nothing enforces its |x| ≤ 1."""
    value = math.sqrt(most) * longest
    return Sensitivity(value, 2, Neighbours.USER, f"{CODE}: √k·Γ, no Γ_M")

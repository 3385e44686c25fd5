"""How far sums of clamped residuals can move between neighbours.

A residual x = r − r̂ is what a rating differs by from the prediction of a model whose every number is released, or
public: the same number on both sides. It is clamped to [−B, B] and measured in units of B, so that B may differ with
ε. Sums are in double precision, and x/B is within [−1, 1] to the last bit.
"""

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity


def clamped_sums() -> Sensitivity:
    """Σ clamp(x)/B over disjoint groups of ratings, as one vector. Bounded.

    The value of rating (u, i) is in the sum of one group. Its term stays within [−1, 1]: it moves by 2 at most.
    """
    return Sensitivity(2.0, 1, Neighbours.BOUNDED, "clamped residuals in units of B: 2")


def clamped_vectors() -> Sensitivity:
    """The vectors Σ clamp(x)/B·z over disjoint groups of ratings, as the sum of their L2 moves. Bounded.

    z is a public vector of the rating's user, of its item, or of both, with ‖z‖ ≤ 1; of both it is the outer product,
    whose norm is the product of the norms. One group's vector moves, by |clamp(x) − clamp(x′)|/B·‖z‖ ≤ 2.
    """
    return Sensitivity(2.0, 2, Neighbours.BOUNDED, "clamped residuals in units of B, times ‖z‖ ≤ 1: 2")


def weights_of_signs_unbounded() -> Sensitivity:
    """Σ (1 + x′)/2 and Σ (1 − x′)/2 over disjoint groups of ratings, all as one vector; x′ is clamp(x)/B, or a rating
    scaled to [−1, 1]. Unbounded.

    Adding a rating moves the two sums of one group, by (1 + x′)/2 and (1 − x′)/2. Neither is negative, and together
    they are 1 for every x′. Their sum is the number of ratings, their difference is Σ x′. Noise on both costs as much
    as noise on one: they span the hull of all moves ±(x′, 1), which the norm of their noise fits (Hardt and Talwar
    2010).
    """
    return Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "(1 + x′)/2 + (1 − x′)/2 = 1")

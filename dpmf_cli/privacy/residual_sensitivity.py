"""Sensitivities of sums of clamped residuals.

A residual x = r − r̂ is a rating minus the prediction of a model whose numbers are all released or public. So r̂ is
the same number on both sides. The residual is clamped to [−B, B] and measured in units of B, so that B may differ
with ε. Sums are in double precision, and x/B is within [−1, 1] to the last bit.
"""

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity


def clamped_sums() -> Sensitivity:
    """Σ clamp(x)/B over disjoint groups of ratings, as one vector. Bounded.

    The value of rating (u, i) enters the sum of one group. Its term stays within [−1, 1], so it moves by 2 at most.
    """
    return Sensitivity(2.0, 1, Neighbours.BOUNDED, "clamped residuals in units of B: 2")


def clamped_vectors() -> Sensitivity:
    """The vectors Σ clamp(x)/B·z over disjoint groups of ratings, as the sum of their L2 moves. Bounded.

    z is a public vector with ‖z‖ ≤ 1: of the rating's user, of its item, or of both. Of both, z is the outer product,
    whose norm is the product of the two norms. One group's vector moves, by |clamp(x) − clamp(x′)|/B·‖z‖ ≤ 2.
    """
    return Sensitivity(2.0, 2, Neighbours.BOUNDED, "clamped residuals in units of B, times ‖z‖ ≤ 1: 2")


def weights_of_signs_unbounded() -> Sensitivity:
    """Σ (1 + x′)/2 and Σ (1 − x′)/2 over disjoint groups of ratings, all as one vector. Unbounded.

    x′ is clamp(x)/B, or a rating scaled to [−1, 1]. Adding a rating moves the two sums of one group, by (1 + x′)/2
    and (1 − x′)/2. Neither move is negative, and together they are 1 for every x′. The sum of the two sums is the
    number of ratings, and their difference is Σ x′. Noise on both sums costs as much as noise on one of them: the two
    sums span the hull of all moves ±(x′, 1), and the norm of their noise fits that hull (Hardt and Talwar 2010).
    """
    return Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "(1 + x′)/2 + (1 − x′)/2 = 1")

"""How far sums of gradients over users or ratings can move between neighbours."""

from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import moves
from dpmf_cli.ratings import Scale


def clipped_contributions(contribution: float, norm: int, neighbours: Neighbours) -> Sensitivity:
    """A sum over users of vectors whose norm is at most c = `contribution`, whatever the user's ratings.

    *User.* One vector more: c. *Bounded, unbounded.* One rating's value or presence turns the vector of its user into
    another within the same ball: 2c. It also changes every prediction for that user, hence all of the vector: nothing
    less than the whole of it has to be clipped.
    """
    times = moves(neighbours)
    return Sensitivity(times * contribution, norm, neighbours, f"{'2' if times == 2 else ''}c, ‖g_u‖ ≤ c")


def published_similarity_gradients(scale: Scale, error_bound: float, floor: float) -> Sensitivity:
    """What Wang and Tang 2017, section 3, take for the gradient of the similarities: 2·e_max·(r_max − r_min)/C.

    It bounds the move of *one coordinate* of the gradient of *one rating*, where Σ|s_ij| ≥ C. The value of a rating
    r_ui enters the gradients of all its user's ratings, and in its own item's row those of all the neighbours.
    """
    value = 2 * error_bound * scale.width / floor
    return Sensitivity(value, 1, Neighbours.BOUNDED, "Wang and Tang 2017, section 3: one coordinate")

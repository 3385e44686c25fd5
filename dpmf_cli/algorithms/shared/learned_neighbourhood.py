"""The shared parameters of methods that learn similarities, published or corrected."""

from pydantic import Field

from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.private_neighbourhood import PrivateNeighbourhood
from dpmf_cli.algorithms.shared.ratings_per_user import at_least
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import later


class LearningBudget(ItemAveragesBudget):
    """Fractions of θ: for the averages, and for all steps of learning together. Corrected only."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.58, gt=0, lt=1)
    similarities: float = Field(0.40, gt=0, lt=1)


OF_CERTIFIED_DESCENT = ("clip", "budget", "noise", "typical_count")
"""Parameters of `CertifiedDescent` that no published method uses."""


def error_bound(scale: Scale, t: int) -> float:
    """0.5 + (φ − 1)/(t + 1), φ = r_max − r_min: the bound to which section 3 clamps errors in step t = 1, 2, …"""
    return 0.5 + (scale.width - 1) / (t + 1)


class LearnedNeighbourhood(PrivateNeighbourhood):
    """Similarities S that K noisy steps learn, starting from s_ij = s₀."""

    budget: LearningBudget = LearningBudget()
    initial_similarity: float = Field(1.0, ge=1e-6, le=1e6, description="s₀")
    iterations: int = Field(5, ge=1, description="K: 1 to 20, fewer for smaller ε")
    sampling_rate: float = Field(
        1.0, gt=0, le=1, description="γ: the fraction of ratings (corrected: of users) that a step uses"
    )
    regularization: float = Field(0.005, ge=0, description="λ: 0.05 or 0.005")
    clip: float = Field(
        0.3,
        ge=1e-6,
        le=1e6,
        description="c, corrected only: the largest norm of a user's gradient, at s₀ = 1",
    )
    least_ratings: int = later(
        0,
        ge=0,
        description="users with fewer ratings are left out of learning; 21 in section 3",
    )

    def learned_from(self, train: Ratings, streams: Streams) -> Ratings:
        """The ratings from whose errors the method learns: those of users with at least `least_ratings`.

        Averages and users' own predictions use all ratings. If users or the presence of a rating are protected, one
        rating decides whether a user's complete gradient counts. A clipped gradient that appears moves the sum no
        more than the change of one clipped gradient into another.
        """
        return at_least(train, self.least_ratings)

    @property
    def steps_of_learning(self) -> int:
        return self.iterations

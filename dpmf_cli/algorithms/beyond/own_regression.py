"""Own regression: released features of items, on which each user regresses that user's own ratings."""

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.budget import Delta
from dpmf_cli.algorithms.shared.cost import (
    CLIPPED_VISIT,
    LINE,
    ROW_IN_RATINGS,
    SOLVED_ENTRY,
    Cost,
    Shape,
    effects_cost,
    gram_entries,
)
from dpmf_cli.algorithms.shared.item_posteriors import Items
from dpmf_cli.algorithms.shared.learned_features import Ridges, Rounds, fixed_features, learn, regressed
from dpmf_cli.algorithms.shared.measured_items import (
    measured_of_presence,
    measured_of_users,
    measured_of_values,
)
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.compiled.lane_groups import groups
from dpmf_cli.kernels.als import by_user
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.subsampling import moves
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

TYPICAL = 100
"""A public guess of how many ratings a user has."""
STRONG = 3.5
"""Features are learned from this strength on."""
NOTHING = 1e-6
"""The fraction of the budget for learned features at an ε at which none are learned: the steps are in the ledger for
every ε of the grid."""


Ridge = Annotated[float, Field(ge=1e-3, le=1e6)]


class OwnRegression(PrivateAlgorithm):
    """r̂_ui = base_i + θ_u·φ_i. The items' averages `base` and features φ = (1, popularity, quality, learned ones)
    are released. θ_u is user u's own ridge regression on φ, which only the user sees: *joint* differential privacy.

        noisy counts and sums of ratings by item: their posterior means are base, popularity, quality
        T rounds of `learned_features.learn`

    popularity and quality follow from the noisy counts and sums that the averages need anyway, so they cost nothing.
    How many features are learned depends on how much noise there is: on ε and on the numbers of users and items, all
    public. Constants were chosen on ML-100K and checked on one fold of ML-1M.

    most  the fraction of the budget that learned features get where there is hardly any noise
    """

    title: ClassVar[str] = "Own regression"
    paper: ClassVar[Paper] = Paper.DPMF
    averaged: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    counts_users: ClassVar[bool] = True

    algorithm: Literal["own_regression"]
    neighbours: Neighbours = Neighbours.USER
    mode: Mode = Mode.CORRECTED
    factors: int = Field(
        6, ge=0, le=32, description="the most features that are learned; at 0, privacy per rating needs no δ"
    )
    iterations: int = Field(5, ge=1, le=100, description="T")
    clip: float = Field(
        0.6, ge=1e-3, le=1e3, description="C: the largest L2 norm of a user's part of the sums, in stars"
    )
    ridges: tuple[Ridge, Ridge, Ridge, Ridge] = Field(
        (10.0, 40.0, 60.0, 2.0),
        description="λ of a user's regression: for the mean, popularity, quality and learned features",
    )
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        strength = self.strength(train, epsilons)
        share = self.share(strength)
        weights = 1 / np.sqrt(np.maximum(train.user_counts, 1))
        items: Items = self.variant(self, train, weights, epsilons, share, curator)
        model = fixed_features(items, self.of_a_user, self.factors)
        if self.factors:
            theta = self.for_features(epsilons, share)
            rounds = Rounds(self.iterations, self.ranks(strength), self.clip, theta, self.neighbours)
            shape = train.n_users, max(self.factors - 2, 0)
            start = streams.start("coefficients").normal(0, 0.5, shape)
            learn(model, items, train, weights, rounds, self.of_a_user, start, curator)
        return OwnFactors(self, model, {}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """Returns the items with each user's own θ_u."""
        return regressed(items, own.n_users, by_user(own))

    @property
    def of_a_user(self) -> Ridges:
        *fixed, learned = self.ridges
        return Ridges((fixed[0], fixed[1], fixed[2]), learned)

    def of_users(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        """Neighbours differ in one user, with all ratings. All noise is Gaussian (`measured_of_users`)."""
        theta = self.mu(epsilons) * np.sqrt(1 - share)
        return measured_of_users(train, weights, theta, self.clip, self.of_a_user, curator)

    def of_presence(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        """Neighbours differ in the presence of one rating. Averages have Laplace noise (`measured_of_presence`).

        The noise of a round hides a user's complete part of the sums, because any one rating of the user may change
        all of it.
        """
        return measured_of_presence(train, epsilons * (1 - share), curator, learning=self.factors > 0)

    def of_values(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        """Neighbours differ in the value of one rating. Averages have Laplace noise (`measured_of_values`).

        The noise of a round hides a user's complete part of the sums, as in `of_presence`.
        """
        return measured_of_values(train, weights, epsilons * (1 - share), curator)

    variants: ClassVar[Variants] = {
        (Neighbours.USER, Mode.CORRECTED): of_users,
        (Neighbours.UNBOUNDED, Mode.CORRECTED): of_presence,
        (Neighbours.BOUNDED, Mode.CORRECTED): of_values,
    }
    """Releases averages and popularity of items, for the part of the budget that `share` (E,) leaves."""

    @property
    def spends_delta(self) -> float:
        return self.delta if self.factors or self.neighbours is Neighbours.USER else 0.0

    def epsilon_of(self, theta: float) -> float:
        """θ is the μ of Gaussian noise with that ε if a δ is spent; otherwise θ is ε."""
        return epsilon_of_mu(theta, self.delta) if self.spends_delta else theta

    def theta_of(self, epsilon: float) -> float:
        return mu_of_epsilon(epsilon, self.delta) if self.spends_delta else epsilon

    def for_features(self, epsilons: Epsilons, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """(E,) μ of all rounds together, for the fraction `share` of ε; of μ² where averages have Gaussian noise."""
        of_users = self.neighbours is Neighbours.USER
        return self.mu(epsilons) * np.sqrt(share) if of_users else self.mu(epsilons * share)

    def mu(self, epsilons: Epsilons) -> NDArray[np.float64]:
        """(E,) μ of Gaussian noise at each ε."""
        return np.array([mu_of_epsilon(float(epsilon), self.delta) for epsilon in epsilons])

    @property
    def most(self) -> float:
        """The fraction of the budget that learned features get where there is hardly any noise."""
        return 0.8 if self.neighbours is Neighbours.USER else 0.95

    def strength(self, train: Ratings, epsilons: Epsilons) -> NDArray[np.float64]:
        """(E,) a typical item's weighted count, √TYPICAL·n_users/n_items, over the deviation of noise of μ(ε)."""
        typical = math.sqrt(TYPICAL) * train.n_users / train.n_items
        return self.mu(epsilons) * typical / moves(self.neighbours)

    def share(self, strength: NDArray[np.float64]) -> NDArray[np.float64]:
        """(E,) the fraction of the budget for learned features."""
        if self.factors == 0:
            return np.zeros_like(strength)
        return np.where(strength < STRONG, NOTHING, self.most / (1 + STRONG / strength))

    def ranks(self, strength: NDArray[np.float64]) -> NDArray[np.int64]:
        """(E,) how many features are learned: 0, or 2 and one more for each doubling of strength from 16 on."""
        more = np.floor(np.log2(np.clip(strength / 16, 1, 2.0**64)))
        return np.where(strength < STRONG, 0, np.minimum(2 + more, self.factors)).astype(np.int64)

    def cost(self, shape: Shape, grid: int) -> Cost:
        features, passes = self.factors + 3, (self.iterations + 1) * len(groups(grid))
        solved = (shape.ratings + ROW_IN_RATINGS * shape.users) * gram_entries(features) * SOLVED_ENTRY
        summed = shape.ratings * CLIPPED_VISIT * features / 2
        rows = shape.rows * features * LINE  # coefficients and sums are float64
        return effects_cost(shape, grid) + Cost(passes * (solved + summed), 8 * rows * len(groups(grid)))

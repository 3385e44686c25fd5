"""Own regression: released features of items, on which each user regresses that user's own ratings."""

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.beyond.learned_features import (
    Items,
    Lanes,
    Ridges,
    Rounds,
    averages_of,
    counts_of,
    fixed_features,
    learn,
    popularity_of,
    regressed,
)
from dpmf_cli.algorithms.shared.averages import sums_and_counts
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
from dpmf_cli.algorithms.shared.factorization import OwnFactors
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import by_user
from dpmf_cli.kernels.clipped_gradients import clipped_item_sums
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.covariance_sensitivity import user_rating_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity, clipped_contributions, rating_sums, root_counts
from dpmf_cli.privacy.subsampling import moves

COUNTS, USER_MEANS, USERS_LEFT, SUMS = 0.30, 0.01, 0.01, 0.68
"""Fractions of μ² if neighbours differ in a user."""
FURTHEST, OFF = 1.0, 0.5
"""FURTHEST: the bound to which users' means are clipped, around a public guess. OFF: the prior deviation of that
guess."""
ROOTS = 0.02
"""The fraction of ε for Σ_u √n_u if neighbours differ in the presence of a rating."""
CENTRE, TREND = 0.15, 0.25
"""A public guess of averages: CENTRE scale widths above the scale's middle, plus TREND times popularity."""
OFFSET, RARE = 1.0, 30.0
"""Added to a count before its logarithm: OFFSET to a sum of weights, RARE to a number of ratings."""
OF_WEIGHTS, OF_RATINGS = 0.1, 1.5
"""The variance of a sum by item divided by its weight, without noise: for weighted residuals, and for ratings."""


def measured_of_users(
    train: Ratings,
    weights: NDArray[np.float64],
    theta: NDArray[np.float64],
    clip: float,
    ridges: Ridges,
    curator: Curator,
) -> Items:
    """Measures items if neighbours differ in a user, with all ratings. The measurements are:

        Σ_u w_u by item, for popularity;   Σ_u mean_i(r_ui − guess_i), for the guess
        Σ_u clip_C((w_u·(r_ui − guess_i − own mean_u))_i), for averages;   Σ_u of the fraction that clipping leaves

    weights  (n_users,) w_u = n_u^(−½)
    theta    (E,) μ of all steps
    clip     C
    ridges   the first is for a user's own mean
    """

    def noise(step: str, shape: tuple[int, ...], part: float, moves: Sensitivity) -> Release:
        return gaussian(step, shape, sensitivity=moves, theta=theta * math.sqrt(part), curator=curator)

    rows, everybody = (train.n_items,), np.ones((train.n_users, 1, len(theta)))
    reach, once = (clipped_contributions(each, 2, Neighbours.USER) for each in (clip, 1.0))
    counts = noise("item counts", rows, COUNTS, user_rating_sums(1.0, 2))
    noisy = counts.added_to(sums_by(train.items, weights[train.users], train.n_items))
    weight, logarithms = counts_of(noisy, counts.scale, OFFSET)
    popularity = popularity_of(logarithms, weight)
    guess = train.scale.middle + CENTRE * train.scale.width + TREND * popularity
    of_means = noise("users' means", (), USER_MEANS, clipped_contributions(FURTHEST, 2, Neighbours.USER))
    guess = guess + _offset(train, guess, of_means)
    unknown = Items(guess, np.zeros_like(guess), np.zeros_like(guess), np.zeros_like(guess))
    means = regressed(fixed_features(unknown, ridges, 0), train.n_users, by_user(train))
    sums, left = clipped_item_sums(means, everybody, train, weights, np.full(len(theta), clip))
    kept = noise("users left by clipping", (), USERS_LEFT, once).added_to(_totals(left))
    of_sums = noise("item sums", rows, SUMS, reach)
    noisy_sums, seen = of_sums.added_to(sums[:, 0]), weight * np.clip(kept / train.n_users, 0.1, 1)
    variance = of_sums.scale**2 + OF_WEIGHTS * seen
    base, spread = averages_of(noisy_sums, seen, popularity, variance, guess, train.scale)
    return Items(base, spread, weight, popularity)


def _offset(train: Ratings, guess: Lanes, release: Release) -> NDArray[np.float64]:
    """(E,) the posterior mean, given noise, of the difference between users' mean ratings and the guess."""
    own = residual_sums_by_user(train.users, train.items, train.values, guess, train.n_users)[:-1]
    means = np.clip(own / np.maximum(train.user_counts, 1)[:, None], -FURTHEST, FURTHEST)
    noisy = release.added_to(_totals(means)) / train.n_users
    return np.asarray(noisy * OFF**2 / (OFF**2 + (release.scale / train.n_users) ** 2))


def measured_of_presence(train: Ratings, epsilon: Epsilons, curator: Curator, *, learning: bool) -> Items:
    """Measures items if neighbours differ in the presence of a rating.

    The measurements are Σ (1 + x)/2 and Σ (1 − x)/2 by item, where x is the rating scaled to [−1, 1]. If features are
    learned, Σ_u √n_u is measured too, for the weights of ratings in later steps. All steps together spend `epsilon`
    (E,).
    """
    scale, of_roots = train.scale, ROOTS if learning else 0.0
    x = (train.values.astype(np.float64) - scale.middle) / (scale.width / 2)
    both = [sums_by(train.items, (1 + sign * x) / 2, train.n_items) for sign in (1, -1)]
    found = sums_and_counts("item halves", np.stack(both, axis=1), epsilon * (1 - of_roots), curator)
    counts, logarithms = counts_of(found.counts, found.deviation, RARE)
    popularity = popularity_of(logarithms, counts)
    sums = found.sums * scale.width / 2
    variance = (found.deviation * scale.width / 2) ** 2 + OF_RATINGS * counts
    base, spread = averages_of(sums, counts, popularity, variance, np.full_like(sums, scale.middle), scale)
    if not learning:
        return Items(base, spread, counts, popularity)
    roots = laplace(
        "roots of users' counts",
        (),
        sensitivity=root_counts(),
        epsilon=epsilon * of_roots,
        curator=curator,
    ).added_to(np.sqrt(train.user_counts).sum())
    return Items(base, spread, counts * np.clip(roots / np.maximum(_totals(counts), 1), 0, 1), popularity)


def measured_of_values(
    train: Ratings, weights: NDArray[np.float64], epsilon: Epsilons, curator: Curator
) -> Items:
    """Measures items if neighbours differ in the value of a rating.

    The only measurement, of sums by item, spends `epsilon` (E,). Who rated what is public. So are all counts, and
    `weights` (n_users,), the weight of a rating in later steps.
    """
    scale, moved = train.scale, rating_sums(train.scale)
    release = laplace("item sums", (train.n_items,), sensitivity=moved, epsilon=epsilon, curator=curator)
    values = train.values.astype(np.float64) - scale.middle
    sums = release.added_to(sums_by(train.items, values, train.n_items))
    public = train.item_counts.astype(np.float64), sums_by(train.items, weights[train.users], train.n_items)
    counts, weight = (np.repeat(each[:, None], len(epsilon), axis=1) for each in public)
    popularity = popularity_of(np.log(counts + RARE), counts)
    variance = 2 * release.scale**2 + OF_RATINGS * counts
    base, spread = averages_of(sums, counts, popularity, variance, np.full_like(sums, scale.middle), scale)
    return Items(base, spread, weight, popularity)


def _totals(rows: Lanes) -> NDArray[np.float64]:
    """(E,) sums over rows (n, E), each ε separately, by pairwise summation."""
    return np.array([np.ascontiguousarray(column).sum() for column in rows.T])


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

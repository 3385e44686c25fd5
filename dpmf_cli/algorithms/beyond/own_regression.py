"""Own regression: released features of items, on which each user regresses that user's own ratings."""

import math
from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.item_posteriors import Items, averages_of, counts_of, popularity_of
from dpmf_cli.algorithms.shared.learned_features import Ridges, Rounds, fixed_features, learn, regressed
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.als import by_user
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.kernels.user_gradients import clipped_item_sums
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.covariance_sensitivity import user_rating_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.gradient_sensitivity import clipped_contributions, root_counts, weighed_halves
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.subsampling import moves
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

COUNTS, USER_MEANS, USERS_LEFT, SUMS = 0.30, 0.01, 0.01, 0.68
"""Parts of the averages' μ² where neighbours differ in a user."""
FURTHEST, OFF = 1.0, 0.5
"""Where users' means are clipped, around a public guess, and by how much that guess may be off: a prior deviation."""
ROOTS = 0.02
"""The part of the averages' ε for Σ_u √n_u where neighbours differ in the presence of a rating."""
TYPICAL = 100
"""A public guess of how many ratings a user has."""
STRONG, MOST = 4.0, 0.8
"""The strength from which on features are learned, and the part of the budget that they get where there is no noise."""
NOTHING = 1e-6
"""That part where none are learned: the ledger has the steps of all ε."""
CENTRE, TREND = 0.15, 0.25
"""Of a public guess of averages: how far off the scale's middle, in its widths, and by how much with popularity."""
OFFSET, RARE = 1.0, 30.0
"""What is added to a count before its logarithm: of weights, of ratings."""
OF_WEIGHTS, OF_RATINGS = 0.1, 1.5
"""The variance of a sum by item over its weight, without noise: of weighted residuals, of ratings."""


class OwnRegression(PrivateAlgorithm):
    """r̂_ui = base_i + θ_u·φ_i. The items' averages `base` and features φ = (1, popularity, quality, learned ones) are
    released; θ_u is user u's own ridge regression on them, which only the user sees: *joint* differential privacy.

        counts and sums of ratings by item, noisy: their posterior means are base, popularity, quality
        T rounds of `learned_features.learn`

    popularity and quality are functions of what the averages need anyway, and so cost nothing. Features are learned, and
    more of them, where the noise allows: as functions of ε and of how many users and items there are, all public.
    Constants were chosen on ML-100K.
    """

    title: ClassVar[str] = "Own regression"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = frozenset((each, Mode.CORRECTED) for each in list(Neighbours)[:3])
    joint: ClassVar[bool] = True

    algorithm: Literal["own_regression"]
    neighbours: Neighbours = Neighbours.USER
    mode: Mode = Mode.CORRECTED
    factors: int = Field(
        6, ge=0, le=32, description="the most features that are learned; 0: none, and per rating no δ"
    )
    iterations: int = Field(5, ge=1, le=100, description="T")
    clip: float = Field(
        0.6, ge=1e-3, le=1e3, description="C: the L2 norm of a user's part of the sums, in stars"
    )
    ridges: tuple[float, float, float, float] = Field(
        (10.0, 40.0, 60.0, 2.0),
        description="λ of a user's regression: of the mean, of popularity, of quality, of learned features",
    )
    delta: float = Field(1e-6, ge=1e-15, le=0.01, description="the δ of Gaussian noise")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        strength = self.strength(train, epsilons)
        share = self.share(strength)
        weights = 1 / np.sqrt(np.maximum(train.user_counts, 1))
        items = self.measured(train, weights, epsilons, share, curator)
        model = fixed_features(items, self.of_a_user, self.factors)
        if self.factors:
            theta = self.for_features(epsilons, share)
            rounds = Rounds(self.iterations, self.ranks(strength), self.clip, theta, self.neighbours)
            shape = train.n_users, max(self.factors - 2, 0)
            start = streams.start("coefficients").normal(0, 0.5, shape)
            learn(model, items, train, weights, rounds, self.of_a_user, start, curator)
        return OwnFactors(self, model, {}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """Each user's own θ_u."""
        return regressed(items, own.n_users, by_user(own))

    @property
    def of_a_user(self) -> Ridges:
        *fixed, learned = self.ridges
        return Ridges((fixed[0], fixed[1], fixed[2]), learned)

    @abstractmethod
    def measured(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        """Averages and popularity of items, for what `share` (E,) leaves of the budget."""

    @property
    def spends_delta(self) -> float:
        return self.delta if self.factors or self.neighbours is Neighbours.USER else 0.0

    def epsilon_of(self, theta: float) -> float:
        """θ is the μ of Gaussian noise of that ε, where there is any."""
        return epsilon_of_mu(theta, self.delta) if self.spends_delta else theta

    def theta_of(self, epsilon: float) -> float:
        return mu_of_epsilon(epsilon, self.delta) if self.spends_delta else epsilon

    def for_features(self, epsilons: Epsilons, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """(E,) μ of all rounds: a part of ε, beside pure averages."""
        return self.mu(epsilons * share)

    def mu(self, epsilons: Epsilons) -> NDArray[np.float64]:
        """(E,) of Gaussian noise."""
        return np.array([mu_of_epsilon(float(epsilon), self.delta) for epsilon in epsilons])

    def strength(self, train: Ratings, epsilons: Epsilons) -> NDArray[np.float64]:
        """(E,) how far a typical item's weighted count, √TYPICAL·n_users/n_items, is above noise of μ(ε)."""
        typical = math.sqrt(TYPICAL) * train.n_users / train.n_items
        return self.mu(epsilons) * typical / moves(self.neighbours)

    def share(self, strength: NDArray[np.float64]) -> NDArray[np.float64]:
        """(E,) the part of the budget for learned features."""
        if self.factors == 0:
            return np.zeros_like(strength)
        return np.where(strength < STRONG, NOTHING, MOST / (1 + STRONG / strength))

    def ranks(self, strength: NDArray[np.float64]) -> NDArray[np.int64]:
        """(E,) how many features are learned: 0, or 2 and one more for each doubling of strength from 16 on."""
        more = np.floor(np.log2(np.clip(strength / 16, 1, 2.0**64)))
        return np.where(strength < STRONG, 0, np.minimum(2 + more, self.factors)).astype(np.int64)


class UserOwnRegression(OwnRegression):
    """Neighbours differ in one user, with all ratings: everything has Gaussian noise.

        Σ_u n_u^(−½) by item, for popularity;   Σ_u mean_i(r_ui − guess_i), for the guess
        Σ_u clip_C((n_u^(−½)·(r_ui − guess_i − own mean_u))_i), for averages;   Σ_u of what clipping leaves of each
    """

    variants: ClassVar[Variants] = frozenset({(Neighbours.USER, Mode.CORRECTED)})

    def for_features(self, epsilons: Epsilons, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """(E,) μ of all rounds: a part of μ², beside Gaussian averages."""
        return self.mu(epsilons) * np.sqrt(share)

    def measured(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        theta, rows = self.mu(epsilons) * np.sqrt(1 - share), (train.n_items,)
        counts = gaussian(
            "item counts",
            rows,
            sensitivity=user_rating_sums(1.0, 2),
            theta=theta * math.sqrt(COUNTS),
            curator=curator,
        )
        noisy = counts.added_to(sums_by(train.items, weights[train.users], train.n_items))
        weight, logarithms = counts_of(noisy, counts.scale, OFFSET)
        popularity = popularity_of(logarithms, weight)
        guess = train.scale.middle + CENTRE * train.scale.width + TREND * popularity
        guess = guess + self.offset(train, guess, theta, curator)
        unknown = Items(guess, np.zeros_like(guess), np.zeros_like(guess), np.zeros_like(guess))
        means = regressed(fixed_features(unknown, self.of_a_user, 0), train.n_users, by_user(train))
        everybody = np.ones((train.n_users, 1, len(epsilons)))
        clip = np.full(len(epsilons), self.clip)
        sums, left = clipped_item_sums(means, everybody, train, weights, clip)
        of_left = gaussian(
            "users left by clipping",
            (),
            sensitivity=clipped_contributions(1.0, 2, self.neighbours),
            theta=theta * math.sqrt(USERS_LEFT),
            curator=curator,
        )
        kept = of_left.added_to(_totals(left))
        of_sums = gaussian(
            "item sums",
            rows,
            sensitivity=clipped_contributions(self.clip, 2, self.neighbours),
            theta=theta * math.sqrt(SUMS),
            curator=curator,
        )
        seen = weight * np.clip(kept / train.n_users, 0.1, 1)
        variance = of_sums.scale**2 + OF_WEIGHTS * seen
        noisy_sums = of_sums.added_to(sums[:, 0])
        base, spread = averages_of(noisy_sums, seen, popularity, variance, guess, train.scale)
        return Items(base, spread, weight, popularity)

    def offset(
        self, train: Ratings, guess: NDArray[np.float64], theta: NDArray[np.float64], curator: Curator
    ) -> NDArray[np.float64]:
        """(E,) how far users' mean ratings are off the guess: a posterior mean, given noise."""
        own = residual_sums_by_user(train.users, train.items, train.values, guess, train.n_users)[:-1]
        means = np.clip(own / np.maximum(train.user_counts, 1)[:, None], -FURTHEST, FURTHEST)
        release = gaussian(
            "users' means",
            (),
            sensitivity=clipped_contributions(FURTHEST, 2, self.neighbours),
            theta=theta * math.sqrt(USER_MEANS),
            curator=curator,
        )
        noisy = release.added_to(_totals(means)) / train.n_users
        return noisy * OFF**2 / (OFF**2 + (release.scale / train.n_users) ** 2)


class PresenceOwnRegression(OwnRegression):
    """The presence of a rating: by item, Σ (1 + x)/2 and Σ (1 − x)/2, x the rating scaled to [−1, 1], with Laplace noise.

    A round has noise for a user's whole part, which any one rating of the user may change into another.
    """

    variants: ClassVar[Variants] = frozenset({(Neighbours.UNBOUNDED, Mode.CORRECTED)})

    def measured(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        scale, epsilon = train.scale, epsilons * (1 - share)
        of_roots = ROOTS if self.factors else 0.0
        halves = laplace(
            "item halves",
            (train.n_items, 2),
            sensitivity=weighed_halves(),
            epsilon=epsilon * (1 - of_roots),
            curator=curator,
        )
        x = (train.values.astype(np.float64) - scale.middle) / (scale.width / 2)
        above, below = (sums_by(train.items, (1 + sign * x) / 2, train.n_items) for sign in (1, -1))
        noisy = halves.added_to(np.stack([above, below], axis=1))
        deviation = 2 * halves.scale
        counts, logarithms = counts_of(noisy[:, 0] + noisy[:, 1], deviation, RARE)
        popularity = popularity_of(logarithms, counts)
        sums = (noisy[:, 0] - noisy[:, 1]) * scale.width / 2
        variance = (deviation * scale.width / 2) ** 2 + OF_RATINGS * counts
        centre = np.full_like(sums, scale.middle)
        base, spread = averages_of(sums, counts, popularity, variance, centre, scale)
        weight = counts
        if self.factors:
            roots = laplace(
                "roots of users' counts", (), sensitivity=root_counts(), epsilon=epsilon * of_roots, curator=curator
            ).added_to(np.sqrt(train.user_counts).sum())
            weight = counts * np.clip(roots / np.maximum(_totals(counts), 1), 0, 1)
        return Items(base, spread, weight, popularity)


class ValueOwnRegression(OwnRegression):
    """The value of a rating: who rated what is public, and so are all counts. Sums have Laplace noise.

    A round has noise for a user's whole part, as where neighbours differ in the presence of a rating.
    """

    variants: ClassVar[Variants] = frozenset({(Neighbours.BOUNDED, Mode.CORRECTED)})

    def measured(
        self,
        train: Ratings,
        weights: NDArray[np.float64],
        epsilons: Epsilons,
        share: NDArray[np.float64],
        curator: Curator,
    ) -> Items:
        scale, grid = train.scale, len(epsilons)
        release = laplace(
            "item sums",
            (train.n_items,),
            sensitivity=sensitivity.rating_sums(scale),
            epsilon=epsilons * (1 - share),
            curator=curator,
        )
        values = train.values.astype(np.float64) - scale.middle
        sums = release.added_to(sums_by(train.items, values, train.n_items))
        public = (
            train.item_counts.astype(np.float64),
            sums_by(train.items, weights[train.users], train.n_items),
        )
        counts, weight = (np.repeat(each[:, None], grid, axis=1) for each in public)
        popularity = popularity_of(np.log(counts + RARE), counts)
        variance = 2 * release.scale**2 + OF_RATINGS * counts
        centre = np.full_like(sums, scale.middle)
        base, spread = averages_of(sums, counts, popularity, variance, centre, scale)
        return Items(base, spread, weight, popularity)


def _totals(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(E,) sums over rows (n, E), each ε by itself, by pairs."""
    return np.array([np.ascontiguousarray(column).sum() for column in rows.T])

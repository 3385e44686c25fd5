"""DP Frank–Wolfe: matrix completion by one noisy eigenvector after the other. Jain, Thakkar and Thakurta 2018."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import Effects, OwnMeansAlgorithm
from dpmf_cli.algorithms.shared.base import Arrays, ByMode, Paper, by_mode
from dpmf_cli.algorithms.shared.budget import EffectsParameters, Fractions, Size
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.factorization import OwnFactors, at_most
from dpmf_cli.algorithms.shared.theta import NoiseKind
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.covariance import leading_eigenpairs, triangle_size
from dpmf_cli.kernels.factors import FactorModel, factor_model, move_factors
from dpmf_cli.kernels.frank_wolfe import released_grams, side_by_side, step_towards
from dpmf_cli.kernels.sums import sums_by
from dpmf_cli.privacy.covariance_sensitivity import user_gram
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_gaussian
from dpmf_cli.privacy.neighbours import Mode, Neighbours

SECONDS_PER_VISIT, SECONDS_PER_ENTRY, SECONDS_PER_NORMAL = 4.5e-9, 4e-9, 1.3e-8
"""Per product of two ratings of one user, added to all matrices that are held side by side; per pair of items in one
matrix; per normal number drawn for that pair."""
SECONDS_PER_FIRST_VECTOR, SECONDS_PER_COEFFICIENT = 2.3e-8, 1e-9
"""Per pair of items, to find only the first eigenvector; per rating and coefficient of its user, in a step."""


class GramBudget(Fractions):
    """Fractions of θ: for both global averages, the item averages, and all matrices AᵀA."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.68, gt=0, lt=1)
    gram: float = Field(0.3, gt=0, lt=1)


class FrankWolfe(OwnMeansAlgorithm):
    """Algorithm 1. From Y = 0 and λ̂ = 0, for T steps, where x_u are user u's ratings less their known averages:

        W ← Σ_u a_u·a_uᵀ + N(0, σ²) on and above the diagonal,   a_u = P_Ω(Y_u − x_u)
        (v, λ̂²) ← the top eigenvector of W and its value,   λ′ = λ̂, published + √(σ·ln(n/β))·n^¼
        Y_u ← Π((1 − 1/T)·Y_u − (k/T)·(a_u·v/λ′)·v),        k = κ·√(m·n), m users, n items

    v and λ′ are released. Each user takes the steps alone, so predictions use the target user's own ratings (‡). In
    the paper's listing, the first step moves nothing because v is 0, and the last W is not used. Here T matrices W
    make T steps.
    """

    title = "DP Frank–Wolfe"
    counts_users = True
    paper = Paper.JAIN
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: ("most_ratings", "failure"),
        Mode.CORRECTED: ("budget", "typical_count"),
    }
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4}

    algorithm: Literal["frank_wolfe"]
    neighbours: Neighbours = Neighbours.USER
    noise: Literal[NoiseKind.GAUSSIAN] = NoiseKind.GAUSSIAN
    iterations: int = Field(4, ge=1, le=64, description="T: 5 to 50 in section 5")
    nuclear: float = Field(
        0.5, gt=0, le=1e3, description="κ: k divided by √(users × items); section 5 tries 6 to 9"
    )
    norm: Size = Field(
        10.0,
        description="L: published, the L2 bound of a user's ratings and of their predictions, so that ‖a_u‖ ≤ 2L; "
        "corrected, the norm to which a_u is clipped",
    )
    failure: float = Field(0.01, gt=0, lt=1, description="β, published: how often λ′ may be too small")
    most_ratings: int = Field(80, ge=1, description="ξ, published: the most ratings of a user, section 5")
    effects: EffectsParameters = EffectsParameters(beta_m=30, beta_u=20)
    budget: GramBudget = GramBudget()

    @property
    def factor(self) -> float:
        """Published: ε divided by Δ/σ of all steps together, with Δ = 4L²: 2·√ln(1/δ)."""
        return 2 * math.sqrt(math.log(1 / self.delta))

    def epsilon_of(self, theta: float) -> float:
        return theta * self.factor if self.mode is Mode.PUBLISHED else super().epsilon_of(theta)

    def theta_of(self, epsilon: float) -> float:
        return epsilon / self.factor if self.mode is Mode.PUBLISHED else super().theta_of(epsilon)

    def own_means(self, train: Ratings, averages: Effects) -> Effects:
        """Published: each user's mean rating, less the middle of the scale, which the items' effects hold."""
        if self.mode is Mode.CORRECTED:
            return super().own_means(train, averages)
        sums = sums_by(train.users, train.values - np.float64(train.scale.middle), train.n_users)
        means = sums / np.maximum(train.user_counts, 1)
        users = np.repeat(means[:, None], len(averages.overall), axis=1)
        return Effects(averages.items, users, averages.overall, averages.residual)

    def complete(
        self,
        train: Ratings,
        effects: Effects,
        multiplier: Doubles,
        curator: Curator,
        claimed: Epsilons | None = None,
    ) -> OwnFactors:
        """Takes the T steps. `multiplier` (E,) is σ divided by how far one user moves a triangle."""
        singular = np.zeros((self.iterations, len(multiplier)))
        nuclear = self.nuclear * math.sqrt(train.n_users * train.n_items)
        no_vectors = np.zeros((train.n_items, self.iterations))
        no_steps = np.zeros((train.n_users, self.iterations))
        model = factor_model(no_steps, no_vectors, effects.users, effects.items)
        longest = self.bounds[0]
        moves = user_gram(longest)
        noises = subsampled_gaussian(
            "AᵀA",
            (triangle_size(train.n_items),),
            repetitions=self.iterations,
            rate=1.0,
            sensitivity=moves,
            contribution=moves.value,
            multiplier=multiplier,
            curator=curator,
            claimed=claimed,
        )
        for step, noise in enumerate(noises):
            vectors = np.empty((train.n_items, len(multiplier)))
            for place, gram in released_grams(model, train, noise, longest):
                value, vector = leading_eigenpairs(gram, train.n_items, 1, which="largest")
                singular[step, place], vectors[:, place] = np.sqrt(np.maximum(value[0], 0)), vector[:, 0]
            if self.mode is Mode.PUBLISHED:
                logarithm = math.log(train.n_items / self.failure)
                singular[step] += np.sqrt(noise.scale * logarithm) * train.n_items**0.25
            move_factors(model, "items", slice(step, step + 1), vectors[:, None])
            self.step(model, train, step, singular, nuclear)
        beside = {**effects.published, "singular": singular, "nuclear": np.array([nuclear])}
        return OwnFactors(self, model.without_users(), beside, train)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds to which ‖a_u‖₂ is clipped, and to which Π scales ‖P_Ω(Y_u)‖₂ down."""
        return (2 * self.norm, self.norm) if self.mode is Mode.PUBLISHED else (self.norm, math.inf)

    def step(self, model: FactorModel, own: Ratings, step: int, singular: Doubles, nuclear: float) -> None:
        """Takes each user's step, once v and λ′ of the step are there. singular is (T, E), nuclear is k."""
        longest, limit = self.bounds
        step_towards(
            model,
            own,
            step,
            singular[step],
            keep=1 - 1 / self.iterations,
            pull=nuclear / self.iterations,
            clip=longest,
            limit=limit,
        )

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        model = items.with_users(Effects.restored(beside, self, own).users)
        for step in range(self.iterations):
            self.step(model, own, step, beside["singular"], float(beside["nuclear"][0]))
        return model

    def published(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> OwnFactors:
        """x_ui = r_ui − the mean of u's own ratings. Of a user's ratings, ξ at most are kept, drawn at random.

        The paper assumes ‖P_Ω(x_u)‖ ≤ L, and Π keeps ‖P_Ω(Y_u)‖ ≤ L, so that ‖a_u‖ ≤ 2L. Here a_u is clipped to 2L,
        which changes nothing where the assumption holds. σ = L²·√(64·T·ln(1/δ))/ε is for ε up to 2·ln(1/δ). For these
        ε the provable ε is below the claimed one, because the constant is not the best. A user without ratings gets
        the middle of the scale.
        """
        train = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        grid, middle = len(epsilons), train.scale.middle
        items, nobody = np.full((train.n_items, grid), middle), np.zeros((0, grid))
        known = Effects(items, nobody, np.full(grid, middle), np.zeros(grid))
        multiplier = math.sqrt(self.iterations) * self.factor / epsilons
        return self.complete(train, self.own_means(train, known), multiplier, curator, claimed=epsilons)

    def corrected(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> OwnFactors:
        """x_ui = r_ui − MAvg_i − r̄_u, with noisy averages MAvg and the user's own mean r̄_u (`own_means`).

        a_u is clipped to L, which needs no assumption, so Π, which bounded a_u, is left out. All ratings are kept. σ
        follows from exact composition. λ̂ is not enlarged: noise already enlarges it, and a user's step is within ±1
        anyway.
        """
        effects = self.own_means(train, self.released_averages(train, self.measurer(epsilons, curator)))
        theta = np.array([self.theta_of(float(epsilon)) for epsilon in epsilons])
        multiplier = math.sqrt(self.iterations) / (self.budget.gram * theta)
        return self.complete(train, effects, multiplier, curator)

    variants = by_mode(Neighbours.USER, published=published, corrected=corrected)

    def cost(self, shape: Shape, grid: int) -> Cost:
        if self.mode is Mode.PUBLISHED and shape.ratings > self.most_ratings * shape.users:
            kept = self.most_ratings * shape.users
            shape = Shape(shape.users, shape.items, kept, float(self.most_ratings * kept))
        pairs, times, at_once = triangle_size(shape.items), self.iterations * grid, side_by_side(shape.items)
        visits = self.iterations * math.ceil(grid / at_once) * shape.squares / 2
        drawn = self.iterations * pairs * SECONDS_PER_NORMAL
        matrices = times * pairs * (SECONDS_PER_ENTRY + SECONDS_PER_FIRST_VECTOR)
        steps = times * self.iterations * shape.ratings * SECONDS_PER_COEFFICIENT
        factors = 64.0 * shape.rows * (self.iterations + 1) * len(groups(grid))
        held = (4.0 * min(grid, at_once) + 8.0) * pairs + 160.0 * shape.ratings + factors
        seconds = visits * SECONDS_PER_VISIT + drawn + matrices + steps
        return effects_cost(shape, grid) + Cost(seconds, held)

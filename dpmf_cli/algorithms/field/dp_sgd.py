"""Stochastic gradient descent that hides a whole user from everybody: clipped users, Poisson samples, noisy sums.

Abadi et al. 2016; at user level McMahan, Ramage, Talwar and Zhang 2018. The listing is from memory.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpmf_cli.algorithms.beyond.learned_features import FURTHEST, by_lane, expected_items
from dpmf_cli.algorithms.field.chien2021 import ItemGradientsBudget
from dpmf_cli.algorithms.shared import cost as costs
from dpmf_cli.algorithms.shared.base import Arrays, Choices, Paper, PrivateAlgorithm, Where, by_mode
from dpmf_cli.algorithms.shared.budget import Delta, Size
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors, at_most, regress
from dpmf_cli.algorithms.shared.theta import Accounting, certified_gradients, where_theta_is_mu
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel, factor_model, move_factors, set_effects, set_users
from dpmf_cli.kernels.gradients import clipped_item_sums
from dpmf_cli.kernels.normal_equations import shorten_users
from dpmf_cli.privacy.covariance_sensitivity import user_rating_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import clipped_contributions, user_rows

QUALITY = 0.4
"""τ, a public guess: the deviation of items' averages from what their popularity lets expect, in stars."""
LEAST = 1e-6
"""A lower bound of W_i."""
HALF, MOST = 2.0, 0.9
"""The μ of a whole fit at which users' vectors get half of μ², and the most that they get of it."""
VARIANCE = 0.5
"""A public guess of the variance of a coordinate of users' vectors, divided by Γ²."""


class DPSGD(PrivateAlgorithm):
    """r̂_ui = b_i + v_u·φ_i,  φ_i = (1/√λ, q_i). At most k ratings of each user are used, chosen at random. Each of a
    user's n_u ratings has the weight w_u = 1/√n_u.

        W_i ← noisy Σ_u w_u over the raters of i;   b_i ← what W_i lets expect, and a noisy mean over users
            (`learned_features.expected_items`)
        T times, on a sample of the users, each drawn with probability γ:
            v_u ← κ·(user u's own ridge regression of r_ui − b_i on φ, shortened to Γ)
            g_u = (w_u·e_ui·(1, p_u))_i over all items, where e_ui is the error and p_u what v_u has for q
            (b_i, q_i) ← (b_i, q_i) + η_i·(Σ_u g_u·min(1, C/‖g_u‖) + N(0, (C·σ)²))/γ, with η_i·W_i ≤ ½
            b_i ← b_i + what the same noisy sums say of a common mean and slope over popularity (`common_move`)
        η_i = ln(1 + W_i/λ_i)/(T·W_i),   λ_i = λ_Q + s²/(τ²·W_i),   s = C·σ/(γ·√T)

    T steps at η_i shrink the error of b_i as ridge regression with λ_i would. s²/(τ²·W_i) is the best ridge for
    averages of deviation τ, seen through the noise of all steps. Predictions are made with the `users`:

        released   v_u = κ·(the shortened vector + N(0, (Γ·σ_U)²)), κ = 1/(1 + 2·σ_U²). The noise is drawn once. Its
                   part of the μ² of ε is μ²/(μ² + 4), and at most 0.9: where ε is small there are next to no vectors
        averaged   v_u = 0: everybody is predicted the averages of items
        own        each user's own vector, neither shortened nor shrunk, which only that user sees (‡)

    *Privacy.* Of norm Γ at most, user u adds one row to the table of vectors; to the counts, the mean and the sum of
    a step, user u adds a vector of norm 1, 1 and C at most, which follows from that user's ratings and from released
    numbers. An accountant composes T Gaussian steps on Poisson samples with the other Gaussian steps by privacy loss
    distributions. Samples are drawn user by user, afresh in each step, and kept secret.
    """

    title = "DP-SGD"
    about = "DP-SGD: clipped gradients of sampled users. Abadi et al. 2016, for users as McMahan et al. 2018."
    paper = Paper.ABADI
    averaged = False
    joint = Where(lambda entry: entry.users == "own", "with `users: own`")
    counts_users = True
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 3, "factors": 2}

    algorithm: Literal["dp_sgd"]
    neighbours: Neighbours = Neighbours.USER
    mode: Mode = Mode.CORRECTED
    users: Literal["released", "averaged", "own"] = Field(
        "released", description="the users in predictions; with `own`, ε protects from other users only"
    )
    factors: int = Field(0, ge=0, le=63, description="d, the length of q_i")
    most_ratings: int = Field(500, ge=1, le=10_000, description="k")
    iterations: int = Field(16, ge=1, le=10_000, description="T")
    sampling_rate: float = Field(0.5, gt=0, le=1, description="γ, the fraction of the users in a step")
    clip: Size = Field(0.6, description="C: the most that a user adds to a step, in L2 norm")
    user_norm: Size = Field(1.4, description="Γ")
    user_ridge: float = Field(10.0, ge=0.01, le=1e6, description="λ, of a user's mean; that of p_u is 1")
    item_ridge: float = Field(0.5, ge=0.01, le=1e6, description="λ_Q")
    initial_factors: InitialFactors = InitialFactors()
    budget: ItemGradientsBudget = ItemGradientsBudget(centre=0.15, counts=0.25, gradients=0.6)
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        users = {"users": "released"}, {"users": "averaged", "sampling_rate": 1.0}, {"users": "own"}
        return (users,)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
        return self

    @property
    def accounting(self) -> Accounting:
        return where_theta_is_mu(self.delta)

    def corrected(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel | OwnFactors:
        kept = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        weights, noise = 1 / np.sqrt(np.maximum(kept.user_counts, 1)), partial(gaussian, curator=curator)
        theta = np.array([self.theta_of(float(epsilon)) for epsilon in epsilons])
        of_vectors = self.part_of_vectors(theta)
        squares = {name: fraction**2 for name, fraction in self.budget.fractions.items()}
        parts = {name: (1 - of_vectors) * each / sum(squares.values()) for name, each in squares.items()}
        count, mean = user_rating_sums(1.0, 2), clipped_contributions(FURTHEST, 2, self.neighbours)
        of_counts = noise(
            "item counts", (kept.n_items,), sensitivity=count, theta=theta * np.sqrt(parts["counts"])
        )
        of_means = noise("users' means", (), sensitivity=mean, theta=theta * np.sqrt(parts["centre"]))
        weight, popularity, base = expected_items(kept, weights, of_counts, of_means)
        model, shape = self.start(kept, base, streams), (kept.n_items, 1 + self.factors)

        for_vectors = np.sqrt(of_vectors) * np.where(of_vectors > 0, theta, 0)  # ∞ of nothing is nothing
        shrunk = self.shrunk(for_vectors)
        beside, times = np.sqrt(1 - parts["gradients"]), self.iterations
        steps, multiplier = certified_gradients(self, shape, self.clip, times, beside, epsilons, curator)
        variance = (self.clip * multiplier / self.sampling_rate) ** 2 / times
        rates, chosen = self.rates(weight, variance), streams.generator("samples of users")
        for gradients in steps:
            sampled = np.flatnonzero(chosen.random(kept.n_users) < self.sampling_rate)
            users = shrunk * self.vectors(model, kept)
            set_users(model, users)
            along = np.concatenate([np.ones_like(users[:, :1]), users[:, 1:]], axis=1)
            sums, _ = clipped_item_sums(
                model, kept, self.clip, sampled=sampled, directions=along, weights=weights
            )
            noisy = gradients.added_to(sums) / self.sampling_rate
            of_all = by_lane(self.common_move, noisy[:, 0], weight, popularity, variance[None])
            base = base + of_all + rates * noisy[:, 0]
            set_effects(model, "items", base)
            move_factors(model, "items", slice(1, None), rates[:, None] * noisy[:, 1:])
        if self.users == "own":
            return OwnFactors(self, model.without_users(), {}, train)
        users = self.vectors(model, kept)
        if self.users == "released":
            moved = user_rows(self.user_norm)
            release = noise("user vectors", users.shape[:2], sensitivity=moved, theta=for_vectors)
            users = release.added_to(users)
        set_users(model, shrunk * users)
        return model

    variants = by_mode(Neighbours.USER, corrected=corrected)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        grid = items.groups[-1].part.stop
        return regress(items.with_users(np.zeros((own.n_users, grid))), own, 1.0)

    def start(self, kept: Ratings, base: Doubles, streams: Streams) -> FactorModel:
        """Items with `base` (n_items, E) and φ, and users that are 0."""
        drawn = self.initial_factors.draw(kept.n_items, self.factors, streams.start("initial item factors"))
        mean = np.full((kept.n_items, 1), 1 / math.sqrt(self.user_ridge))
        zeros = np.zeros((kept.n_users, 1 + self.factors)), np.zeros((kept.n_users, base.shape[1]))
        return factor_model(zeros[0], np.concatenate([mean, drawn], axis=1), zeros[1], base)

    def vectors(self, model: FactorModel, kept: Ratings) -> Doubles:
        """(n_users, 1 + d, E) users' own ridge regressions on the items; only those to be released are shortened."""
        if self.users != "averaged":
            regress(model, kept, 1.0)
        if self.users == "released":
            shorten_users(model, self.user_norm)
        return model.published["users"][:, :-1].astype(np.float64)

    def part_of_vectors(self, theta: Doubles) -> Doubles:
        """(E,) the fraction of the μ² of each ε that pays for users' vectors."""
        released = self.users == "released"
        return np.minimum(MOST, 1 / (1 + (HALF / theta) ** 2)) if released else np.zeros_like(theta)

    def shrunk(self, theta: Doubles) -> Doubles:
        """(E,) κ, for vectors with noise Γ/`theta`: the expectation of a coordinate is κ times its noisy value."""
        if self.users == "released":
            return 1 / (1 + 1 / (VARIANCE * theta**2))
        return np.full_like(theta, self.users == "own")

    def rates(self, weight: Doubles, variance: Doubles) -> Doubles:
        """η of coordinates with weights W, if the mean of all steps has noise of `variance`, s²."""
        weight = np.maximum(weight, LEAST)
        ridge = self.item_ridge + variance / (QUALITY**2 * weight)
        return np.minimum(np.log1p(weight / ridge) / self.iterations, 0.5) / weight

    def common_move(self, noisy: Doubles, weight: Doubles, popularity: Doubles, variance: Doubles) -> Doubles:
        """(n_items,) how far the mean and the slope over popularity move the b_i of one ε, from its noisy sum."""
        trend = np.stack([np.ones_like(popularity), popularity], axis=1)
        squares = trend**2
        return trend @ (self.rates(weight @ squares, variance * squares.sum(axis=0)) * (noisy @ trend))

    def cost(self, shape: Shape, grid: int) -> Cost:
        steps, n_groups, d = self.iterations, len(groups(grid)), self.factors + 1
        solved = (
            (shape.ratings + costs.ROW_IN_RATINGS * shape.users) * costs.gram_entries(d) * costs.SOLVED_ENTRY
        )
        summed = self.sampling_rate * shape.ratings * costs.CLIPPED_VISIT * d / 2
        rows = shape.rows * (d + 1) * costs.LINE * n_groups
        return costs.effects_cost(shape, grid) + Cost(steps * n_groups * (solved + summed), 8 * rows)

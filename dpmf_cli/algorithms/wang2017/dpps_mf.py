"""DPPS-MF: matrix factorisation by posterior sampling. Liu, Wang and Smola 2015, as Wang and Tang 2017 run it."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared.averages import Effects, OwnMeansAlgorithm
from dpmf_cli.algorithms.shared.base import IN_CORRECTED_MODE, SAMPLED, ByMode, Choices, Paper, Variants
from dpmf_cli.algorithms.shared.budget import Fractions
from dpmf_cli.algorithms.shared.cost import BATCH_VISIT, CLIPPED_VISIT, LINE, Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.effects import EffectsParameters, Part
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors, at_most, initial_factors
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.theta import NoiseKind, certified_gradients, rates_under
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, by_user, solve_rows
from dpmf_cli.kernels.clipped_gradients import clipped_item_gradients, descend_items
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, step_noisy, sum_gradients, visits_of_all
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling


class GradientsBudget(Fractions):
    """Fractions of θ: for both global averages, the item averages, and the gradients."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.7, gt=0, lt=1)
    gradients: float = Field(0.28, gt=0, lt=1)


class PosteriorSamplingMF(OwnMeansAlgorithm):
    """Matrix factorisation with privacy for users.

    These are two algorithms: published mode samples from a posterior, corrected mode descends noisy gradients of the
    items. Each refuses parameters that only the other uses.
    """

    title = "DPPS-MF"
    paper = Paper.WANG
    revision = 2
    joint = IN_CORRECTED_MODE
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 5}
    by_rating = True
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: ("regularization", "initial_rate", "decay", "temperature", "most_ratings"),
        Mode.CORRECTED: (
            "learning_rate",
            "clip",
            "sampling_rate",
            "user_ridge",
            "item_ridge",
            "spread",
            "budget",
            "typical_count",
        ),
    }

    algorithm: Literal["dpps_mf"]
    neighbours: Neighbours = Neighbours.USER
    noise: Literal[NoiseKind.GAUSSIAN] = NoiseKind.GAUSSIAN
    factors: int = Field(10, ge=1, le=64, description="d: 10, 15, 20 in section 5.1")
    iterations: int = Field(50, ge=1, le=100_000, description="K; not in the paper")
    initial_factors: InitialFactors = InitialFactors()
    regularization: float = Field(0.05, ge=0, description="λ, published: 0.02, 0.05, 0.1, 0.2 in section 5.1")
    initial_rate: float = Field(
        8e-6, gt=0, description="η₁, published: 2e-9, 2e-8, 8e-7, 8e-6 in section 5.1"
    )
    decay: float = Field(0.3, ge=0, le=1, description="ξ, published: 0.3 in section 5.1")
    temperature: float = Field(
        1e-4, gt=0, le=1, description="ρ, published: 1e-4, 6e-4, 4e-3, 3e-2 in section 5.1"
    )
    most_ratings: int = Field(200, ge=1, description="τ, published, section 4.3")
    learning_rate: float = Field(0.02, gt=0, description="η, corrected")
    clip: float = Field(
        1.0, ge=1e-6, le=1e6, description="C, corrected: the most that a user adds to a gradient, in L2 norm"
    )
    sampling_rate: float = Field(
        1.0, gt=0, le=1, description="γ, corrected: the fraction of the users in a step"
    )
    user_ridge: float = Field(
        20.0,
        ge=0.01,
        le=1e6,
        description="w_P, corrected: the ridge of a user's own regression; with less, users with few ratings "
        "cannot be solved",
    )
    item_ridge: float = Field(3.0, ge=0, description="w_Q, corrected; η·w_Q is 1 at most")
    spread: float = Field(
        0.2,
        gt=0,
        description="corrected: the largest standard deviation that noise may have in a coordinate of Q",
    )
    effects: EffectsParameters = EffectsParameters(beta_m=30, beta_u=20)
    budget: GradientsBudget = GradientsBudget()

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (*super().choices(mode), SAMPLED)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
        if self.mode is Mode.CORRECTED:
            self.refuse_steps_that_diverge(self.learning_rate, "item_ridge")
        return self

    @property
    def charges_averages(self) -> bool:
        return self.mode is Mode.CORRECTED

    def published(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel:
        """E(P, Q) = ½Σ(r_ui − r̄_i − p_u·q_i)² + λ/2·(‖P‖² + ‖Q‖²), and for K steps, s = min(ε/4B, 1),

            (P, Q) ← (P, Q) − (η_t/2)·s·∇E + N(0, ρ·η_t),    η_t = η₁·t^−ξ,    B = (r_max − r_min)²·τ

        At most τ ratings of each user are used, drawn uniformly, and every step uses all of these. Item means r̄_i are
        released without noise and are not charged for. p_u is sampled and released with Q. Nothing is provable
        (`privacy.posterior`).
        """
        train = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        means = self.uncharged_averages(train, len(epsilons), curator, beta_m=0)
        chain = posterior_sampling(
            "factors",
            (train.n_users + train.n_items, self.factors),
            schedule=LangevinSchedule(self.initial_rate, self.decay, self.temperature, self.iterations),
            bound=train.scale.width**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
        )
        factors = initial_factors(train, self.initial_factors, self.factors, streams)
        model = factor_model(*factors, np.zeros((train.n_users, len(epsilons))), means)
        descent, visits = Descent(model, momentum=0.0), visits_of_all(train, len(epsilons))
        for step in chain:
            of_users, of_items = step.noise.in_units_of(step.drift).split(train.n_users)
            sum_gradients(descent, visits, 0, len(train))
            of_users.inside(step_noisy, descent, "users", step.drift, self.regularization)
            of_items.inside(step_noisy, descent, "items", step.drift, self.regularization)
        return model

    def corrected(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> OwnFactors:
        """(ε, δ)-DP for users. No posterior is sampled. Only Q is learned from other users; each p_u is the user's
        own ridge regression on Q:

            x_ui = r_ui − MAvg_i − r̄_u,    MAvg noisy averages, r̄_u the user's own mean (`own_means`)
            K times, each on a sample of the users, each drawn with probability γ:
                p_u ← argmin Σ_i (x_ui − p·q_i)² + w_P‖p‖²
                Q ← Q + η(Σ_u clip_C((e_ui·p_u)_i) + N(0, (C·σ)²))/γ − η·w_Q·Q
            p_u once more

        An accountant certifies σ, together with the averages. η is lowered where the noise of all steps would add up
        to more than `spread` in a coordinate of Q. Predictions use the target user's own ratings (‡).
        """
        effects = self.own_means(train, self.released_averages(train, self.measurer(epsilons, curator)))
        shape, fractions = (train.n_items, self.factors), self.budget.fractions
        beside = math.hypot(fractions[Part.OVERALL], fractions[Part.ITEMS])
        steps, multiplier = certified_gradients(
            self, shape, self.clip, self.iterations, beside, epsilons, curator
        )
        rates, gamma = self.rates(multiplier), self.sampling_rate
        ratings_by_user, chosen = by_user(train), streams.generator("samples of users")
        factors = initial_factors(train, self.initial_factors, self.factors, streams)
        model = factor_model(*factors, effects.users, effects.items)
        for gradients in steps:
            sampled = np.flatnonzero(chosen.random(train.n_users) < gamma)
            solve_rows(model, ratings_by_user, self.of_a_user)
            noisy = gradients.added_to(clipped_item_gradients(model, train, sampled, self.clip))
            descend_items(model, noisy / gamma, rates, self.item_ridge)
        return OwnFactors(self, model.without_users(), effects.published, train)

    @property
    def of_a_user(self) -> RowProblem:
        return RowProblem(self.user_ridge, math.inf, per_rating=False)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        model = items.with_users(Effects.restored(beside, self, own).users)
        solve_rows(model, by_user(own), self.of_a_user)
        return model

    def rates(self, multiplier: NDArray[np.float64]) -> NDArray[np.float64]:
        """(E,) η, or less where the noise of all steps, √K·η·C·σ/γ, asks for it."""
        noise = math.sqrt(self.iterations) * self.clip * multiplier / self.sampling_rate
        return rates_under(noise, self.learning_rate, self.spread)

    variants: ClassVar[Variants] = {
        (Neighbours.USER, Mode.PUBLISHED): published,
        (Neighbours.USER, Mode.CORRECTED): corrected,
    }

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, rows = self.iterations * len(groups(grid)), shape.rows * self.factors * LINE
        visit = BATCH_VISIT if self.mode is Mode.PUBLISHED else CLIPPED_VISIT
        seconds = passes * (shape.ratings * visit * self.factors + rows * 3e-10)
        return effects_cost(shape, grid) + Cost(seconds, 6 * rows * len(groups(grid)))

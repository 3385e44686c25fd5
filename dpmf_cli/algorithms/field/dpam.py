"""DPAM: private alternating minimisation by noisy gradients. The public code of Chien et al. 2021."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared.base import (
    SAMPLED,
    Choices,
    refuse_a_delta_beyond_the_accountant,
    refuse_steps_that_diverge,
)
from dpmf_cli.algorithms.shared.budget import Fractions
from dpmf_cli.algorithms.shared.cost import Cost, Shape, fetched
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors
from dpmf_cli.algorithms.shared.item_alternation import EQUATION_ENTRY, ITEM_ENTRY, ItemAlternation
from dpmf_cli.algorithms.shared.theta import rates_under
from dpmf_cli.core.compiled.lane_groups import groups, padded_grid
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.clipped_gradients import descend_items
from dpmf_cli.kernels.normal_equations import Residuals, UserParts, item_equations
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_gaussian
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.sensitivity import clipped_contributions
from dpmf_cli.privacy.subsampling import noise_multipliers

FEW = 1000
"""Up to this many users, the learning rate is as given; it falls with more. The number of users is public."""


class ItemGradientsBudget(Fractions):
    """Fractions of θ: for the global mean, the items' counts, and the gradients."""

    centre: float = Field(0.015, gt=0, lt=1)
    counts: float = Field(0.15, gt=0, lt=1)
    gradients: float = Field(0.835, gt=0, lt=1)


class PrivateAlternatingMinimization(ItemAlternation):
    """In each of T rounds, once the users are solved, `steps` steps follow. Each step is on a sample of the users,
    each drawn with probability γ:

        Q ← Q + η(Σ_u clip_C((w_ui·(x_ui − p_u·q_i)·p_u)_i) + N(0, (C·σ)²))/γ − η·λ·Q

    An accountant certifies σ for all steps together with the mean and the counts. η is lowered for more than 1000
    users, and where the noise of all steps would add up to more than `spread` in a coordinate of Q. Published and
    corrected mode differ only in the noise of the mean m. The public code has batches of a fixed size and charges for
    them as for samples. Its rates may adapt; these do not.
    """

    title: ClassVar[str] = "DPAM"
    counts_users: ClassVar[bool] = True
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 2, "steps": 3}

    algorithm: Literal["dpam"]
    iterations: int = Field(12, ge=1, le=1000, description="T")
    factors: int = Field(2, ge=1, le=64, description="d")
    user_norm: float = Field(1.5, ge=1e-6, le=1e6, description="Γ")
    initial_factors: InitialFactors = InitialFactors(scale=0.05)
    steps: int = Field(3, ge=1, le=10_000, description="steps in each round")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="γ, the fraction of the users in a step")
    clip: float = Field(
        5.0, ge=1e-6, le=1e6, description="C: the most that a user adds to a gradient, in L2 norm"
    )
    learning_rate: float = Field(
        0.01, gt=0, le=10, description="η, for up to 1000 users; it is 1000·η/n for n users, if n is larger"
    )
    item_ridge: float = Field(3.0, ge=0, description="λ; η·λ is 1 at most")
    spread: float = Field(
        0.2,
        gt=0,
        le=100,
        description="the largest standard deviation that noise may have in a coordinate of Q",
    )
    budget: ItemGradientsBudget = ItemGradientsBudget()

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (SAMPLED,)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        refuse_a_delta_beyond_the_accountant(self.sampling_rate, self.delta)
        refuse_steps_that_diverge(self.learning_rate, "item_ridge", self.item_ridge)
        return self

    @property
    def measurements(self) -> Mapping[str, int]:
        return {"centre": 2, "counts": 1}

    def residuals(self, scale: Scale) -> Residuals:
        return Residuals(after_factors=True, vector=self.clip)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        begun = self.begin(train, epsilons, streams, curator)
        multiplier = self.noise_multipliers(epsilons)
        gradients = subsampled_gaussian(
            "gradients",
            (train.n_items, self.factors),
            repetitions=self.iterations * self.steps,
            rate=self.sampling_rate,
            sensitivity=clipped_contributions(self.clip, 2, self.neighbours),
            contribution=self.clip,
            multiplier=multiplier,
            curator=curator,
        )
        rng, rates = streams.generator("samples of users"), self.rates(multiplier, train.n_users)
        for _ in range(self.iterations):
            self.step_users(begun)
            for _ in range(self.steps):
                sample = self.of_some(begun.parts, rng)
                _, sides = item_equations(begun.model, sample, slice(None), with_gram=False)
                noisy = next(gradients).added_to(sides)
                descend_items(begun.model, noisy / self.sampling_rate, rates, self.item_ridge)
        return self.end(begun, train)

    def noise_multipliers(self, epsilons: Epsilons) -> Epsilons:
        """(E,) σ/C of the gradients, beside the mean and the counts, which take their fractions of θ."""
        beside = math.hypot(self.budget.centre, self.budget.counts)
        return noise_multipliers(
            epsilons,
            self.delta,
            rate=self.sampling_rate,
            steps=self.iterations * self.steps,
            neighbours=self.neighbours,
            beside=np.array([beside * self.theta_of(float(epsilon)) for epsilon in epsilons]),
        )

    def rates(self, multiplier: Epsilons, n_users: int) -> Epsilons:
        """(E,) η, lowered for more users than `FEW`, whose gradients add up, and for noise that would add up."""
        noise = math.sqrt(self.iterations * self.steps) * self.clip * multiplier / self.sampling_rate
        return rates_under(noise, self.learning_rate * min(1.0, FEW / n_users), self.spread)

    def of_some(self, parts: UserParts, rng: np.random.Generator) -> UserParts:
        """Returns the parts of a random sample of the users."""
        if self.sampling_rate == 1:
            return parts
        chosen = rng.random((parts.train.n_users, 1)) < self.sampling_rate
        return replace(parts, weights=replace(parts.weights, users=parts.weights.users * chosen))

    def cost(self, shape: Shape, grid: int) -> Cost:
        steps, parts, d = self.iterations * self.steps, padded_grid(grid) / 16, self.factors
        summed = steps * parts * shape.ratings * 6 * d * ITEM_ENTRY
        noise = steps * grid * shape.items * d * EQUATION_ENTRY
        held = 48.0 * shape.items * d * padded_grid(grid)
        far = (fetched(shape.users, d, steps * shape.ratings * len(groups(grid))),)
        return self.users_cost(shape, grid, self.iterations + 1) + Cost(summed + noise, held, far)

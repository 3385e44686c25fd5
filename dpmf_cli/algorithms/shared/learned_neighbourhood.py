"""Similarities that are learned: the parameters of both methods, and noisy steps with a certified ε."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared.base import (
    SAMPLED,
    ByMode,
    Choices,
    refuse_a_delta_beyond_the_accountant,
    refuse_steps_that_diverge,
)
from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.private_neighbourhood import PrivateNeighbourhood
from dpmf_cli.algorithms.shared.ratings_per_user import at_least
from dpmf_cli.algorithms.shared.theta import NoiseKind
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_noisy_similarities
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_gaussian, subsampled_laplace
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import clipped_contributions
from dpmf_cli.privacy.subsampling import before_sampling, noise_multipliers
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import later


class LearningBudget(ItemAveragesBudget):
    """Fractions of θ: for the averages, and for all steps of learning together. Corrected only."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.58, gt=0, lt=1)
    similarities: float = Field(0.40, gt=0, lt=1)


DEVIATION = {NoiseKind.LAPLACE: math.sqrt(2), NoiseKind.GAUSSIAN: 1.0}
"""The standard deviation of noise of scale 1."""


def error_bound(scale: Scale, t: int) -> float:
    """0.5 + (φ − 1)/(t + 1), φ = r_max − r_min: the bound to which section 3 clamps errors in step t = 1, 2, …"""
    return 0.5 + (scale.width - 1) / (t + 1)


class LearnedNeighbourhood(PrivateNeighbourhood):
    """Similarities S that K noisy steps learn, starting from s_ij = s₀: as published, or `certified`."""

    only: ClassVar[ByMode] = {Mode.CORRECTED: ("clip", "budget", "noise", "typical_count")}
    by_rating: ClassVar[bool] = True

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

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        laws = super().choices(mode) if mode is Mode.CORRECTED else ()
        return (*laws, SAMPLED)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        if self.mode is Mode.CORRECTED:
            refuse_a_delta_beyond_the_accountant(self.sampling_rate, self.spends_delta)
            first = float(self.rates(1, np.zeros(1))[0])
            refuse_steps_that_diverge(first, "regularization", self.regularization)
        return self

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

    def certified(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """Starts from noisy averages r̄ and S = s₀. Then, for t = 1 … K:

            U_t: a sample of the users, each with probability γ
            g_u = Σ_i clip(e_ui·∂r̂_ui/∂S) for u in U_t, each of its c_u terms clipped to c/√c_u, or to c/c_u
            S ← S − η_t·(Σ_u g_u + noise_t + λS)

        The bound is c/√c_u in the L2 norm for Gaussian noise, and c/c_u in the L1 norm for Laplace noise. c is in
        units of 1/s₀. `rates` sets η_t.

        The value of one rating enters the errors of all ratings of its user, so the user's complete gradient is
        clipped: every term is in a different row of S, hence ‖g_u‖ ≤ c. For the same reason a sample of ratings would
        amplify next to nothing, so users are sampled.
        """
        averages = self.item_averages(train, epsilons, curator)
        neighbours = self.neighbours_of_items(train)
        model = neighbourhood_model(train, neighbours, self.initial_similarity, averages)
        learned = self.clipped(self.learned_from(train, streams))
        rng = streams.generator("samples")
        for t, gradients in enumerate(self.gradients(neighbours.size, epsilons, curator), start=1):
            users = rng.random(train.n_users) < self.sampling_rate
            rates = self.rates(t, DEVIATION[self.noise] * gradients.scale)
            step = SimilarityStep(users[learned.train.users], rates, self.regularization)
            gradients.inside(descend_noisy_similarities, model, learned, step)
        return model

    @abstractmethod
    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        """(E,) η_t. `deviation` (E,) is the standard deviation of the noise of one coordinate of the gradient."""

    def clipped(self, train: Ratings) -> LearnedRatings:
        """The ratings of `train`, each with its part of its user's bound c."""
        counts = np.maximum(train.user_counts, 1)
        parts = counts if self.noise.norm == 1 else np.sqrt(counts)
        return LearnedRatings.clipped(train, self._contribution / parts, self.noise.norm)

    @property
    def _contribution(self) -> float:
        """c in units of the gradient. The gradient shrinks as S grows."""
        return self.clip / self.initial_similarity

    def gradients(self, size: int, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """The release of each step's `size` sums of gradients. They cost the ε that the averages leave."""
        noise = {NoiseKind.LAPLACE: self._laplace, NoiseKind.GAUSSIAN: self._gaussian}
        return noise[self.noise](size, epsilons, curator)

    def _laplace(self, size: int, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """Every step claims an equal part of ε."""
        each = self.budget.similarities * epsilons / self.iterations
        return (
            subsampled_laplace(
                f"gradient {t}",
                (size,),
                rate=self.sampling_rate,
                sensitivity=clipped_contributions(self._contribution, 1, self.neighbours),
                epsilon=before_sampling(each, self.sampling_rate),
                claimed=each,
                curator=curator,
                stream="gradients",
            )
            for t in range(1, self.iterations + 1)
        )

    def _gaussian(self, size: int, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """An accountant certifies all steps together, composed with the averages."""
        theta = np.array([self.theta_of(float(epsilon)) for epsilon in epsilons])
        multiplier = noise_multipliers(
            epsilons,
            self.delta,
            rate=self.sampling_rate,
            steps=self.iterations,
            neighbours=self.neighbours,
            beside=theta * np.hypot(self.budget.global_averages, self.budget.item_averages),
        )
        return subsampled_gaussian(
            "gradients",
            (size,),
            repetitions=self.iterations,
            rate=self.sampling_rate,
            sensitivity=clipped_contributions(self._contribution, 2, self.neighbours),
            contribution=self._contribution,
            multiplier=multiplier,
            curator=curator,
        )

"""Similarities that noisy steps with a certified ε learn from users' clipped contributions."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
from pydantic import model_validator

from dpmf_cli.algorithms.shared.entry_checks import (
    refuse_a_delta_beyond_the_accountant,
    refuse_steps_that_diverge,
)
from dpmf_cli.algorithms.shared.learned_neighbourhood import LearnedNeighbourhood
from dpmf_cli.algorithms.shared.theta import NoiseKind
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_noisy_similarities
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_gaussian, subsampled_laplace
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import clipped_contributions
from dpmf_cli.privacy.subsampling import before_sampling, noise_multipliers
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

DEVIATION = {NoiseKind.LAPLACE: math.sqrt(2), NoiseKind.GAUSSIAN: 1.0}
"""The standard deviation of noise of scale 1."""


class CertifiedDescent(LearnedNeighbourhood):
    """The base of both corrected methods. It starts from noisy averages r̄ and S = s₀. Then, for t = 1 … K:

        U_t: a sample of the users, each with probability γ
        g_u = Σ_i clip(e_ui·∂r̂_ui/∂S) for u in U_t, each of its c_u terms clipped to c/√c_u, or to c/c_u
        S ← S − η_t·(Σ_u g_u + noise_t + λS)

    The bound is c/√c_u in the L2 norm for Gaussian noise, and c/c_u in the L1 norm for Laplace noise. c is in units
    of 1/s₀. A subclass sets η_t.

    The value of one rating enters the errors of all ratings of its user, so the user's complete gradient is clipped:
    every term is in a different row of S, hence ‖g_u‖ ≤ c. For the same reason a sample of ratings would amplify next
    to nothing, so users are sampled.
    """

    revision: ClassVar[int] = 2

    @model_validator(mode="after")
    def _refuse_a_delta_beyond_the_accountant(self) -> Self:
        refuse_a_delta_beyond_the_accountant(self.sampling_rate, self.spends_delta)
        return self

    @model_validator(mode="after")
    def _refuse_steps_that_diverge(self) -> Self:
        refuse_steps_that_diverge(float(self.rates(1, np.zeros(1))[0]), "regularization", self.regularization)
        return self

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
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

"""Similarities learned by noisy steps whose ε is certified, from contributions of users that are clipped."""

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.entry_checks import (
    refuse_a_delta_beyond_the_accountant,
    refuse_fields_of_the_other_mode,
)
from dpmf_cli.algorithms.shared.private_neighbourhood import PrivateNeighbourhood
from dpmf_cli.algorithms.shared.theta import NoiseKind
from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.similarities import SimilarityLanes, Visits, descend_similarities
from dpmf_cli.lane_groups import groups
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.gradient_sensitivity import clipped_contributions
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_gaussian, subsampled_laplace
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.subsampling import before_sampling, noise_multipliers
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class LearningBudget(ItemAveragesBudget):
    """Fractions of θ: for the averages, and for all steps of learning together. Corrected only."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.58, gt=0, lt=1)
    similarities: float = Field(0.40, gt=0, lt=1)


class CertifiedDescent(PrivateNeighbourhood):
    """Corrected mode of what learns similarities by noisy steps, each on a sample of the *users*.

    The value of one rating enters the errors of all ratings of its user. So a user's gradient as a whole is clipped
    to ‖g_u‖ ≤ c: that of each of c_u ratings, in a row of S of its own, to c/√c_u (c/c_u in the L1 norm of Laplace
    noise). A sample of ratings would amplify next to nothing for the same reason; users are sampled.
    """

    published_fields: ClassVar[tuple[str, ...]] = ()
    corrected_fields: ClassVar[tuple[str, ...]] = ("clip", "budget", "noise", "typical_count")

    budget: LearningBudget = LearningBudget()
    initial_similarity: float = Field(1.0, ge=1e-6, le=1e6, description="s₀")
    iterations: int = Field(5, ge=1, description="K: 1 to 20, fewer for smaller ε")
    sampling_rate: float = Field(
        1.0, gt=0, le=1, description="γ: ratings (corrected: users) that a step looks at"
    )
    regularization: float = Field(0.005, ge=0, description="λ: 0.05 or 0.005")
    clip: float = Field(0.3, gt=0, description="c, corrected only: the norm of a user's gradient, at s₀ = 1")

    @model_validator(mode="after")
    def _refuse_what_is_ignored_or_not_certified(self) -> Self:
        ignored = self.published_fields if self.mode is Mode.CORRECTED else self.corrected_fields
        refuse_fields_of_the_other_mode(self, ignored)
        refuse_a_delta_beyond_the_accountant(self.sampling_rate, self.spends_delta)
        return self

    def certified_steps(
        self,
        models: list[SimilarityLanes],
        learned: Ratings,
        epsilons: Epsilons,
        streams: Streams,
        curator: Curator,
        rate: Callable[[int, Epsilons], Epsilons],
    ) -> None:
        """K steps from the errors of `learned`, in place. What they cost is what the averages have left of ε.

        rate  (E,) from t = 1 … K and (E,) the standard deviation of the noise of one coordinate of the gradient
        """
        visits, rng = self._clipped(learned), streams.generator("samples")
        root = math.sqrt(2) if self.noise is NoiseKind.LAPLACE else 1.0
        for t, noise in enumerate(self._noise(models[0].neighbours.shape, epsilons, curator), start=1):
            sampled = (rng.random(learned.n_users) < self.sampling_rate)[learned.users]
            self.step(models, visits, sampled, noise, rate(t, root * noise.scale))

    def step(
        self,
        models: list[SimilarityLanes],
        visits: Visits,
        sampled: NDArray[np.bool_],
        noise: Release,
        rates: Epsilons,
        **rest: Any,
    ) -> None:
        """One step for all ε, in place; rates (E,), `rest` as in `descend_similarities`."""
        rest = {"regularization": self.regularization, **rest}
        for model, part in zip(models, groups(len(rates)), strict=True):
            descend_similarities(
                model, visits, sampled, noise._lane_noise.unit, noise.scale[part], rates[part], **rest
            )

    def _clipped(self, train: Ratings) -> Visits:
        """The ratings of `train`, each with its part of what its user may contribute."""
        counts = np.maximum(train.user_counts, 1)
        parts = counts if self.noise is NoiseKind.LAPLACE else np.sqrt(counts)
        limits = (self.clip / self.initial_similarity / parts).astype(np.float32)
        return Visits(train, Raters.of(train), limits, self.noise.norm)

    def _noise(self, shape: tuple[int, ...], epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """Noise for each step, with its cost in the ledger."""
        scale, steps = self.clip / self.initial_similarity, self.iterations
        moves = clipped_contributions(scale, self.noise.norm, self.neighbours)
        if self.noise is NoiseKind.LAPLACE:
            each = self.budget.similarities * epsilons / steps
            before = before_sampling(each, self.sampling_rate)
            return (
                subsampled_laplace(
                    f"gradient {step + 1}",
                    shape,
                    rate=self.sampling_rate,
                    sensitivity=moves,
                    epsilon=before,
                    claimed=each,
                    curator=curator,
                    stream="gradients",
                    dtype=np.float32,
                )
                for step in range(steps)
            )
        theta = np.array([self.accounting.theta_of(float(epsilon)) for epsilon in epsilons])
        multiplier = noise_multipliers(
            epsilons,
            self.delta,
            rate=self.sampling_rate,
            steps=steps,
            neighbours=self.neighbours,
            beside=theta * np.hypot(self.budget.global_averages, self.budget.item_averages),
        )
        return subsampled_gaussian(
            "gradients",
            shape,
            repetitions=steps,
            rate=self.sampling_rate,
            sensitivity=moves,
            contribution=scale,
            multiplier=multiplier,
            curator=curator,
            dtype=np.float32,
        )

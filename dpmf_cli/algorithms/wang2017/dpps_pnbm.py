"""DPPS-PNBM: similarities sampled from their posterior, by SGLD. Wang and Tang 2017, section 4, algorithm 2."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, Variants
from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.algorithms.shared.neighbourhood import LearnedNeighbourhood
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.similarities import (
    LearnedRatings,
    NeighbourhoodModel,
    SimilarityStep,
    descend_noisy_similarities,
)
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling


class PosteriorPNBM(LearnedNeighbourhood):
    """SGLD on U = ½Σe² + λ/2·‖S‖², e over at most τ ratings of each user (section 4.3):

        S ← S − (η_t/2)·s·∇U + N(0, ρη_t),   η_t = η₁·t^−ξ,   K times

    The method protects users. Published, s tempers the posterior as theorem 2 asks for. Corrected, an accountant
    certifies s for this noise and for clipped gradients of users, and averages are noisy.
    """

    title: ClassVar[str] = "DPPS-PNBM"
    paper: ClassVar[Paper] = Paper.WANG
    revision: ClassVar[int] = 2
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 5}

    algorithm: Literal["dpps_pnbm"]
    neighbours: Neighbours = Neighbours.USER
    initial_rate: float = Field(8e-6, gt=0, le=1e4, description="η₁: 8e-8, 4e-7 or 8e-6 in the paper")
    decay: float = Field(0.3, ge=0, le=1, description="ξ")
    temperature: float = Field(0.09, gt=0, le=1, description="ρ: 0.001, 0.006 or 0.09 in the paper")
    iterations: int = Field(100, ge=1, description="K; not in the paper")
    regularization: float = Field(0.02, ge=0, description="λ: 0.02 or 0.002")
    most_ratings: int = Field(200, ge=1, description="τ: the most ratings of a user that are learned from")

    @property
    def schedule(self) -> LangevinSchedule:
        return LangevinSchedule(self.initial_rate, self.decay, self.temperature, self.iterations)

    def learned_from(self, train: Ratings, streams: Streams) -> Ratings:
        train = super().learned_from(train, streams)
        return at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))

    def published(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """Algorithm 2. From averages r̄ without noise and S = s₀, for t = 1 … K:

            L: a sample of the ratings that are learned from, each with probability γ
            ∇U = Σ_L e_ui·∂r̂_ui/∂S/γ + λS
            S ← S − (η_t/2)·s·∇U + N(0, ρη_t),   η_t = η₁·t^−ξ,   s = min(ε/4B, 1)

        with B = φ²τ, φ = r_max − r_min. ε is "x·τ" for the paper's x. Every step includes the prior, so H⁻¹ (equation
        11) is not needed, and every similarity gets noise. Nothing is provable (`privacy.posterior`), and averages
        have no noise.
        """
        model, size = self.start(train, epsilons, curator, self.initial_similarity)
        learned = LearnedRatings.unclipped(self.learned_from(train, streams))
        chain = posterior_sampling(
            "similarities",
            (size,),
            schedule=self.schedule,
            bound=train.scale.width**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
        )
        for t, langevin in enumerate(chain, start=1):
            sampled = streams.of_ratings(f"sample {t}", learned.train) < self.sampling_rate
            # (η_t/2)·s·(Σ_L/γ + λS) = rate·(Σ_L + γλS), rate = (η_t/2)·s/γ; what is measured is Σ_L.
            rates = langevin.drift / self.sampling_rate
            step = SimilarityStep(sampled, rates, self.regularization * self.sampling_rate)
            langevin.noise.in_units_of(rates).inside(descend_noisy_similarities, model, learned, step)
        return model

    def corrected(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """`LearnedNeighbourhood.certified` with the noise of SGLD, and as much of its drift as that noise certifies
        for users of norm c:

            (η_t/2)·s = √(ρη_t)/σ, s ≤ 1,   σ: the deviation of the noise of one coordinate of the gradient, public

        It is noisy gradient descent, and no posterior is sampled.
        """
        return self.certified(train, epsilons, streams=streams, curator=curator)

    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        schedule = self.schedule
        return np.minimum(schedule.rate(t) / 2, schedule.deviation(t) / np.maximum(deviation, 1e-300))

    variants: ClassVar[Variants] = {
        (Neighbours.USER, Mode.PUBLISHED): published,
        (Neighbours.USER, Mode.CORRECTED): corrected,
    }

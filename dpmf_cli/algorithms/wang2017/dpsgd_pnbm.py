"""DPSGD-PNBM: similarities learned by noisy gradient descent. Wang and Tang 2017, section 3, algorithm 1."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import ByMode, Paper, Variants, in_mode
from dpmf_cli.algorithms.shared.neighbourhood import CERTIFIED, LearnedNeighbourhood, error_bound
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels.similarities import (
    LearnedRatings,
    NeighbourhoodModel,
    SimilarityStep,
    descend_noisy_similarities,
)
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import published_similarity_gradients


class PrivatePNBM(LearnedNeighbourhood):
    """S ← S − η·(Σ e·∂r̂/∂S + noise + λS), K times.

    Published, Laplace noise is scaled to one coordinate of the gradient of one rating. Corrected, each user's
    complete gradient is clipped, and averages are noisy.
    """

    title: ClassVar[str] = "DPSGD-PNBM"
    paper: ClassVar[Paper] = Paper.WANG
    revision: ClassVar[int] = 2
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: ("floor", "upscaling"),
        Mode.CORRECTED: (*LearnedNeighbourhood.only[Mode.CORRECTED], "step_noise"),
    }

    algorithm: Literal["dpsgd_pnbm"]
    learning_rate: float = Field(0.4, gt=0, description="η: 0.1 or 0.4 in the paper")
    floor: float = Field(15.0, gt=0, description="C: 10 or 15, published only")
    step_noise: float = Field(
        0.5,
        gt=0,
        description="corrected only: the most noise of all steps together in a similarity, in units of s₀",
    )
    upscaling: float = later(
        0.0,
        ge=0,
        le=4,
        description="a, published only: the gradient of step t counts tᵃ times; section 3 does not say how it grows",
    )

    def published(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """Algorithm 1. From averages r̄ without noise and S = s₀, for t = 1 … K, φ = r_max − r_min:

            e_t = 0.5 + (φ − 1)/(t + 1),   Δ_t = 2·e_t·φ/C
            L: a sample of the ratings, each with probability γ
            e_ui = clamp(r̂_ui − r_ui, ±e_t) for (u, i) in L,   Σ_j |s_ij| at least C
            S ← S − η·(tᵃ·(Σ_L e_ui·∂r̂_ui/∂S + Laplace(Δ_t·Kγ/ε)) + λS)

        s₀ covers the listing's rescaling of S by β: predictions from (s₀, C, η, λ) and (β·s₀, β·C, β²·η, λ/β²) are
        the same, including the noise. So η covers a fixed up-scaling of gradients, and tᵃ is an up-scaling that
        grows.

        Noise is added only where a rating of L has a gradient. Nothing is provable: Δ_t bounds one coordinate of the
        gradient of one rating; averages have no noise; and Kγ·ε/(Kγ) is only the linear approximation of
        amplification, and only for samples of ratings.
        """
        model, size = self.start(train, epsilons, curator, self.initial_similarity)
        learned = LearnedRatings.unclipped(self.learned_from(train, streams))
        why = "a rating changes the gradients of all ratings of its user"
        for t in range(1, self.iterations + 1):
            bound = error_bound(train.scale, t)
            each = epsilons / self.iterations
            gradients = laplace(
                f"gradient {t}",
                (size,),
                rate=self.sampling_rate,
                sensitivity=sensitivity.no_bound_known(1, Neighbours.BOUNDED, why),
                calibrated_to=published_similarity_gradients(train.scale, bound, self.floor),
                epsilon=each / self.sampling_rate,
                claimed=each,
                curator=curator,
            )
            sampled = streams.of_ratings(f"sample {t}", learned.train) < self.sampling_rate
            scaled = t**self.upscaling
            rates = np.full(len(epsilons), self.learning_rate * scaled)
            ridge = self.regularization / scaled
            step = SimilarityStep(sampled, rates, ridge, error_bound=bound, floor=self.floor)
            gradients.inside(descend_noisy_similarities, model, learned, step, everywhere=False)
        return model

    def corrected(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """`LearnedNeighbourhood.certified` with the rate η, or less where the noise of all K steps together would
        have a standard deviation of more than `step_noise`·s₀ in a similarity.

            η_t = min(η, step_noise·s₀/(σ·√K)),   σ: the deviation of the noise of one coordinate, public
        """
        return self.certified(train, epsilons, streams=streams, curator=curator)

    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        whole = np.maximum(deviation * np.sqrt(self.iterations), 1e-300)
        return np.asarray(np.minimum(self.learning_rate, self.step_noise * self.initial_similarity / whole))

    variants: ClassVar[Variants] = {
        (Neighbours.BOUNDED, Mode.PUBLISHED): published,
        **in_mode(Mode.CORRECTED, *CERTIFIED, run=corrected),
    }

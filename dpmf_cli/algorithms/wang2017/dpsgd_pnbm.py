"""DPSGD-PNBM: similarities learned by noisy gradient descent. Wang and Tang 2017, section 3, algorithm 1."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Variants
from dpmf_cli.algorithms.shared.certified_descent import CertifiedDescent
from dpmf_cli.algorithms.shared.learned_neighbourhood import (
    OF_CERTIFIED_DESCENT,
    LearnedNeighbourhood,
    error_bound,
)
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_neighbourhood import CERTIFIED, PublishedNeighbourhood
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_noisy_similarities
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import published_similarity_gradients
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import later


class PrivatePNBM(LearnedNeighbourhood):
    """S ← S − η·(Σ e·∂r̂/∂S + noise + λS), K times.

    Published, Laplace noise is scaled to one coordinate of the gradient of one rating. Corrected, each user's
    complete gradient is clipped, and averages are noisy.
    """

    title: ClassVar[str] = "DPSGD-PNBM"
    paper: ClassVar[Paper] = Paper.WANG
    variants: ClassVar[Variants] = CERTIFIED | {(Neighbours.BOUNDED, Mode.PUBLISHED)}
    revision: ClassVar[int] = 2

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


class PublishedDPSGDPNBM(PrivatePNBM, PublishedNeighbourhood):
    """Algorithm 1. From averages r̄ without noise and S = s₀, for t = 1 … K, φ = r_max − r_min:

        e_t = 0.5 + (φ − 1)/(t + 1),   Δ_t = 2·e_t·φ/C
        L: a sample of the ratings, each with probability γ
        e_ui = clamp(r̂_ui − r_ui, ±e_t) for (u, i) in L,   Σ_j |s_ij| at least C
        S ← S − η·(tᵃ·(Σ_L e_ui·∂r̂_ui/∂S + Laplace(Δ_t·Kγ/ε)) + λS)

    s₀ covers the listing's rescaling of S by β: predictions from (s₀, C, η, λ) and (β·s₀, β·C, β²·η, λ/β²) are the
    same, including the noise. So η covers a fixed up-scaling of gradients, and tᵃ is an up-scaling that grows.

    Noise is added only where a rating of L has a gradient. Nothing is provable: Δ_t bounds one coordinate of the
    gradient of one rating; averages have no noise; and Kγ·ε/(Kγ) is only the linear approximation of amplification,
    and only for samples of ratings.
    """

    variants: ClassVar[Variants] = frozenset({(Neighbours.BOUNDED, Mode.PUBLISHED)})
    of_the_other: ClassVar[tuple[str, ...]] = (*OF_CERTIFIED_DESCENT, "step_noise")

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        neighbours = self.neighbours_of_items(train)
        model = neighbourhood_model(train, neighbours, self.initial_similarity, averages)
        learned = LearnedRatings.unclipped(self.learned_from(train, streams))
        for t in range(1, self.iterations + 1):
            bound = error_bound(train.scale, t)
            gradients = self._gradients(t, bound, train.scale, neighbours.size, epsilons, curator)
            sampled = streams.of_ratings(f"sample {t}", learned.train) < self.sampling_rate
            scaled = t**self.upscaling
            rates = np.full(len(epsilons), self.learning_rate * scaled)
            step = SimilarityStep(
                sampled, rates, self.regularization / scaled, error_bound=bound, floor=self.floor
            )
            gradients.inside(descend_noisy_similarities, model, learned, step, everywhere=False)
        return model

    def _gradients(
        self, t: int, bound: float, scale: Scale, size: int, epsilons: Epsilons, curator: Curator
    ) -> Release:
        """Returns the release of step t: its `size` sums of gradients with Laplace(Δ_t·Kγ/ε)."""
        each = epsilons / self.iterations
        return subsampled_laplace(
            f"gradient {t}",
            (size,),
            rate=self.sampling_rate,
            sensitivity=sensitivity.no_bound_known(
                1, Neighbours.BOUNDED, "a rating changes the gradients of all ratings of its user"
            ),
            calibrated_to=published_similarity_gradients(scale, bound, self.floor),
            epsilon=each / self.sampling_rate,
            claimed=each,
            curator=curator,
        )


class CorrectedDPSGDPNBM(PrivatePNBM, CertifiedDescent):
    """`CertifiedDescent` with the rate η, or less where the noise of all K steps together would have a standard
    deviation of more than `step_noise`·s₀ in a similarity.

        η_t = min(η, step_noise·s₀/(σ·√K)),   σ: the deviation of the noise of one coordinate, public
    """

    variants: ClassVar[Variants] = CERTIFIED
    of_the_other: ClassVar[tuple[str, ...]] = ("floor", "upscaling")

    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        whole = np.maximum(deviation * np.sqrt(self.iterations), 1e-300)
        return np.asarray(np.minimum(self.learning_rate, self.step_noise * self.initial_similarity / whole))

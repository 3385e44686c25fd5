"""DPSGD-PNBM: similarities learned by noisy gradient descent. Wang and Tang 2017, section 3, algorithm 1."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Variants, in_both_modes
from dpmf_cli.algorithms.shared.certified_descent import CertifiedDescent
from dpmf_cli.algorithms.shared.neighbourhood import NeighbourhoodModel, start_models
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.similarities import Visits
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.gradient_sensitivity import published_similarity_gradients
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams


class PrivatePNBM(CertifiedDescent):
    """Published, for t = 1 … K, on a sample of the ratings of part γ:

        S ← S − η·(Σ e·∂r̂/∂S + Laplace(Δ_t·Kγ/ε) + λS),   |e| ≤ e_t = 0.5 + (φ − 1)/(t + 1),   Δ_t = 2·e_t·φ/C

    with φ = r_max − r_min and Σ_j |s_ij| ≥ C, and noise only where a rating of the sample has a gradient. Nothing is
    provable: Δ_t bounds one coordinate of the gradient of one rating, averages have no noise, and Kγ·ε/(Kγ) is the
    linear approximation of amplification, for samples of ratings at that.

    Corrected: `CertifiedDescent`, and the rate η or less: so that the noise of all steps moves a similarity by a
    standard deviation of `step_noise`·s₀ at most, which is public.
    """

    title: ClassVar[str] = "DPSGD-PNBM"
    paper: ClassVar[Paper] = Paper.WANG
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED) | {
        (Neighbours.UNBOUNDED, Mode.CORRECTED),
        (Neighbours.USER, Mode.CORRECTED),
    }

    published_fields: ClassVar[tuple[str, ...]] = ("floor",)
    corrected_fields: ClassVar[tuple[str, ...]] = (*CertifiedDescent.corrected_fields, "step_noise")

    algorithm: Literal["dpsgd_pnbm"]
    learning_rate: float = Field(0.4, gt=0, description="η: 0.1 or 0.4 in the paper")
    floor: float = Field(15.0, gt=0, description="C: 10 or 15, published only")
    step_noise: float = Field(0.5, gt=0, description="corrected only: of all steps together, in units of s₀")

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        neighbours = self.neighbours_of_items(train)
        models = start_models(neighbours, self.initial_similarity, averages)
        if self.mode is Mode.CORRECTED:
            self.certified_steps(models, train, epsilons, streams, curator, self._certified_rate)
            return NeighbourhoodModel(train, models)
        visits = Visits(train, Raters.of(train), np.full(train.n_users, np.inf, np.float32))
        rates, rng = np.full(len(epsilons), self.learning_rate), streams.generator("samples")
        for step in range(1, self.iterations + 1):
            bound = self.error_bound(train.scale, step)
            noise = self._published_noise(step, bound, train.scale, neighbours.shape, epsilons, curator)
            sampled = rng.random(len(train)) < self.sampling_rate
            self.step(
                models, visits, sampled, noise, rates, error_bound=bound, floor=self.floor, everywhere=False
            )
        return NeighbourhoodModel(train, models)

    def _certified_rate(self, step: int, deviation: Epsilons) -> Epsilons:
        whole = np.maximum(deviation * np.sqrt(self.iterations), 1e-300)
        return np.asarray(np.minimum(self.learning_rate, self.step_noise * self.initial_similarity / whole))

    @staticmethod
    def error_bound(scale: Scale, step: int) -> float:
        """e_t, for t = 1, 2, …"""
        return 0.5 + (scale.width - 1) / (step + 1)

    def _published_noise(
        self,
        step: int,
        error_bound: float,
        scale: Scale,
        shape: tuple[int, int],
        epsilons: Epsilons,
        curator: Curator,
    ) -> Release:
        each = epsilons / self.iterations
        return subsampled_laplace(
            f"gradient {step}",
            shape,
            rate=self.sampling_rate,
            sensitivity=sensitivity.no_bound_known(
                1, Neighbours.BOUNDED, "a rating changes the gradients of all ratings of its user"
            ),
            calibrated_to=published_similarity_gradients(scale, error_bound, self.floor),
            epsilon=each / self.sampling_rate,
            claimed=each,
            curator=curator,
            dtype=np.float32,
        )

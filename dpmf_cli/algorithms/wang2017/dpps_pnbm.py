"""DPPS-PNBM: similarities sampled from their posterior, by SGLD. Wang and Tang 2017, section 4, algorithm 2."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Variants, in_both_modes
from dpmf_cli.algorithms.shared.certified_descent import CertifiedDescent
from dpmf_cli.algorithms.shared.neighbourhood import NeighbourhoodModel, start_models
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.ratings_per_user import at_most
from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.similarities import Visits
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PosteriorPNBM(CertifiedDescent):
    """SGLD on U = ½Σe² + λ/2·‖S‖², e over at most τ ratings of each user (section 4.3), for t = 1 … K:

        S ← S − (η_t/2)·s·∇U + N(0, ρη_t),   η_t = η₁·t^−ξ,   s = ε/4B,   B = φ²τ,   φ = r_max − r_min

    Users are protected, with ε "= x·τ" for the paper's x. Gradients are of a sample of the ratings of part γ, over γ;
    the prior is in every step, which needs no H⁻¹ (equation 11), and every similarity gets noise. Nothing is
    provable: `privacy.posterior`; averages have no noise.

    Corrected: the same noise, and of the drift what it certifies for users of norm c (`CertifiedDescent`), by an
    accountant: (η_t/2)·s = √(ρη_t)/(c·multiplier), s ≤ 1. It is noisy gradient descent, with the ε of all steps.
    """

    title: ClassVar[str] = "DPPS-PNBM"
    paper: ClassVar[Paper] = Paper.WANG
    variants: ClassVar[Variants] = in_both_modes(Neighbours.USER)

    algorithm: Literal["dpps_pnbm"]
    neighbours: Neighbours = Neighbours.USER
    initial_rate: float = Field(8e-6, gt=0, description="η₁: 8e-8, 4e-7 or 8e-6 in the paper")
    decay: float = Field(0.3, ge=0, le=1, description="ξ")
    temperature: float = Field(0.09, gt=0, le=1, description="ρ: 0.001, 0.006 or 0.09 in the paper")
    iterations: int = Field(100, ge=1, description="K; not in the paper")
    regularization: float = Field(0.02, ge=0, description="λ: 0.02 or 0.002")
    most_ratings: int = Field(200, ge=1, description="τ: what a user has more is not learned from")

    @property
    def schedule(self) -> LangevinSchedule:
        return LangevinSchedule(self.initial_rate, self.decay, self.temperature, self.iterations)

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        neighbours = self.neighbours_of_items(train)
        models = start_models(neighbours, self.initial_similarity, averages)
        learned = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        if self.mode is Mode.CORRECTED:
            self.certified_steps(models, learned, epsilons, streams, curator, self._certified_drift)
            return NeighbourhoodModel(train, models)
        rng = streams.generator("samples")
        visits = Visits(learned, Raters.of(learned), np.full(train.n_users, np.inf, np.float32))
        chain = posterior_sampling(
            "similarities",
            neighbours.shape,
            schedule=self.schedule,
            bound=train.scale.width**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
            dtype=np.float32,
        )
        for step in chain:
            # The kernel adds noise to the sum of gradients, of a part γ of the ratings, before the step is taken.
            rates = step.drift / self.sampling_rate
            noise = step.noise.in_units_of(rates)
            sampled = rng.random(len(learned)) < self.sampling_rate
            prior = self.regularization * self.sampling_rate
            self.step(models, visits, sampled, noise, rates, regularization=prior)
        return NeighbourhoodModel(train, models)

    def _certified_drift(self, step: int, deviation: Epsilons) -> Epsilons:
        schedule = self.schedule
        return np.minimum(schedule.rate(step) / 2, schedule.deviation(step) / np.maximum(deviation, 1e-300))

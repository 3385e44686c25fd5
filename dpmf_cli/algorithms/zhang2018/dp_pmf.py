"""DP-PMF: PMF by objective perturbation. Zhang, Liu, Chen and Zhong 2018, section 4, algorithm 2."""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.entry_checks import refuse_fields_of_the_other_mode
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.shared.objective_perturbation import ObjectivePerturbedRows
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.probabilistic import GradientDescentPMF, Kept, sampled_model
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.gradients import Descent
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import redrawn_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivatePMF(GradientDescentPMF, ObjectivePerturbedRows, PrivateAlgorithm):
    """Published, algorithm 2: U and V by PMF without noise; then V alone, from where PMF left it, for k₂ epochs of

        v_j ← v_j − γ/b·(−Σ_i (r_ij − u_i·v_j)·u_i + λ·v_j + η_j),   ‖η_j‖ ~ Gamma(d, r_max/ε), drawn anew every time

    Lines 14 and 17 undo what theorem 4 proves: V starts from the data, and the noise of many draws averages out. U is
    fitted on the ratings too, and neither ‖u‖ ≤ 1 nor |r − u·v| ≤ r_max holds. Nothing is provable. Only V is
    released: a prediction u_i·v_j takes its user's own u_i, fitted to that user's clean ratings (‡).

    Corrected: objective perturbation as theorem 4 means it, η drawn once, U not taken from the ratings, solved
    to single precision (`ObjectivePerturbedRows`). The two share d alone: each refuses
    what only the other would use.
    """

    title: ClassVar[str] = "DP-PMF"
    paper: ClassVar[Paper] = Paper.ZHANG
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)

    algorithm: Literal["dp_pmf"]
    noisy_epochs: int = Field(50, ge=1, description="k₂, published; the paper does not give it")

    @model_validator(mode="after")
    def _refuse_parameters_of_the_other_mode(self) -> Self:
        descent = {*GradientDescentPMF.model_fields, "noisy_epochs"} - {"factors"}
        of_other = ObjectivePerturbedRows.model_fields if self.mode is Mode.PUBLISHED else descent
        refuse_fields_of_the_other_mode(self, of_other)
        return self

    @property
    def shares_lanes(self) -> bool:  # type: ignore[override]
        return self.mode is Mode.PUBLISHED

    @property
    def joint(self) -> bool:  # type: ignore[override]
        """In published mode, where U has no noise and is kept from all others; corrected, U is public or noisy."""
        return self.mode is Mode.PUBLISHED

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> KnownModel | FactorModel:
        if self.mode is Mode.CORRECTED:
            return self.fit_rows(
                train, self.factors, self.neighbours, epsilons, streams=streams, curator=curator
            )
        kept = np.ones((len(train), len(epsilons)), np.bool_)
        return self.fit_samples(train, kept, epsilons, streams=streams, curator=curator)

    def fit_samples(
        self, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> KnownModel:
        """Published mode, each model of the grid on the ratings of its column of `kept`."""
        noise_of = redrawn_k_norm(
            "objective",
            (train.n_items, self.factors),
            sensitivity=sensitivity.no_bound_known(
                2, self.neighbours, "Zhang et al. 2018, algorithm 2: noise redrawn, U and V fitted before"
            ),
            calibrated_to=sensitivity.published_objective(train.scale, self.neighbours),
            epsilon=epsilons,
            curator=curator,
        )
        models = []
        for fit in self.descend(train, kept, streams):
            descent = Descent(fit.factors, momentum=0.0)
            for epoch in range(self.noisy_epochs):
                for stretch in fit.schedule.stretches:
                    noise = noise_of(f"{epoch} {stretch.place}")
                    descent.add_gradients(fit.schedule.visits, stretch.first, stretch.last, users=False)
                    scale = pad(noise.scale[fit.lanes], fit.factors.width)
                    descent.step("items", stretch.rates, self.regularization, noise._lane_noise.unit, scale)
            models.append(fit.factors)
        return sampled_model(train, kept, models)

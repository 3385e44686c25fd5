"""ISGD: input perturbation followed by SGD. Friedman, Berkovsky, Kaafar 2016, section 4.2, algorithm 3."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Cost, Shape, Variants, in_both_modes
from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.factorization import FactorModel
from dpmf_cli.algorithms.shared.factorization_cost import private_cost, sgd_fetches
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization, Visits
from dpmf_cli.kernels.lanes import groups
from dpmf_cli.kernels.sgd import descend_perturbed
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import keyed_laplace, laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_VISIT_AND_FACTOR = 2.75e-9
"""One rating visited by one group of 16 lanes, per latent factor."""
SECONDS_PER_CELL = 1.2e-8
"""One cell of the perturbed matrix: its noise, and the decision whether it survives."""


class InputPerturbationSGD(PrivateFactorization):
    """Algorithm 3, bounded:

        r̃_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B])
        r′_ui = clamp(r̃_ui + Laplace(2B/ε), [−B, B])         for every rating, once
        (P, Q) = SGD on Σ (r′_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²)

    Unbounded: r̃_ui = 0 where there is no rating; every cell of the matrix gets Laplace(B/ε) noise, is clamped, and
    is dropped where |r′_ui| ≤ α (equation 8). See `kernels.survivors` for how that is done without the matrix.

    What follows the noise is post-processing, so the claimed ε is provable but for the averages: in unbounded
    published mode their noise is too small (`private_averages`).
    """

    title: ClassVar[str] = "ISGD"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)

    algorithm: Literal["isgd"]
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01 with the factor 2 of the gradient that eq. 2 drops"
    )
    epochs: int = Field(20, ge=1, description="k, section 5.2")
    order: Literal["user_major", "shuffled"] = "user_major"
    threshold: float = Field(0.6, gt=0, description="α, unbounded only: smaller perturbed values are dropped")

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> FactorModel:
        effects = self.measure_effects(train, streams, ledger)
        if self.neighbours is Neighbours.BOUNDED:
            return self._fit_ratings(train, effects, streams, ledger)
        return self._fit_survivors(train, effects, streams, ledger)

    def _fit_ratings(self, train: Ratings, effects: Effects, streams: Streams, ledger: Ledger) -> FactorModel:
        noise = laplace(
            "residuals",
            (len(train),),
            sensitivity=sensitivity.clamped_residuals(self.bound(train.scale), train.scale),
            epsilon=self.factorization_epsilon(ledger),
            rng=streams.generator("residuals"),
            ledger=ledger,
            dtype=np.float32,
        )
        visits = Visits(train, self.order, streams)
        models = []
        for lanes in groups(len(ledger.epsilons)):
            factors = self.start(train, effects, lanes, streams)
            descend_perturbed(
                factors,
                visits.users,
                visits.items,
                visits.values,
                noise.unit,
                noise.scale[lanes],
                learning_rate=self.learning_rate,
                regularization=self.regularization,
                bound=self.bound(train.scale),
                epochs=self.epochs,
            )
            models.append(factors)
        return FactorModel(models)

    def _fit_survivors(
        self, train: Ratings, effects: Effects, streams: Streams, ledger: Ledger
    ) -> FactorModel:
        noise = keyed_laplace(
            "residuals of all cells",
            sensitivity=sensitivity.residual_cells_unbounded(self.bound(train.scale)),
            epsilon=self.factorization_epsilon(ledger),
            rng=streams.generator("residuals of all cells"),
            ledger=ledger,
        )
        rng = streams.generator("order of visits")
        order = rng.permutation(train.n_items).astype(np.int32)
        shifts = rng.integers(train.n_items, size=train.n_users)
        models = []
        for lanes in groups(len(ledger.epsilons)):
            factors = self.start(train, effects, lanes, streams)
            descend_survivors(
                factors,
                train.user_starts,
                train.items,
                train.values,
                noise.key,
                order,
                shifts,
                noise.scale[lanes],
                learning_rate=self.learning_rate,
                regularization=self.regularization,
                bound=self.bound(train.scale),
                threshold=self.threshold,
                epochs=self.epochs,
            )
            models.append(factors)
        return FactorModel(models)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, visit = self.epochs * len(groups(grid)), self.factors * SECONDS_PER_VISIT_AND_FACTOR
        if self.neighbours is Neighbours.BOUNDED:
            seconds, held = shape.ratings * (passes * visit + 4e-8), 13.0 * shape.ratings
            far = sgd_fetches(shape, self.factors, epochs=passes, by_user=self.order == "user_major")
        else:
            cells = float(shape.users) * shape.items
            seconds, held = cells * passes * (SECONDS_PER_CELL + visit), 0.0
            far = sgd_fetches(shape, self.factors, epochs=passes, by_user=True, visits=cells)
        return private_cost(shape, grid, self.factors, seconds=seconds, held=held) + Cost(0.0, 0.0, far)

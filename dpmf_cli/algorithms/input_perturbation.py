"""ISGD: input perturbation followed by SGD. Friedman, Berkovsky, Kaafar 2016, section 4.2, algorithm 3."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.base import Cost, PrivateAlgorithm, Shape
from dpmf_cli.algorithms.baselines import effects_cost
from dpmf_cli.algorithms.budget import FactorizationBudget
from dpmf_cli.algorithms.effects import bounded_effects
from dpmf_cli.algorithms.factorization import FactorModel, InitialFactors, start, visiting_order
from dpmf_cli.kernels.lanes import groups
from dpmf_cli.kernels.sgd import descend_perturbed
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_VISIT_AND_FACTOR = 4.5e-9
"""One rating visited by one group of 16 lanes, per latent factor."""


class InputPerturbationSGD(PrivateAlgorithm):
    """Algorithm 3, bounded:

        r̃_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B])
        r′_ui = clamp(r̃_ui + Laplace(2B/ε), [−B, B])         for every rating, once
        (P, Q) = SGD on Σ (r′_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²)

    Bounded: everything after the second line is post-processing, so published and corrected mode run the
    same thing and the claimed ε is provable.
    """

    title: ClassVar[str] = "ISGD"
    variants: ClassVar[frozenset[tuple[Neighbours, Mode]]] = frozenset(
        {(Neighbours.BOUNDED, Mode.PUBLISHED), (Neighbours.BOUNDED, Mode.CORRECTED)}
    )

    algorithm: Literal["isgd"]
    budget: FactorizationBudget = FactorizationBudget(
        global_averages=0.02, item_averages=0.14, user_averages=0.14, factorization=0.70
    )
    factors: int = Field(5, ge=1, le=256, description="d, table 3")
    regularization: float = Field(0.045, ge=0, description="λ, table 3")
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01 with the factor 2 of the gradient that eq. 2 drops"
    )
    epochs: int = Field(20, ge=1, description="k, section 5.2")
    initial_factors: InitialFactors = InitialFactors()
    order: Literal["user_major", "shuffled"] = "user_major"

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> FactorModel:
        budget = self.budget.for_effects(ledger.epsilons)
        effects = bounded_effects(train, self.effects, budget, streams=streams, ledger=ledger)
        bound = self.effects.residual_clamp
        noise = laplace(
            "residuals",
            (len(train),),
            sensitivity=sensitivity.clamped_residuals(bound, train.scale),
            epsilon=self.budget.factorization * ledger.epsilons,
            rng=streams.generator("residuals"),
            ledger=ledger,
            dtype=np.float32,
        )
        order = visiting_order(train, self.order, streams.generator("order of visits"))
        users, items, values = train.users[order], train.items[order], train.values[order]
        models = []
        for lanes in groups(len(ledger.epsilons)):
            factors = start(train, effects, lanes, self.initial_factors, self.factors, streams)
            descend_perturbed(
                factors,
                users,
                items,
                values,
                noise.unit,
                noise.scale[lanes],
                learning_rate=self.learning_rate,
                regularization=self.regularization,
                bound=bound,
                epochs=self.epochs,
            )
            models.append(factors)
        return FactorModel(models)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = len(groups(grid))
        averages = effects_cost(shape, grid)
        visits = shape.ratings * self.epochs * passes * self.factors * SECONDS_PER_VISIT_AND_FACTOR
        factors = (shape.users + shape.items) * (self.factors + 1) * 64.0 * passes
        return Cost(
            averages.seconds + visits + 6e-8 * shape.ratings, averages.bytes + factors + 40.0 * shape.ratings
        )

"""Matrix factorisations without noise, as they stand, tuned, and on a sample."""

from itertools import islice, product
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from dpmf_cli.algorithms.baselines.clean_averages import (
    both_averages,
    inner_folds,
    tuned_averages,
    tuned_field,
)
from dpmf_cli.algorithms.shared import factorization
from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Algorithm, Model
from dpmf_cli.algorithms.shared.budget import EffectsParameters
from dpmf_cli.algorithms.shared.cost import SOLVED_ENTRY, Cost, Shape, choice_of_averages, gram_entries
from dpmf_cli.algorithms.shared.factorization import (
    GradientDescentPMF,
    InitialFactors,
    Kept,
    KnownModel,
    UnitModel,
)
from dpmf_cli.algorithms.shared.sample_fits import AroundABase
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.core.ratings import Ratings, average_of
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import tagged
from dpmf_cli.kernels.als import RowProblem
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons

FACTORS = (5, 10, 20)
"""The values tried for d."""

RIDGES: Doubles = np.array([0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5])
"""(L,) the values tried for λ, with every d. All are fitted side by side in one pass."""

STARTS = {
    True: InitialFactors(distribution="normal", scale=0.1),
    False: InitialFactors(distribution="uniform", scale=1.0),
}
"""The distribution of the start factors with biases (True) and without (False)."""


def tuned_factorization(train: Ratings, iterations: int, streams: Streams) -> KnownModel:
    """The model r̂_ui = IAvg(i) + UAvg(u) + p_u·q_i, or r̂_ui = p_u·q_i, by ALS-WR (Zhou et al. 2008).

    β_m and β_u are those of the best averages; then biases or none, d and λ are chosen together, on the first inner
    fold.
    """
    effects = tuned_averages(train, EffectsParameters(), ("beta_u", "beta_m"))

    def factorised(train: Ratings, biased: bool, factors: int, ridges: Doubles) -> KnownModel:
        """One model for each λ of `ridges` (L,)."""
        items, users = (np.repeat(each, len(ridges), axis=1) for each in both_averages(train, effects))
        start = factorization.initial_factors(train, STARTS[biased], factors, streams)
        model = factor_model(*start, *((users, items) if biased else (0 * users, 0 * items)))
        factorization.alternate(model, train, RowProblem(ridges, bound=np.inf), iterations)
        known_users, known_items = (train.user_counts > 0)[:, None], (train.item_counts > 0)[:, None]
        return KnownModel(model, known_users, known_items, EffectsModel(items, users))

    least, chosen = np.inf, (True, FACTORS[0], RIDGES[-1:])
    for fitted, held_out in islice(inner_folds(train), 1):
        for biased, factors in product(STARTS, FACTORS):
            model = factorised(fitted, biased, factors, RIDGES)
            left = held_out.values[:, None] - model.predict(held_out.users, held_out.items)
            errors = np.square(left, dtype=np.float64).sum(axis=0)
            best = int(np.argmin(errors))
            if errors[best] < least:
                least, chosen = errors[best], (biased, factors, RIDGES[best : best + 1])
    return factorised(train, *chosen)


class AlternatingLeastSquares(Algorithm):
    """ALS-WR (Zhou et al. 2008) on the raw ratings; Friedman et al. 2016, equations 12-13, table 3 "Clean MF".

        p_u ← argmin Σ_i (r_ui − p·q_i)² + n_u·λ·‖p‖²,  then the same for items,  `iterations` times

    The paper does not say from which factors it starts, nor whether it subtracts averages first. On raw ratings, from
    factors of U[0, 1) (MATLAB's `rand`), ten iterations reproduce the printed values of both small MovieLens sets
    (docs/papers/friedman2016.md). For a user or item without training ratings, the model predicts the global average.

    `tuned` fits another model: biases, and factors of the residuals, with parameters chosen on the training ratings
    (`tuned_factorization`).
    """

    title = "Clean MF (ALS)"

    algorithm: Literal["als"]
    factors: int = Field(5, ge=1, le=256, description="d, table 3")
    regularization: float = Field(0.045, ge=0, description="λ, table 3")
    iterations: int = Field(10, ge=1, description="table 3")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)
    tuned: bool = tuned_field()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        if self.tuned:
            return tuned_factorization(train, self.iterations, streams)
        model = factorization.start_model(train, self, streams)
        factorization.alternate(model, train, RowProblem(self.regularization, bound=np.inf), self.iterations)
        return factorization.sampled_model(train, np.ones((len(train), 1), np.bool_), model)

    def cost(self, shape: Shape, grid: int) -> Cost:
        # A tuned fit tries three ranks with biases and without; the rank of its last fit is one of them.
        tried = (*FACTORS, *FACTORS, FACTORS[-1]) if self.tuned else (self.factors,)
        seconds = sum(2 * self.iterations * shape.ratings * gram_entries(d) * SOLVED_ENTRY for d in tried)
        held = shape.rows * (max(tried) + 1) * 32.0 + 40.0 * shape.ratings
        once = Cost(seconds + 1e-7 * shape.ratings, held)
        return once + choice_of_averages(shape) if self.tuned else once


class SGDFactorization(Algorithm):
    """(P, Q) = SGD on Σ (r_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²), r scaled to [0, 1].

    This is "Non-Private MF" in figures 3 and 4, of which the paper prints no parameters.
    """

    title = "Clean MF (SGD)"

    algorithm: Literal["mf_sgd"]
    factors: int = Field(20, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.02, ge=0, description="λ; not in the paper")
    learning_rate: float = Field(0.05, gt=0, le=1, description="γ, on [0, 1]; not in the paper")
    epochs: int = Field(30, ge=1, description="not in the paper")
    order: Literal["user_major", "shuffled"] = "user_major"
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=0.5)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> UnitModel:
        model = factorization.start_model(train, self, streams)
        values = (train.values[:, None] - train.scale.minimum) / train.scale.width
        factorization.descend_in_order(model, train, LaneValues.of_grid(values), self, streams)
        average = np.array([average_of(values[:, 0], 0.5)])
        known = train.user_counts > 0, train.item_counts > 0
        return UnitModel(model, train.scale, *known, average)

    def cost(self, shape: Shape, grid: int) -> Cost:
        seconds = self.epochs * shape.ratings * self.factors * 4e-9
        return Cost(seconds, shape.rows * (self.factors + 1) * 32.0 + 48.0 * shape.ratings)


class ProbabilisticMF(GradientDescentPMF, Algorithm):
    """PMF without noise: the first half of Zhang et al. 2018, algorithm 2, lines 1–13.

    U(0) and V(0) have uniformly random rows of norm 1. For a user or item without training ratings, which the paper
    leaves open, the model predicts the global average.
    """

    title = "PMF"

    shares_lanes = True

    algorithm: Literal["pmf"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> KnownModel:
        return self.fit_samples(
            train, np.ones((len(train), 1), np.bool_), epsilons, streams=streams, curator=curator
        )

    def fit_samples(
        self, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> KnownModel:
        model, _ = self.descend(train, kept, streams)
        return factorization.sampled_model(train, kept, model)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return self.descent_cost(shape, grid, self.epochs)


CleanBase = ProbabilisticMF | AlternatingLeastSquares


class Sampled(AroundABase):
    """A model without noise, fitted on the very sample that `Personalized` draws at a ceiling of ε_l or more.

    It shows what sampling alone costs: with equal parameters, both methods start from the same factors and use the
    same batches.
    """

    title = "Sampled"

    algorithm: Literal["sampled"]
    base: Annotated[CleanBase, Field(discriminator="algorithm"), BeforeValidator(tagged)]

    @property
    def default_name(self) -> str:
        return f"{self.base.title} on the sample"

    def cost(self, shape: Shape, grid: int) -> Cost:
        base = self.base.cost(shape, grid)
        return Cost(base.seconds + 1e-7 * shape.ratings, base.bytes + 40.0 * shape.ratings)

"""Clean MF by alternating least squares with weighted regularisation: the lower bound for error."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.factorization import InitialFactors, KnownModel, initial_factors
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.tuned_factorization import tuned_factorization
from dpmf_cli.algorithms.shared.tuning import tuned_field
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings, average_of
from dpmf_cli.streams import Streams


class AlternatingLeastSquares(Algorithm):
    """ALS-WR (Zhou et al. 2008) on the raw ratings; Friedman et al. 2016, equations 12-13, table 3 "Clean MF".

        p_u ← argmin Σ_i (r_ui − p·q_i)² + n_u·λ·‖p‖²,  then the same for items,  `iterations` times

    The paper does not say from which factors it starts, nor whether it subtracts averages first. On raw
    ratings, with factors from U[0, 1) (MATLAB's `rand`), ten iterations reproduce the printed values of both small
    MovieLens sets (docs/papers/friedman2016.md). For a user or item without training ratings, the model predicts the
    global average.

    `tuned` fits another model: biases, and factors of the residuals, with parameters chosen on the training ratings
    (`tuned_factorization`).
    """

    title: ClassVar[str] = "Clean MF (ALS)"

    algorithm: Literal["als"]
    factors: int = Field(5, ge=1, le=256, description="d, table 3")
    regularization: float = Field(0.045, ge=0, description="λ, table 3")
    iterations: int = Field(10, ge=1, description="table 3")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)
    tuned: bool = tuned_field()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        if self.tuned:
            return tuned_factorization(train, self.iterations, streams)
        users, items = initial_factors(train, self.initial_factors, self.factors, streams)
        model = factor_model(users, items, np.zeros((train.n_users, 1)), np.zeros((train.n_items, 1)))
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        problem = RowProblem(self.regularization, bound=np.inf)
        for _ in range(self.iterations):
            solve_rows(model, ratings_by_user, problem)
            solve_rows(model, ratings_by_item, problem)
        average = average_of(train.values, train.scale.middle)
        return KnownModel(
            model,
            (train.user_counts > 0)[:, None],
            (train.item_counts > 0)[:, None],
            np.array([average], np.float32),
        )

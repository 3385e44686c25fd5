"""What private alternating least squares share. Friedman, Berkovsky, Kaafar 2016, section 4.4."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import FactorModel
from dpmf_cli.algorithms.shared.factorization_cost import fetched, noise_on_rows, private_cost
from dpmf_cli.algorithms.shared.private_factorization import NormBoundedFactorization, Side
from dpmf_cli.kernels.als import RowProblem, solve_items, solve_users
from dpmf_cli.kernels.lanes import groups
from dpmf_cli.kernels.order import item_major
from dpmf_cli.kernels.perturb import perturb_items, perturb_users
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_GRAM_ENTRY = 7.5e-10
"""One rating, one entry of the lower triangle of its row's Gram matrix, one group of 16 lanes."""
ROW_IN_RATINGS = 10
"""Solving a row's system takes as long as adding so many ratings to it."""


class PrivateLeastSquares(NormBoundedFactorization):
    """k times: every user's ridge regression on the items with noise of ε/(2k), ‖p_u‖ ≤ p_max; then every item's."""

    regularization: float = Field(0.045, gt=0, description="λ, table 3; the noise is scaled by 1/λ")
    iterations: int = Field(5, ge=1, description="k, section 5.2")

    objective: ClassVar[bool] = False

    def sensitivities(self, side: Side, train: Ratings) -> tuple[Sensitivity, Sensitivity | None]:
        """The true sensitivity of one side's rows, and the one that the noise is scaled to if that is another."""
        raise NotImplementedError

    def problem(self, side: Side, train: Ratings) -> RowProblem:
        """What is solved for each row of a side, without its noise."""
        return RowProblem(self.regularization, self.bound(train.scale))

    def noise_factors(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """(rows,) what the scale of each row's noise is multiplied by: 1/(n·λ); 0 for a row that is not solved."""
        return np.where(counts > 0, 1 / (np.maximum(counts, 1) * self.regularization), 0.0)

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> FactorModel:
        effects = self.measure_effects(train, streams, ledger)
        user_noises, item_noises = (
            repeated_k_norm(
                f"{side} factors",
                (rows, self.factors),
                repetitions=self.iterations,
                sensitivity=true,
                calibrated_to=calibrated_to,
                epsilon=self.factorization_epsilon(ledger) / 2,
                rng=streams.generator(f"{side} factors"),
                ledger=ledger,
            )
            for side, rows, (true, calibrated_to) in (
                ("user", train.n_users, self.sensitivities("user", train)),
                ("item", train.n_items, self.sensitivities("item", train)),
            )
        )
        item_starts, raters, values = item_major(train)
        user_rows, item_rows = self.noise_factors(train.user_counts), self.noise_factors(train.item_counts)
        parts = groups(len(ledger.epsilons))
        models = [self.start(train, effects, lanes, streams) for lanes in parts]
        for factors, lanes in zip(models, parts, strict=True):
            perturb_items(factors, None, item_rows, self.item_norm, lanes)
        users, items = self.problem("user", train), self.problem("item", train)
        for user_noise, item_noise in zip(user_noises, item_noises, strict=True):
            if self.objective:
                users, items = replace(users, noise=user_noise), replace(items, noise=item_noise)
            after_users, after_items = (None, None) if self.objective else (user_noise, item_noise)
            for factors, lanes in zip(models, parts, strict=True):
                solve_users(factors, train.user_starts, train.items, train.values, users, lanes)
                perturb_users(factors, after_users, user_rows, self.user_norm, lanes)
                solve_items(factors, item_starts, raters, values, items, lanes)
                perturb_items(factors, after_items, item_rows, self.item_norm, lanes)
        return FactorModel(models)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = self.iterations * len(groups(grid))
        entries = (self.factors + 1) * (self.factors + 2) / 2
        rows = ROW_IN_RATINGS * (shape.users + shape.items)
        seconds = (
            passes * (2 * shape.ratings + rows) * entries * SECONDS_PER_GRAM_ENTRY + 3e-8 * shape.ratings
        )
        whole = private_cost(shape, grid, self.factors, seconds=seconds, held=8.0 * shape.ratings)
        sides = (shape.items, shape.users)
        far = tuple(fetched(side, self.factors, passes * shape.ratings) for side in sides)
        return whole + noise_on_rows(shape, self.factors, self.iterations) + Cost(0.0, 0.0, far)

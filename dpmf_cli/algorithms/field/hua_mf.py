"""Objective perturbation of the items' factors; users keep their own factors. Hua, Xia and Zhong 2015."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs
from dpmf_cli.algorithms.shared.averages import Part, bounded_item_averages, laplace_steps
from dpmf_cli.algorithms.shared.base import ByMode, Paper, PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.budget import Fractions
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.effects import EffectsParameters, stabilised
from dpmf_cli.algorithms.shared.factorization import InitialFactors, KnownModel, OwnFactors, initial_factors
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.probabilistic import sampled_model
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.sums import residual_sums_by_user
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours


class ItemFactorsBudget(Fractions):
    """Fractions of ε: for the global average, the item averages, and the items' factors."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.93, gt=0, lt=1)
    factors: float = Field(0.05, gt=0, lt=1)


class HuaMF(PrivateAlgorithm):
    """Section 3, a trusted recommender. U is treated as a constant with ‖u_i‖ ≤ 1, and V is released:

        V ← argmin Σ (r_ij − u_i·v_j)² + w·Σ‖v_j‖² + 2·Σ η_j·v_j,   p(η_j) ∝ exp(−ε·‖η_j‖/Δ),  Δ = r_max − r_min

    Theorem 1 has 2Δ because the gradient of its loss is 2(r − u·v)u; here η is for half of the loss. The two modes
    differ in U.
    """

    title: ClassVar[str] = "MF of Hua et al."
    paper: ClassVar[Paper] = Paper.HUA
    joint: ClassVar[bool] = True
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: ("regularization", "iterations", "initial_factors"),
        Mode.CORRECTED: ("noise_ridge", "user_ridge", "budget"),
    }

    algorithm: Literal["hua_mf"]
    factors: int = Field(2, ge=1, le=64, description="d")
    item_ridge: float = Field(1.0, ge=1e-6, le=1e6, description="w; corrected: its value without noise")
    regularization: float = Field(
        0.05, ge=0, description="λ, published: per rating, for the clean fit of U and V that comes first"
    )
    iterations: int = Field(10, ge=1, description="published: rounds of the clean fit that comes first")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)
    noise_ridge: float = Field(
        5.0, ge=0, le=1e6, description="corrected: by how much w grows for each unit of η's scale"
    )
    user_ridge: float = Field(
        30.0, ge=0.01, le=1e6, description="corrected: the ridge of a user's own regression on V"
    )
    effects: EffectsParameters = EffectsParameters(beta_m=10, beta_u=20, residual_clamp=2)
    budget: ItemFactorsBudget = ItemFactorsBudget()

    def published(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> KnownModel:
        """U is fitted to the same ratings by regularised least squares without noise, and divided by the norm of
        its longest row.

        The theorem treats U as a constant, but it is not constant: another rating moves u_i, and with it what u_i
        adds to every item that user i rated. Nothing is provable. Each user keeps u_i, and predictions use it (‡).
        """
        largest = max(abs(train.scale.minimum), abs(train.scale.maximum))
        (noise,) = repeated_k_norm(
            "objective, item factors",
            (train.n_items, self.factors),
            repetitions=1,
            sensitivity=sensitivity.no_bound_known(
                2, self.neighbours, "Hua et al. 2015, theorem 1: U is fitted on the ratings"
            ),
            calibrated_to=sensitivity.least_squares_right_hand_side(1.0, largest, train.scale),
            epsilon=epsilons,
            curator=curator,
        )
        factors, grid = initial_factors(train, self.initial_factors, self.factors, streams), len(epsilons)
        model = factor_model(*factors, np.zeros((train.n_users, grid)), np.zeros((train.n_items, grid)))
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        clean = RowProblem(self.regularization, bound=np.inf)
        for _ in range(self.iterations):
            solve_rows(model, ratings_by_user, clean)
            solve_rows(model, ratings_by_item, clean)
        for group in model.groups:
            users_rows = group.rows("users")
            users_rows /= np.linalg.norm(users_rows, axis=1).max(axis=0)
        perturbed = RowProblem(self.item_ridge, largest, per_rating=False)
        noise.inside(solve_perturbed, model, ratings_by_item, perturbed, np.inf)
        return sampled_model(train, np.ones((len(train), grid), np.bool_), model)

    def corrected(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> OwnFactors:
        """U is drawn as random unit rows that do not depend on any rating, so the theorem holds:

            x_ij = clamp(r_ij − IAvg_j, ±B),   IAvg noisy averages (`bounded_item_averages`)
            V ← as above, from x and with a w that grows with the noise
            r̂_ij = IAvg_j + r̄_i + p_i·v_j,   r̄_i the user's own mean, p_i the user's own ridge regression on V

        There is only one pass: if users' factors followed from V, every row of them would depend on the rating in
        question. Predictions use the target user's own ratings (‡).
        """
        shares = {part: self.budget.fractions[part] * epsilons for part in (Part.OVERALL, Part.ITEMS)}
        steps, moves = laplace_steps(shares, curator), sensitivity.rating_sums(train.scale)
        _, averages = bounded_item_averages(train, steps, moves, shrinkage=self.effects.of_items)
        clamp = self.effects.residual_clamp
        (noise,) = repeated_k_norm(
            "objective, item factors",
            (train.n_items, self.factors),
            repetitions=1,
            sensitivity=sensitivity.least_squares_right_hand_side(1.0, clamp, train.scale),
            epsilon=self.budget.factors * epsilons,
            curator=curator,
        )
        sphere = InitialFactors(distribution="sphere", scale=1.0)
        users = sphere.draw(train.n_users, self.factors, streams.start("public user factors"))
        items = np.zeros((train.n_items, self.factors))
        model = factor_model(users, items, np.zeros((train.n_users, len(epsilons))), averages)
        ridge = self.item_ridge + self.noise_ridge * noise.scale
        perturbed = RowProblem(ridge, clamp, per_rating=False)
        noise.inside(solve_perturbed, model, by_item(train), perturbed, np.inf)
        return OwnFactors(self, model.without_users(), {}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        averages = np.concatenate([group.table("items")[:, -1] for group in items.groups], axis=1)
        means = averages.astype(np.float64)
        sums = residual_sums_by_user(own.users, own.items, own.values, means, own.n_users)[:-1]
        counts, middle = own.user_counts[:, None].astype(np.float64), np.zeros(averages.shape[1])
        model = items.with_users(stabilised(sums, counts, self.effects.beta_u, middle))
        solve_rows(model, by_user(own), RowProblem(self.user_ridge, np.inf, per_rating=False))
        return model

    variants: ClassVar[Variants] = {
        (Neighbours.BOUNDED, Mode.PUBLISHED): published,
        (Neighbours.BOUNDED, Mode.CORRECTED): corrected,
    }

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = 1.5 if self.mode is Mode.CORRECTED else self.iterations + 0.5
        d, rows = self.factors, 2 * shape.ratings + costs.ROW_IN_RATINGS * shape.rows
        work = passes * len(groups(grid)) * rows * costs.gram_entries(d) * costs.PERTURBED_ENTRY
        seconds = work + 1e-7 * shape.ratings
        return costs.factors_cost(shape, grid, d, seconds=seconds, held=24.0 * shape.ratings)

"""Gradient descent with Gaussian noise on only the users' gradients. Mugdho and Imtiaz 2023."""

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.budget import Delta
from dpmf_cli.algorithms.shared.cost import BATCH_VISIT, LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, step_noisy, step_side, sum_gradients, visits_of_all
from dpmf_cli.kernels.releasing import project_side
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import subsampled_gaussian
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import no_bound_known


class MugdhoMF(PrivateAlgorithm):
    """Algorithm 1. x_ui = r_ui − the middle of the scale. J times, both from the factors of the step before:

        p_u ← p_u − μ·(Σ_i (p_u·q_i − x_ui)·q_i + λ·p_u + N(0, σ²)),    σ = z·τ·C,  τ = r_max − r_min,  ‖q_i‖ ≤ C
        q_i ← q_i − μ·(Σ_u (p_u·q_i − x_ui)·p_u + λ·q_i)

    The paper gives each step an ε_i, z = √(2·ln(1.25/δ_i))/ε_i, and adds up Rényi DP: ρ = J/(2z²) of zCDP, and
    ε = ρ + 2·√(ρ·ln(1/δ)), which is slightly above the exact value. So z follows from the total ε, and δ_i plays no
    part. Rows of both sides are kept within C here; the paper clips them inside the gradient.

    q_i gets no noise but uses every rating, so nothing is provable, neither for Q nor for the p_u that follow from
    it. There is no corrected mode: with noise on both sides, the method is `pbgd`.
    """

    title: ClassVar[str] = "Noise on users' gradients"
    paper: ClassVar[Paper] = Paper.MUGDHO
    variants: ClassVar[Variants] = {(Neighbours.BOUNDED, Mode.PUBLISHED): None}
    averaged: ClassVar[bool] = False

    algorithm: Literal["mugdho_mf"]
    factors: int = Field(20, ge=1, le=64, description="n: 20 in the paper")
    regularization: float = Field(0.01, ge=0, description="λ")
    learning_rate: float = Field(5e-4, gt=0, description="μ, on sums of gradients")
    iterations: int = Field(
        500, ge=1, le=100_000, description="J; in the paper until the descent settles, 2500 at most"
    )
    clip: float = Field(1.0, ge=1e-6, le=1e6, description="C")
    initial_factors: InitialFactors = InitialFactors(scale=0.01)
    delta: Delta = Field(1e-5, description="δ of all steps together")

    @property
    def spends_delta(self) -> float:
        return self.delta

    def epsilon_of(self, theta: float) -> float:
        """Returns ε for θ = Δ/σ of all steps together."""
        return theta**2 / 2 + theta * math.sqrt(2 * math.log(1 / self.delta))

    def theta_of(self, epsilon: float) -> float:
        tail = math.log(1 / self.delta)
        return math.sqrt(2 * (tail + epsilon)) - math.sqrt(2 * tail)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        move = train.scale.width * self.clip
        theta = np.array([self.theta_of(float(epsilon)) for epsilon in epsilons])
        steps = subsampled_gaussian(
            "user gradients",
            (train.n_users, self.factors),
            repetitions=self.iterations,
            rate=1.0,
            sensitivity=no_bound_known(2, self.neighbours, "Q is fitted to the ratings without noise"),
            contribution=move / 2,
            multiplier=2 * math.sqrt(self.iterations) / theta,
            claimed=epsilons,
            curator=curator,
        )
        factors, grid = initial_factors(train, self.initial_factors, self.factors, streams), len(epsilons)
        middle = np.full((train.n_items, grid), train.scale.middle)
        model = factor_model(*factors, np.zeros((train.n_users, grid)), middle)
        descent, visits = Descent(model, momentum=0.0), visits_of_all(train, grid)
        rates = np.full(grid, self.learning_rate)
        for gradients in steps:
            sum_gradients(descent, visits, 0, len(train))
            gradients.inside(step_noisy, descent, "users", rates, self.regularization)
            step_side(descent, "items", rates, self.regularization)
            project_side(model, "users", self.clip)
            project_side(model, "items", self.clip)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, rows = self.iterations * len(groups(grid)), shape.rows * self.factors * LINE
        seconds = passes * (shape.ratings * BATCH_VISIT * self.factors + rows * 3e-10)
        return Cost(seconds + 1e-7 * shape.ratings, 6 * rows * len(groups(grid)))

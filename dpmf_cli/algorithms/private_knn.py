"""Private kNN: private averages, a private item-item covariance, and the user's own ratings at prediction.

Friedman, Berkovsky, Kaafar 2016, section 5.4, after McSherry and Mironov 2009, sections 4.4-4.6 and 5.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.base import EVERY_VARIANT, Cost, PrivateAlgorithm, Shape
from dpmf_cli.algorithms.baselines import effects_cost
from dpmf_cli.algorithms.budget import AveragesBudget
from dpmf_cli.algorithms.effects import Effects
from dpmf_cli.kernels.covariance import (
    Raters,
    add_scaled,
    mean_ratios,
    shrink,
    triangle_size,
    weighted_products,
)
from dpmf_cli.kernels.neighbours import interpolate, nearest
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import LaneNoise, laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_PRODUCT = 2e-9
"""One product of two ratings of one user, added to the covariance of their items."""
SECONDS_PER_ENTRY = 1.5e-8
"""One pair of items: its noise, its shrinkage, and its part in the average covariance."""
SECONDS_PER_CANDIDATE = 5e-9
"""One rating of a user, considered as the neighbour of one item that is asked for."""
SECONDS_PER_SOLVE_ENTRY = 2e-8
"""One entry of the k × k system of one prediction, fetched and eliminated."""
SPREAD = 2.5
"""Σ c_u²/n_users over the square of the mean c_u: how unequally ratings are spread over users (ML-1M: 2.4)."""
ASKED = 1 / 9
"""Ratings to predict for each one in the training set, under ten-fold cross-validation."""


def _ascending(limits: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= limits[0] <= limits[1] <= 1:
        raise PydanticCustomError("limits", "limits must ascend within [0, 1]", {})
    return limits


Limits = Annotated[tuple[float, float], AfterValidator(_ascending)]


class NeighboursBudget(AveragesBudget):
    """Fractions of ε for the averages and for the item-item covariance (with its weights, where private)."""

    covariance: float = Field(gt=0, lt=1)


class PrivateKNN(PrivateAlgorithm):
    """r̂_ui = IAvg(i) + UAvg(u) + Σ_j w_j (r_uj − IAvg(j) − UAvg(u)), over the k items j most similar to i among
    those that u rated.

        averages by algorithms 1 and 2;   r̂_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B]);   w_u = 1/c_u
        Cov = Σ_u w_u r̂_u r̂_uᵀ + noise,   Wgt = Σ_u w_u e_u e_uᵀ + noise, clamped at 0
        Avg_ij = (Cov_ij + s·μ)/(Wgt_ij + s), with its own μ on the diagonal
        similarity: Wgt_ij;   w = (Avg_NN + ridge·I)⁻¹ Avg_Ni for the neighbours N of item i

    *Joint* differential privacy: a prediction for user u also uses u's own ratings without noise, residuals not
    clamped, so ε holds towards everyone but u. That favours it over factorisations, which use no such thing.

    Each unordered pair of items is measured once. Published mode scales the noise to the sensitivity of the whole
    symmetric matrix, 4B² bounded and 3B² (and 3 for Wgt) unbounded, as McSherry and Mironov state theirs, and so
    spends half of the ε that it claims for the step. Corrected mode scales it to what the triangle needs. Bounded,
    who rated what is public, and so is Wgt; unbounded, Cov and Wgt get half of the step's ε each.

    The papers leave s, the ridge and the limits of μ open, or train them. The defaults were chosen by RMSE on one
    fold of ML-1M, with and without noise: a choice that no ledger counts (docs/privacy.md, "Tuning").
    """

    title: ClassVar[str] = "kNN"
    variants: ClassVar[frozenset[tuple[Neighbours, Mode]]] = EVERY_VARIANT
    joint: ClassVar[bool] = True

    algorithm: Literal["pknn"]
    budget: NeighboursBudget = NeighboursBudget(
        global_averages=0.02, item_averages=0.44, user_averages=0.44, covariance=0.10
    )
    k: int = Field(20, ge=1, le=1000, description="neighbours of a prediction, at most")
    ridge: float = Field(0.2, gt=0, description="added to the variances of the k × k system, in units of B²")
    shrinkage: float = Field(
        1.0, gt=0, description="s without noise: the weight at which Avg is half way to μ"
    )
    noise_shrinkage: float = Field(
        120.0, ge=0, description="what s grows by for each unit of the noise's scale on Cov/B²"
    )
    variance_limits: Limits = Field(
        (0.25, 1.0), description="public limits of the diagonal's μ, in units of B²"
    )
    covariance_limits: Limits = Field((0.02, 0.1), description="public limits of the other entries' μ, in B²")

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> "NeighboursModel":
        effects = self.averages(train, self.budget.for_effects(ledger.epsilons), streams, ledger)
        clamp, epsilon = self.effects.residual_clamp, self.budget.covariance * ledger.epsilons

        def noise(
            step: str, moves: Sensitivity, published: Sensitivity, spent: NDArray[np.float64]
        ) -> LaneNoise:
            return laplace(
                step,
                (triangle_size(train.n_items),),
                sensitivity=moves,
                calibrated_to=published if self.mode is Mode.PUBLISHED else None,
                epsilon=spent,
                rng=streams.generator(step),
                ledger=ledger,
                dtype=np.float32,
            )

        moves = sensitivity.covariance_triangle(clamp, train.scale, self.neighbours)
        published = sensitivity.published_covariance_matrix(clamp, self.neighbours)
        if self.neighbours is Neighbours.BOUNDED:
            return NeighboursModel(self, train, effects, noise("covariance", moves, published, epsilon), None)
        of_covariance = noise("covariance", moves, published, epsilon / 2)
        moves, published = (
            sensitivity.weight_triangle_unbounded(),
            sensitivity.published_weight_matrix_unbounded(),
        )
        return NeighboursModel(
            self, train, effects, of_covariance, noise("weights", moves, published, epsilon / 2)
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        averages, pairs, asked = effects_cost(shape, grid), triangle_size(shape.items), ASKED * shape.ratings
        per_user = shape.ratings / shape.users
        products = SPREAD / 2 * per_user * shape.ratings
        search = asked * SPREAD * per_user * SECONDS_PER_CANDIDATE
        solve = asked * min(self.k, per_user) ** 2 / 2 * SECONDS_PER_SOLVE_ENTRY
        matrix = products * SECONDS_PER_PRODUCT + pairs * SECONDS_PER_ENTRY
        private_weights = self.neighbours is not Neighbours.BOUNDED
        searches, triangles = (grid, 5) if private_weights else (1, 3)
        return Cost(
            averages.seconds + grid * (matrix + solve) + searches * search + matrix,
            averages.bytes + triangles * 4.0 * pairs + (60 + ASKED * 8 * (self.k + grid)) * shape.ratings,
        )


@dataclass(frozen=True)
class NeighboursModel:
    """What a fit of `PrivateKNN` drew. A triangle is 4·n_items²/2 bytes, so none is kept for each ε: predictions
    form Cov + noise for one ε after the other, and forget it.

    covariance_noise, weight_noise  unit noise of a packed triangle each; None where weights are public
    """

    settings: PrivateKNN
    train: Ratings
    effects: Effects
    covariance_noise: LaneNoise
    weight_noise: LaneNoise | None

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        train, settings = self.train, self.settings
        raters, per_user = Raters.of(train), user_weights(train)
        clean_weight = weighted_products(train, raters, np.ones(len(train), np.float32), per_user)
        bound = settings.effects.residual_clamp
        for lane in range(out.shape[1]):
            residuals = own_residuals(train, self.effects, lane)
            clamped = np.clip(residuals, -bound, bound).astype(np.float32)
            covariance = weighted_products(train, raters, clamped, per_user)
            add_scaled(covariance, self.covariance_noise.unit, np.float32(self.covariance_noise.scale[lane]))
            if lane == 0 or self.weight_noise is not None:
                weight = self._weight(clean_weight, lane)
                found = nearest(train, users, items, weight, settings.k)
            self._shrink(covariance, weight, self.covariance_noise.scale[lane])
            out[:, lane] += interpolate(train, items, found, residuals, covariance, settings.ridge * bound**2)
        return out

    def _weight(self, clean: NDArray[np.float32], lane: int) -> NDArray[np.float32]:
        """Wgt for one ε: as it is where it is public, else with noise and clamped at 0."""
        if self.weight_noise is None:
            return clean
        noisy = clean.copy()
        add_scaled(noisy, self.weight_noise.unit, np.float32(self.weight_noise.scale[lane]))
        return np.maximum(noisy, 0, out=noisy)

    def _shrink(self, covariance: NDArray[np.float32], weight: NDArray[np.float32], noise: float) -> None:
        """Cov becomes Avg, in place; `noise` is the scale of Cov's noise."""
        settings, unit = self.settings, self.settings.effects.residual_clamp**2
        variance, common = mean_ratios(covariance, weight, self.train.n_items)
        shrink(
            covariance,
            weight,
            self.train.n_items,
            settings.shrinkage + settings.noise_shrinkage * noise / unit,
            float(np.clip(variance / unit, *settings.variance_limits)) * unit,
            float(np.clip(common / unit, *settings.covariance_limits)) * unit,
        )


def user_weights(train: Ratings) -> NDArray[np.float32]:
    """(n_users,) w_u = 1/c_u, and 1 for a user without ratings, whom no sum counts."""
    return (1 / np.maximum(train.user_counts, 1)).astype(np.float32)


def own_residuals(train: Ratings, effects: Effects, lane: int) -> NDArray[np.float64]:
    """(n_ratings,) r_ui − IAvg(i) − UAvg(u) for one ε of the grid, not clamped."""
    return np.asarray(train.values - effects.items[train.items, lane] - effects.users[train.users, lane])

"""Private kNN: private averages, a private item-item covariance, and the user's own ratings at prediction.

Friedman, Berkovsky, Kaafar 2016, section 5.4, after McSherry and Mironov 2009, sections 4.4-4.6 and 5.
"""

from typing import Literal

from pydantic import Field

from dpmf_cli.algorithms.shared import item_covariance
from dpmf_cli.algorithms.shared.averages import averages_of
from dpmf_cli.algorithms.shared.base import Paper, in_both_modes
from dpmf_cli.algorithms.shared.budget import AveragesBudget
from dpmf_cli.algorithms.shared.cost import ASKED, Cost, Shape, effects_cost, pairs_cost
from dpmf_cli.core.arrays import Ints
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.privacy import covariance_sensitivity as sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.release import Release


class NeighboursBudget(AveragesBudget):
    """Fractions of ε for the averages and for the item-item covariance (with its weights, where private)."""

    covariance: float = Field(gt=0, lt=1)


class PrivateKNN(item_covariance.CovarianceAlgorithm):
    """r̂_ui = IAvg(i) + UAvg(u) + Σ_j w_j (r_uj − IAvg(j) − UAvg(u)), over the k items j most similar to i among
    those that u rated.

        averages by algorithms 1 and 2;   r̂_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B]);   w_u = 1/c_u
        Cov = Σ_u w_u r̂_u r̂_uᵀ + noise,   Wgt = Σ_u w_u e_u e_uᵀ + noise, clamped at 0
        Avg_ij = (Cov_ij + s·μ)/(Wgt_ij + s), with its own μ on the diagonal
        similarity: Wgt_ij;   w = (Avg_NN + ridge·I)⁻¹ Avg_Ni for the neighbours N of item i

    *Joint* differential privacy: a prediction for user u also uses u's own ratings, without noise and without
    clamping their residuals, so that ε holds against everyone but u. This favours the method over factorisations,
    which use no clean ratings.

    Each unordered pair of items is measured once. Published mode scales the noise to the sensitivity of the complete
    symmetric matrix, 4B² bounded and 3B² (and 3 for Wgt) unbounded, as McSherry and Mironov state it, and so spends
    only half of the ε that it claims for the step. Corrected mode scales the noise to the sensitivity of the
    triangle. Bounded, who rated what is public, and so is Wgt. Unbounded, Cov and Wgt get half of the step's ε each.

    The papers leave s, the ridge and the limits of μ open, or train them. The defaults were chosen by RMSE on one
    fold of ML-1M, with and without noise; no ledger counts this choice (docs/privacy.md, "Tuning").
    """

    title = "kNN"
    paper = Paper.FRIEDMAN
    joint = True
    new_users = False
    revision = 3

    algorithm: Literal["pknn"]
    budget: NeighboursBudget = NeighboursBudget(
        global_averages=0.02, item_averages=0.44, user_averages=0.44, covariance=0.10
    )
    noise_shrinkage: float = Field(120.0, ge=0, description="as for `mm_knn`; chosen on ML-1M")
    diagonal_noise_shrinkage: float = Field(120.0, ge=0, description="the same for the diagonal's s")
    k: int = Field(20, ge=1, le=1000, description="the most neighbours of a prediction")

    def predictor(self, own: Ratings, users: Ints, items: Ints) -> item_covariance.NearestItems:
        ridge = self.ridge * self.effects.residual_clamp**2
        return item_covariance.NearestItems(own, users, items, k=self.k, ridge=ridge)

    @property
    def rater_weight(self) -> float:
        return 1 / self.typical_count

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> item_covariance.CovarianceModel:
        effects = averages_of(self, train, self.budget.for_effects(epsilons), curator)
        clamp, weights = self.effects.residual_clamp, item_covariance.inverse_counts(train)
        noises = self.variant(self, train, self.budget.covariance * epsilons, curator)
        released = item_covariance.ReleasedProducts(train, effects, clamp, weights, *noises)
        return item_covariance.CovarianceModel(self, released, train, effects)

    def bounded(self, train: Ratings, epsilon: Epsilons, curator: Curator) -> tuple[Release, ...]:
        """Cov with all of the step's ε. Neighbours differ in the value of one rating; who rated what, and with it
        Wgt, is public."""
        return (self.release("covariance", train, epsilon, curator),)

    def unbounded(self, train: Ratings, epsilon: Epsilons, curator: Curator) -> tuple[Release, ...]:
        """Cov and Wgt with half of the step's ε each. Neighbours differ in the presence of one rating."""
        covariance = self.release("covariance", train, epsilon / 2, curator)
        return covariance, self.release("weights", train, epsilon / 2, curator)

    def release(
        self, step: Literal["covariance", "weights"], train: Ratings, epsilon: Epsilons, curator: Curator
    ) -> Release:
        clamp, kind = self.effects.residual_clamp, self.neighbours
        true, stated = sensitivity.weight_triangle(1), sensitivity.published_weight_matrix(1)
        if step == "covariance":
            true = sensitivity.covariance_triangle(clamp, train.scale, kind)
            stated = sensitivity.published_covariance_matrix(clamp, kind)
        size, moves = (triangle_size(train.n_items),), self.calibrated(true, stated)
        return laplace(step, size, sensitivity=moves, epsilon=epsilon, curator=curator, later=True)

    variants = in_both_modes(bounded=bounded, unbounded=unbounded)

    def cost(self, shape: Shape, grid: int) -> Cost:
        private = self.private_weights
        matrix = item_covariance.covariance_cost(shape, grid, private_weights=private)
        found = item_covariance.search_cost(shape, self.k, searches=grid if private else 1)
        solved = item_covariance.solve_cost(shape, self.k, grid * ASKED * shape.ratings)
        return effects_cost(shape, grid) + matrix + found + solved

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        private = self.private_weights
        nearest = item_covariance.nearest_items_cost(
            shape, grid, self.k, pairs, calls, private_weights=private
        )
        return pairs_cost(grid, pairs) + nearest + self.matrices_anew(shape, grid, calls)

"""kNN on the private covariance. McSherry and Mironov 2009, section 4.6."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.cost import ASKED, Cost, Shape, pairs_cost
from dpmf_cli.algorithms.shared.item_products import NearestItems, nearest_items_cost, search_cost, solve_cost
from dpmf_cli.algorithms.shared.private_covariance import PrivateCovariance
from dpmf_cli.core.ratings import Ratings


class CovarianceKNN(PrivateCovariance):
    """Predicts with the k rated items that share the most raters with the item to predict (Bell and Koren 2007).

    r̂_ui = MAvg_i + r̄_u + Σ_j w_j (r_uj − MAvg_j − r̄_u),   w = (Avg_NN + ridge·I)⁻¹ Avg_Ni,   N by largest Wgt_ij
    """

    title: ClassVar[str] = "MM kNN"
    paper: ClassVar[Paper] = Paper.MCSHERRY
    revision: ClassVar[int] = 2

    algorithm: Literal["mm_knn"]

    def predictor(self, own: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]) -> NearestItems:
        ridge = self.ridge * self.effects.residual_clamp**2
        return NearestItems(own, users, items, k=self.k, ridge=ridge, cleaned=self.eigenpairs)

    def cost(self, shape: Shape, grid: int) -> Cost:
        search = search_cost(shape, self.k, searches=grid)
        return self.cost_with(shape, grid, search, solve_cost(shape, self.k, grid * ASKED * shape.ratings))

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        nearest = nearest_items_cost(shape, grid, self.k, pairs, calls, private_weights=True)
        return pairs_cost(grid, pairs) + nearest + self.matrices_anew(shape, grid, calls)

"""SVD of the private covariance. McSherry and Mironov 2009, section 4.6."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.cost import ASKED, NOTHING, Cost, Shape, pairs_cost
from dpmf_cli.algorithms.shared.item_products import Subspace
from dpmf_cli.algorithms.shared.private_covariance import PrivateCovariance
from dpmf_cli.core.ratings import Ratings


class CovarianceSVD(PrivateCovariance):
    """Predicts with the k leading eigenvectors of Avg, on which the user's own residuals are fitted by ridge
    regression.

    r̂_ui = MAvg_i + r̄_u + V_i·a,   a = argmin Σ_j (r_uj − MAvg_j − r̄_u − V_j·a)² + Σ_b ridge_b·a_b²
    """

    title: ClassVar[str] = "MM SVD"
    paper: ClassVar[Paper] = Paper.MCSHERRY
    revision: ClassVar[int] = 2

    algorithm: Literal["mm_svd"]
    ridge: float = Field(
        0.5,
        ge=1e-6,
        le=1e6,
        description="the ridge of each direction, divided by its eigenvalue over B² unless `flat_ridge`",
    )
    flat_ridge: bool = Field(
        False,
        description="use the same ridge in every direction; otherwise it is divided by the eigenvalue, as if "
        "a user's place along the direction were drawn with that variance",
    )

    def predictor(self, own: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]) -> Subspace:
        ridge = self.ridge if self.flat_ridge else self.ridge * self.effects.residual_clamp**2
        return Subspace(own, users, items, k=self.k, ridge=ridge, flat=self.flat_ridge, cleaned=self.cleaning)

    @property
    def eigenpairs(self) -> int:
        return self.k

    def cost(self, shape: Shape, grid: int) -> Cost:
        seconds = grid * (shape.ratings * self.k**2 + shape.users * self.k**3) * 5e-10
        return self.cost_with(shape, grid, NOTHING, Cost(seconds, ASKED * shape.ratings * 8.0 * grid))

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        coordinates = Cost(pairs * grid * self.k * 1e-9, 0.0)
        return pairs_cost(grid, pairs) + coordinates + self.matrices_anew(shape, grid, calls)

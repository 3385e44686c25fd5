"""Predictions by kNN and by SVD: from released matrices and the users' own ratings, and from nothing else.

McSherry and Mironov 2009, sections 4.6 and 5.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.kernels.low_rank import clean, eigen_of_low_rank
from dpmf_cli.kernels.neighbours import interpolate, nearest
from dpmf_cli.kernels.subspace import regress
from dpmf_cli.kernels.symmetric import leading_eigenpairs
from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class PredictorInput:
    """What predictions for one ε are made from: released matrices, and the users' own ratings.

    covariance, weight  packed triangles: Avg, and the noisy Wgt (clamped at 0)
    residuals           (n_ratings,) r_ui − MAvg_i − r̄_u of the users' own ratings: not released
    item_scaling        (n_items,) √MCnt_i, of one rater at least, or 1 where counts are not measured
    ridge_factor        what the predictor's ridge is multiplied by
    """

    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    residuals: NDArray[np.float64]
    item_scaling: NDArray[np.float64]
    ridge_factor: float = 1.0


class Predictor(Protocol):
    """Predicts what averages leave for pairs (users, items), n of them, for one ε after the other."""

    def __call__(self, given: PredictorInput) -> NDArray[np.float64]:
        """(n,) predicted residuals. May overwrite `given.covariance`."""


@dataclass
class NearestItems:
    """kNN after Bell and Koren 2007: weights by ridge regression over the k rated items with the largest Wgt.

    w = (Avg_NN + ridge·I)⁻¹ Avg_Ni for the neighbours N of item i. `cleaned` to a rank first, if that is not None.
    """

    own: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    k: int
    ridge: float
    cleaned: int | None = None
    _found: NDArray[np.int64] | None = field(default=None, init=False)
    _found_by: NDArray[np.float32] | None = field(default=None, init=False)

    def __call__(self, given: PredictorInput) -> NDArray[np.float64]:
        if self._found is None or given.weight is not self._found_by:
            self._found = nearest(self.own, self.users, self.items, given.weight, self.k)
            self._found_by = given.weight
        if self.cleaned is not None:
            clean(given.covariance, self.own.n_items, given.item_scaling, self.cleaned)
        ridge = self.ridge * given.ridge_factor
        return interpolate(self.own, self.items, self._found, given.residuals, given.covariance, ridge)


@dataclass(frozen=True)
class Subspace:
    """SVD: the user's ratings are fitted by ridge regression on the covariance's k leading eigenvectors.

    `flat`: every direction has the same ridge. Otherwise direction a has ridge·1/λ_a, as if a user's position along
    it were drawn from N(0, λ_a) and ratings had N(0, ridge) of their own. Directions with λ ≤ 0 are noise: left out.
    """

    own: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    k: int
    ridge: float
    flat: bool
    cleaned: bool

    def __call__(self, given: PredictorInput) -> NDArray[np.float64]:
        n_items = self.own.n_items
        if self.cleaned:
            values, vectors = eigen_of_low_rank(*clean(given.covariance, n_items, given.item_scaling, self.k))
        else:
            values, vectors = leading_eigenpairs(given.covariance, n_items, self.k, which="largest")
        kept, ridge = values > 0, self.ridge * given.ridge_factor
        ridges = np.full(kept.sum(), ridge) if self.flat else ridge / values[kept]
        return regress(self.own, self.users, self.items, given.residuals, vectors[:, kept], ridges)

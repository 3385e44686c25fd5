"""Predictions by kNN and by SVD, from only released matrices and the users' own ratings.

McSherry and Mironov 2009, sections 4.6 and 5.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.kernels.neighbours import interpolate, nearest, regress
from dpmf_cli.kernels.symmetric import eigen_of_low_rank, leading_eigenpairs, rank_k
from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class PredictorInput:
    """The input of predictions for one ε: released matrices, and the users' own ratings.

    covariance, weight  packed triangles: Avg, and the noisy Wgt (clamped at 0)
    residuals           (n_ratings,) r_ui − MAvg_i − r̄_u of the users' own ratings: not released
    item_scaling        (n_items,) √MCnt_i with MCnt_i at least 1, or 1 if counts are not measured
    """

    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    residuals: NDArray[np.float64]
    item_scaling: NDArray[np.float64]


Spectrum = tuple[NDArray[np.float64], NDArray[np.float64]] | None
"""(values (k,), vectors (n_items, k)) the eigenpairs of Avg that a predictor needs; None if it needs none."""

WithRidge = Callable[[float], NDArray[np.float64]]
"""Maps a factor to (n,) predicted residuals, with the predictor's ridge multiplied by that factor."""


class Predictor(Protocol):
    """Predicts the residuals of n pairs (users, items), for one ε after the other."""

    def spectrum(self, given: PredictorInput) -> Spectrum:
        """Computes the slow part, which does not depend on the ridge."""

    def __call__(self, given: PredictorInput, spectrum: Spectrum) -> WithRidge:
        """The function that predicts. May overwrite `given.covariance`."""


@dataclass
class NearestItems:
    """kNN after Bell and Koren 2007: weights by ridge regression over the k rated items with the largest Wgt.

    w = (Avg_NN + ridge·I)⁻¹ Avg_Ni for the neighbours N of item i. If `cleaned` is not None, Avg is first reduced to
    that rank.
    """

    own: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    k: int
    ridge: float
    cleaned: int | None = None
    _found: NDArray[np.int64] | None = field(default=None, init=False)
    _found_by: ReferenceType[NDArray[np.float32]] | None = field(default=None, init=False)
    """The Wgt that `_found` was computed from. The weak reference does not keep it in memory."""

    def spectrum(self, given: PredictorInput) -> Spectrum:
        if self.cleaned is None:
            return None
        return leading_eigenpairs(
            given.covariance, self.own.n_items, self.cleaned, scaling=given.item_scaling
        )

    def __call__(self, given: PredictorInput, spectrum: Spectrum) -> WithRidge:
        found, own, covariance = self._nearest(given.weight), self.own, given.covariance
        if spectrum is not None:
            rank_k(covariance, own.n_items, *spectrum, given.item_scaling)

        def predict(ridge_factor: float) -> NDArray[np.float64]:
            ridge = self.ridge * ridge_factor
            return interpolate(own, self.items, found, given.residuals, covariance, ridge)

        return predict

    def _nearest(self, weight: NDArray[np.float32]) -> NDArray[np.int64]:
        if self._found is None or self._found_by is None or self._found_by() is not weight:
            self._found = nearest(self.own, self.users, self.items, weight, self.k)
            self._found_by = ref(weight)
        return self._found


@dataclass(frozen=True)
class Subspace:
    """SVD: ridge regression fits the user's ratings on the covariance's k leading eigenvectors.

    If `flat`, every direction has the same ridge. Otherwise direction a has ridge·1/λ_a, as if a user's position
    along it were drawn from N(0, λ_a) and each rating had an error N(0, ridge). Directions with λ ≤ 0 are noise and
    are left out.
    """

    own: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    k: int
    ridge: float
    flat: bool
    cleaned: bool

    def spectrum(self, given: PredictorInput) -> Spectrum:
        covariance, n_items = given.covariance, self.own.n_items
        if not self.cleaned:
            return leading_eigenpairs(covariance, n_items, self.k, which="largest")
        values, vectors = leading_eigenpairs(covariance, n_items, self.k, scaling=given.item_scaling)
        return eigen_of_low_rank(values, vectors / given.item_scaling[:, None])

    def __call__(self, given: PredictorInput, spectrum: Spectrum) -> WithRidge:
        assert spectrum is not None
        values, vectors = spectrum
        kept = values > 0

        def predict(ridge_factor: float) -> NDArray[np.float64]:
            ridge = self.ridge * ridge_factor
            ridges = np.full(kept.sum(), ridge) if self.flat else ridge / values[kept]
            return regress(self.own, self.users, self.items, given.residuals, vectors[:, kept], ridges)

        return predict

"""Sums of products of two items' ratings: measured, released for a few ε at a time, and predicted from; their cost.

McSherry and Mironov 2009, sections 4.4, 4.6 and 5. A triangle takes 2·n_items² bytes (632 MB for the 17,770 items of
Netflix), so the triangles of a grid are not all kept. Those of a few ε are measured, get their noise, are used, and
are freed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import repeat
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import Effects
from dpmf_cli.algorithms.shared.cost import ASKED, Cost, Shape
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.covariance import (
    Products,
    eigen_of_low_rank,
    leading_eigenpairs,
    measured_together,
    rank_k,
    release_products,
    triangle_size,
    weighted_products,
)
from dpmf_cli.kernels.neighbours import interpolate, nearest, regress
from dpmf_cli.privacy.release import Release

Averages = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(n_items, E) and (n_users, E)."""


@dataclass(frozen=True)
class NoisyProducts:
    """The released products for one ε.

    lane        the number of that ε in the grid
    covariance  Cov with its noise: a packed triangle
    weight      Wgt with its noise, clamped at 0, or Wgt itself if it is public: a packed triangle
    scale       the scale of the noise of Cov, which is public
    """

    lane: int
    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    scale: float

    def __iter__(self) -> Iterator["NoisyProducts"]:
        """Those of a grid of one ε, which were released before: a copy, because callers overwrite Cov."""
        yield replace(self, covariance=self.covariance.copy())


@dataclass(frozen=True)
class ReleasedProducts:
    """Sums over all users for every pair of items. Iterates over them with their noise, for one ε after the other.

        Cov = Σ_u w_u r̂_u r̂_uᵀ,   r̂_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B]);   Wgt = Σ_u w_u e_u e_uᵀ

    Each iteration gives the same numbers. The clean sums leave this class only through the releases.

    effects        the averages for each ε; the users' part may be unreleased
    clamp          B
    weights        (n_users,) w
    of_covariance  the release of Cov, a packed triangle
    of_weight      the release of Wgt; None if Wgt is public
    """

    train: Ratings
    effects: Effects
    clamp: float
    weights: NDArray[np.float64]
    of_covariance: Release
    of_weight: Release | None = None

    def __iter__(self) -> Iterator[NoisyProducts]:
        scale = self.of_covariance.scale
        at_once, grid, public = measured_together(self.train.n_items), len(scale), None
        if self.of_weight is None:
            ones = np.ones(len(self.train))
            public = repeat(weighted_products(self.train, ones, self.weights).astype(np.float32))
        for start in range(0, grid, at_once):
            part = slice(start, min(start + at_once, grid))
            covariances = _released(self.covariance(part), self.of_covariance)
            weights = public or self._weights(part)
            lanes = range(part.start, part.stop)
            yield from map(NoisyProducts, lanes, covariances, weights, scale[part].tolist())
            del covariances, weights  # frees memory before the next are measured

    def covariance(self, part: slice) -> Products:
        """Cov for a part of the grid."""
        effects = self.effects
        averages = effects.items[:, part], effects.users[:, part]
        return self._products(part, self.train.values, averages, self.clamp)

    def weight(self, part: slice) -> Products:
        """Wgt for a part of the grid. It is the same for each ε: the products if all ratings are 1."""
        train = self.train
        nothing = np.zeros((train.n_items, 1)), np.zeros((train.n_users, 1))
        return self._products(part, np.ones(len(train), np.float32), nothing, 1.0)

    def _products(
        self, part: slice, values: NDArray[np.float32], averages: Averages, clamp: float
    ) -> Products:
        released = np.empty((part.stop - part.start, triangle_size(self.train.n_items)), np.float32)
        return Products(part, self.train, values, self.weights, *averages, clamp, released)

    def _weights(self, part: slice) -> NDArray[np.float32]:
        """(E, size) Wgt for a part of the grid."""
        assert self.of_weight is not None
        noisy = _released(self.weight(part), self.of_weight)
        return np.maximum(noisy, 0, out=noisy)


def _released(products: Products, release: Release) -> NDArray[np.float32]:
    """(E, size) packed triangles with their noise."""
    release.inside(release_products, products)
    return products.released


def own_residuals(ratings: Ratings, effects: Effects, lane: int) -> NDArray[np.float64]:
    """(n_ratings,) r_ui − IAvg(i) − UAvg(u) for one ε of the grid, not clamped."""
    return np.asarray(
        ratings.values - effects.items[ratings.items, lane] - effects.users[ratings.users, lane]
    )


def inverse_counts(ratings: Ratings) -> NDArray[np.float64]:
    """(n_users,) 1/c_u; 1 for a user without ratings, who enters no sum."""
    return np.asarray(1 / np.maximum(ratings.user_counts, 1))


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
        """Computes the slow part, which does not depend on the ridge."""
        if self.cleaned is None:
            return None
        return leading_eigenpairs(
            given.covariance, self.own.n_items, self.cleaned, scaling=given.item_scaling
        )

    def __call__(self, given: PredictorInput, spectrum: Spectrum) -> WithRidge:
        """The function that predicts. May overwrite `given.covariance`."""
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


Predictor = NearestItems | Subspace
"""Predicts the residuals of n pairs (users, items), for one ε after the other."""

SECONDS_PER_PRODUCT = 2e-9
"""Per product of two ratings of one user, added to the covariance of their items."""
SECONDS_PER_VISIT, SECONDS_PER_SUM = 1.7e-9, 2e-10
"""If one pass sums the covariances of several ε: per product, and per product and ε."""
SECONDS_PER_ENTRY = 6e-9
"""Per pair of items and ε: adding noise, shrinkage, its part in the average covariance, and storing it."""
SECONDS_PER_NUMBER = 1.3e-8
"""Per number of unit noise: 0.9e-8 for the normal law, 1.7e-8 for Laplace's."""
SECONDS_PER_CANDIDATE = 5e-9
"""Per rating of a user that is considered as a neighbour of one item to predict."""
SECONDS_PER_SOLVE_ENTRY = 4e-9
"""Per entry of the k × k system of one prediction, to eliminate it. It comes from a random place of the triangle."""
SECONDS_PER_EIGEN_ENTRY, SECONDS_PER_SCALED_EIGEN_ENTRY = 1.5e-7, 4e-8
"""Per pair of items, to find the leading eigenvectors by some hundred products of a matrix and a vector. A covariance
scaled by √counts has fewer directions that are alike, so it takes less: 2.4e-8 on ML-1M, 5e-8 at the size of
Netflix."""


def covariance_cost(shape: Shape, grid: int, *, private_weights: bool) -> Cost:
    """The cost of Cov for each ε, of Wgt, and of their noise and shrinkage.

    The triangles of a few ε and the noise of one are held at once.
    """
    pairs, lanes = triangle_size(shape.items), min(grid, measured_together(shape.items))
    passes = -(-grid // lanes) if grid else 0
    of_weight = SECONDS_PER_VISIT if private_weights else 0.0
    visits = passes * (SECONDS_PER_VISIT + of_weight) + grid * SECONDS_PER_SUM
    public = 0.0 if private_weights else SECONDS_PER_PRODUCT
    draws = passes * (2 if private_weights else 1) * SECONDS_PER_NUMBER
    seconds = shape.squares / 2 * (visits + public) + pairs * (draws + grid * SECONDS_PER_ENTRY)
    held = 8.0 * lanes + 8 if private_weights else 4.0 * lanes + 12
    return Cost(seconds, held * pairs + 60.0 * shape.ratings)


def search_cost(shape: Shape, k: int, *, searches: int) -> Cost:
    """The cost of `searches` searches for the neighbours of a test fold."""
    found = ASKED * shape.squares * SECONDS_PER_CANDIDATE
    return Cost(searches * found, ASKED * shape.ratings * 8.0 * k)


def solve_cost(shape: Shape, k: int, predictions: float) -> Cost:
    """The cost of so many predictions by kNN once their neighbours are found."""
    entries = predictions * min(k, shape.ratings / shape.users) ** 2 / 2
    within = 4.0 * triangle_size(shape.items)
    return Cost(entries * SECONDS_PER_SOLVE_ENTRY, 0.0, ((entries, within),))


def spectra_cost(shape: Shape, times: int, *, cleaned: bool) -> Cost:
    """The cost of finding the leading eigenpairs of a covariance `times` times."""
    per_entry = SECONDS_PER_SCALED_EIGEN_ENTRY if cleaned else SECONDS_PER_EIGEN_ENTRY
    return Cost(times * triangle_size(shape.items) * per_entry, 0.0)


def nearest_items_cost(
    shape: Shape, grid: int, k: int, pairs: float, calls: int, *, private_weights: bool
) -> Cost:
    """The cost of predicting so many pairs in so many calls: for each, a search for neighbours and their system."""
    candidates = shape.ratings / shape.users * SECONDS_PER_CANDIDATE * (grid if private_weights else 1)
    return Cost(pairs * candidates, 8.0 * k * pairs / calls) + solve_cost(shape, k, grid * pairs)

"""Sums of products of two items' ratings, measured and released for a few ε at a time.

McSherry and Mironov 2009, section 4.4. A triangle takes 2·n_items² bytes (632 MB for the 17,770 items of Netflix), so
the triangles of a grid are not all kept. Those of a few ε are measured, get their noise, are used, and are freed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.kernels.covariance import (
    Products,
    Raters,
    measured_together,
    release_products,
    triangle_size,
    weighted_products,
)
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class MeasuredProducts:
    """Clean sums over all users for every pair of items. Only releases of them may leave a fit.

        Cov = Σ_u w_u r̂_u r̂_uᵀ,   r̂_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B]);   Wgt = Σ_u w_u e_u e_uᵀ

    effects  the averages for each ε; the users' part may be unreleased
    clamp    B
    weights  (n_users,) w
    """

    train: Ratings
    effects: Effects
    clamp: float
    weights: NDArray[np.float64]

    def covariance(self, raters: Raters, part: slice) -> Products:
        """Cov for a part of the grid."""
        values, effects = self.train.values, self.effects
        return self._products(
            raters, values, effects.items[:, part], effects.users[:, part], self.clamp, part
        )

    def weight(self, raters: Raters, part: slice) -> Products:
        """Wgt for a part of the grid. It is the same for each ε: the products if all ratings are 1."""
        train = self.train
        nothing = np.zeros((train.n_items, 1)), np.zeros((train.n_users, 1))
        return self._products(raters, np.ones(len(train), np.float32), *nothing, 1.0, part)

    def public_weight(self, raters: Raters) -> NDArray[np.float32]:
        """Wgt without noise, for methods under which who rated what is public: a packed triangle."""
        ones = np.ones(len(self.train))
        return weighted_products(self.train, raters, ones, self.weights).astype(np.float32)

    def _products(
        self,
        raters: Raters,
        values: NDArray[np.float32],
        items: NDArray[np.float64],
        users: NDArray[np.float64],
        clamp: float,
        part: slice,
    ) -> Products:
        released = np.empty((part.stop - part.start, triangle_size(self.train.n_items)), np.float32)
        return Products(self.train, raters, values, self.weights, items, users, clamp, part, released)


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


@dataclass(frozen=True)
class ReleasedProducts:
    """Iterates over noisy Cov and Wgt, for one ε after the other. Each iteration gives the same numbers.

    measured       the clean products; they leave this class only through the releases
    of_covariance  the release of Cov, a packed triangle
    of_weight      the release of Wgt; None if Wgt is public
    """

    measured: MeasuredProducts
    of_covariance: Release
    of_weight: Release | None = None

    def __iter__(self) -> Iterator[NoisyProducts]:
        raters, scale = Raters.of(self.measured.train), self.of_covariance.scale
        at_once, grid = measured_together(self.measured.train.n_items), len(scale)
        public = repeat(self.measured.public_weight(raters)) if self.of_weight is None else None
        for start in range(0, grid, at_once):
            part = slice(start, min(start + at_once, grid))
            covariances = _released(self.measured.covariance(raters, part), self.of_covariance)
            weights = public or self._weights(raters, part)
            lanes = range(part.start, part.stop)
            yield from map(NoisyProducts, lanes, covariances, weights, scale[part].tolist())
            del covariances, weights  # frees memory before the next are measured

    def _weights(self, raters: Raters, part: slice) -> NDArray[np.float32]:
        """(E, size) Wgt for a part of the grid."""
        assert self.of_weight is not None
        noisy = _released(self.measured.weight(raters, part), self.of_weight)
        return np.maximum(noisy, 0, out=noisy)


@dataclass(frozen=True)
class StoredProducts:
    """Noisy Cov and Wgt for one ε that were released before. Each iteration copies Cov, because callers overwrite it.

    scale  the scale of the noise of Cov, which is public
    """

    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    scale: float

    def __iter__(self) -> Iterator[NoisyProducts]:
        yield NoisyProducts(0, self.covariance.copy(), self.weight, self.scale)


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

"""Sums of products of two items' ratings: measured for one ε after the other, and released as they are measured.

McSherry and Mironov 2009, section 4.4. A triangle takes 2·n_items² bytes (632 MB for the 17,770 items of Netflix), so
that none is kept for each ε: it is measured, gets its noise, is used, and is forgotten.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.kernels.covariance import Raters, Triangle, weighted_products, with_noise
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class MeasuredProducts:
    """What is summed, over all users, for every pair of items. Only releases of it may leave a fit.

        Cov = Σ_u w_u r̂_u r̂_uᵀ,   r̂_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B]);   Wgt = Σ_u w_u e_u e_uᵀ

    effects  the averages for each ε, whose users' part may be unreleased
    clamp    B
    weights  (n_users,) w
    """

    train: Ratings
    effects: Effects
    clamp: float
    weights: NDArray[np.float64]

    def covariance(self, raters: Raters, lane: int) -> NDArray[np.float64]:
        """Cov for one ε: a packed triangle."""
        clamped = np.clip(own_residuals(self.train, self.effects, lane), -self.clamp, self.clamp)
        return weighted_products(self.train, raters, clamped, self.weights)

    def weight(self, raters: Raters) -> NDArray[np.float64]:
        """Wgt, which is the same for each ε: a packed triangle."""
        return weighted_products(self.train, raters, np.ones(len(self.train)), self.weights)


@dataclass(frozen=True)
class NoisyProducts:
    """What is released for one ε.

    lane        its number in the grid
    covariance  Cov with its noise: a packed triangle
    weight      Wgt with its noise, clamped at 0, or Wgt itself where that is public: a packed triangle
    scale       the scale of the noise of Cov, which is public
    """

    lane: int
    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    scale: float


@dataclass(frozen=True)
class ReleasedProducts:
    """Cov and Wgt with their noise, of one ε after the other, whenever they are iterated: always the same.

    measured       what the releases are of: only they let anything of it out
    of_covariance  the release of a packed triangle
    of_weight      that of Wgt; None where Wgt is public
    """

    measured: MeasuredProducts
    of_covariance: Release
    of_weight: Release | None = None

    def __iter__(self) -> Iterator[NoisyProducts]:
        raters = Raters.of(self.measured.train)
        for lane, weight in enumerate(self._weights(raters)):
            yield NoisyProducts(
                lane, self._covariance(raters, lane), weight, float(self.of_covariance.scale[lane])
            )

    def _covariance(self, raters: Raters, lane: int) -> NDArray[np.float32]:
        """Cov for one ε."""
        return _released(self.measured.covariance(raters, lane), self.of_covariance, lane)

    def _weights(self, raters: Raters) -> Iterator[NDArray[np.float32]]:
        """Wgt for each ε; one array for all where it is public."""
        grid = len(self.of_covariance.scale)
        if self.of_weight is None:
            yield from repeat(self.measured.weight(raters).astype(np.float32), grid)
            return
        measured = self.measured.weight(raters)
        for lane in range(grid):
            noisy = _released(measured, self.of_weight, lane)
            yield np.maximum(noisy, 0, out=noisy)


@dataclass(frozen=True)
class StoredProducts:
    """Noisy Cov and Wgt for one ε that were released before; Cov is a copy each time, for it is overwritten.

    scale  that of the noise of Cov, which is public
    """

    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    scale: float

    def __iter__(self) -> Iterator[NoisyProducts]:
        yield NoisyProducts(0, self.covariance.copy(), self.weight, self.scale)


def _released(measured: NDArray[np.float64], release: Release, lane: int) -> NDArray[np.float32]:
    """A packed triangle with the noise of one ε."""
    triangle = Triangle(measured, np.empty(len(measured), np.float32), lane)
    release.inside(with_noise, triangle)
    return triangle.released


def own_residuals(ratings: Ratings, effects: Effects, lane: int) -> NDArray[np.float64]:
    """(n_ratings,) r_ui − IAvg(i) − UAvg(u) for one ε of the grid, not clamped."""
    return np.asarray(
        ratings.values - effects.items[ratings.items, lane] - effects.users[ratings.users, lane]
    )


def inverse_counts(ratings: Ratings) -> NDArray[np.float64]:
    """(n_users,) 1/c_u, and 1 for a user without ratings, whom no sum counts."""
    return np.asarray(1 / np.maximum(ratings.user_counts, 1))

"""The contribution of one rating, or one user, to the measured sums: its weight, and how far it moves them.

McSherry and Mironov 2009, sections 4.2, 4.4 and 4.5. `norm` is the norm of the noise everywhere here: 1 or 2.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.item_averages import Moves, UserWeights
from dpmf_cli.privacy import covariance_sensitivity, sensitivity
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Scale


class TriangleMoves(NamedTuple):
    """How far a packed triangle moves: the true bound, and the bound that a paper states for all ordered pairs."""

    true: Sensitivity
    stated: Sensitivity


def origin_of_sums(mode: Mode, scale: Scale) -> float:
    """The number that is subtracted from each rating before summing. Published: 0. Corrected: the middle of the
    scale, which makes the largest summand smaller."""
    return {Mode.PUBLISHED: 0.0, Mode.CORRECTED: scale.middle}[mode]


@dataclass(frozen=True)
class Contributions(ABC):
    """Weights and sensitivities for one kind of neighbours. `counts` (n,) are the numbers of ratings of n users."""

    norm: int

    def rating_weights(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """(n,) 1/‖e_u‖ in the norm of the noise; 1 for a user without ratings."""
        counts = np.maximum(counts, 1).astype(np.float64)
        return 1 / (counts if self.norm == 1 else np.sqrt(counts))

    @abstractmethod
    def sum_weights(self, counts: NDArray[np.int64]) -> UserWeights | None:
        """The weight of each of a user's ratings in sums of ratings and in counts; None if it is 1."""

    @abstractmethod
    def typical_rating(self, typical_count: float) -> float:
        """The weight of a rating in sums by item, for a user with `typical_count` ratings."""

    @abstractmethod
    def sum_moves(self, scale: Scale, mode: Mode) -> Moves:
        """How far these move: sums of ratings minus `origin_of_sums`, their counts, and sums of residuals."""

    @abstractmethod
    def product_weights(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """(n,) the weight of each product of two of a user's ratings."""

    @abstractmethod
    def covariance_moves(self, clamp: float, scale: Scale, *, widest: float, beta_u: float) -> TriangleMoves:
        """How far Cov moves. Its residuals are from own means with β_p = `beta_u`, within ±clamp; `widest` is α."""

    @abstractmethod
    def weight_moves(self) -> TriangleMoves:
        """How far Wgt moves."""


class OfARating(Contributions):
    """Neighbours differ in the presence of one rating: sums are plain, and products of user u weigh 1/‖e_u‖."""

    def sum_weights(self, counts: NDArray[np.int64]) -> None:
        return None

    def typical_rating(self, typical_count: float) -> float:
        return 1.0

    def sum_moves(self, scale: Scale, mode: Mode) -> Moves:
        of_ratings = {
            Mode.PUBLISHED: sensitivity.raw_rating_sums_unbounded,
            Mode.CORRECTED: sensitivity.centred_rating_sums_unbounded,
        }[mode]
        return Moves(
            of_ratings(scale, self.norm),
            sensitivity.rating_counts_unbounded(self.norm),
            sensitivity.residual_sums_unbounded(scale, self.norm),
            origin_of_sums(mode, scale),
        )

    def product_weights(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        return self.rating_weights(counts)

    def covariance_moves(self, clamp: float, scale: Scale, *, widest: float, beta_u: float) -> TriangleMoves:
        return TriangleMoves(
            covariance_sensitivity.own_centred_triangle(clamp, widest, beta_u, self.norm),
            covariance_sensitivity.published_own_centred_matrix(clamp, scale, self.norm),
        )

    def weight_moves(self) -> TriangleMoves:
        return TriangleMoves(
            covariance_sensitivity.weight_triangle(self.norm),
            covariance_sensitivity.published_weight_matrix(self.norm),
        )


class OfAUser(Contributions):
    """Neighbours differ in one user, with all ratings. A rating of user u weighs 1/‖e_u‖ in sums by item, and 1/c_u
    in a sum over all items. A product weighs the square of 1/‖e_u‖ (section 4.5)."""

    def sum_weights(self, counts: NDArray[np.int64]) -> UserWeights:
        return UserWeights(self.rating_weights(counts), 1 / np.maximum(counts, 1))

    def typical_rating(self, typical_count: float) -> float:
        return float(self.rating_weights(np.array([typical_count]))[0])

    def sum_moves(self, scale: Scale, mode: Mode) -> Moves:
        origin = origin_of_sums(mode, scale)
        largest = max(abs(scale.minimum - origin), abs(scale.maximum - origin))
        ratings, counts, residuals = (
            covariance_sensitivity.user_rating_sums(bound, self.norm) for bound in (largest, 1.0, scale.width)
        )
        return Moves(ratings, counts, residuals, origin)

    def product_weights(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        return self.rating_weights(counts) ** 2

    def covariance_moves(self, clamp: float, scale: Scale, *, widest: float, beta_u: float) -> TriangleMoves:
        moves = covariance_sensitivity.user_triangle(clamp, self.norm)
        return TriangleMoves(moves, moves)

    def weight_moves(self) -> TriangleMoves:
        moves = covariance_sensitivity.user_triangle(1.0, self.norm)
        return TriangleMoves(moves, moves)


CONTRIBUTIONS: Mapping[Neighbours, type[Contributions]] = {
    Neighbours.UNBOUNDED: OfARating,
    Neighbours.USER: OfAUser,
}
"""The contributions for each kind of neighbours."""

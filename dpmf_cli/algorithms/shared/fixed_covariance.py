"""Predictions with a fixed covariance that uses no data: it is the same for all items."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.item_products import inverse_counts, own_residuals
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_means import effects_of
from dpmf_cli.kernels.covariance import Raters, weighted_products
from dpmf_cli.kernels.neighbours import nearest
from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class AlikeItems(ABC):
    """Averages, and a matrix with `variance` on the diagonal (ridge included) and `covariance` elsewhere.

    own      the ratings of every user who may ask; a prediction for user u uses only those of u
    effects  averages for each ε; the users' part may be unreleased
    variance, covariance  public, in units of B²
    """

    own: Ratings
    effects: Effects
    variance: float
    covariance: float

    @abstractmethod
    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(n,) how many neighbours each pair has, (n, E) the sum of their residuals."""

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        counts, totals = self.neighbours(users, items)
        spread = self.variance + (counts - 1) * self.covariance
        # Without neighbours `spread` may be 0 or less; their sum is 0, so the weight does not matter.
        weight = np.where(counts > 0, self.covariance / np.where(counts > 0, spread, 1.0), 0.0)
        return np.asarray(out + weight[:, None] * totals)

    @property
    def published(self) -> Arrays:
        """The released averages."""
        return self.effects.published


@dataclass(frozen=True)
class NearestAlike(AlikeItems):
    """Predicts from the `k` of the user's items that share the most raters with the target item, by Wgt. Who rated
    what must be public.

    weight  Wgt: a packed triangle
    """

    weight: NDArray[np.float32]
    k: int

    @property
    def published(self) -> Arrays:
        """The released averages, and Wgt, which is public."""
        return {**super().published, "weight": self.weight}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        effects = effects_of(arrays, entry, own)
        return cls(own, effects, entry.of_an_item, entry.covariance, arrays["weight"], entry.k)

    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        own = self.own
        found = nearest(own, users, items, self.weight, self.k)
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            # A user with fewer than k items has place −1, which is the 0 appended after the last residual.
            residuals = np.append(own_residuals(own, self.effects, lane), 0.0)
            totals[:, lane] = residuals[found].sum(axis=1)
        return (found >= 0).sum(axis=1), totals


@dataclass(frozen=True)
class AllAlike(AlikeItems):
    """Predicts from all items that the user rated, except the target item."""

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        return cls(own, effects_of(arrays, entry, own), entry.of_an_item, entry.covariance)

    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        own = self.own
        # A sentinel after the last rating: the search for a greater pair ends there, and no pair equals it.
        keys = np.append(own.users.astype(np.int64) * own.n_items + own.items, own.n_users * own.n_items)
        asked = users.astype(np.int64) * own.n_items + items
        places = np.searchsorted(keys, asked)
        itself = keys[places] == asked
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            residuals = own_residuals(own, self.effects, lane)
            sums = np.bincount(own.users, residuals, own.n_users)
            totals[:, lane] = sums[users] - np.where(itself, np.append(residuals, 0.0)[places], 0.0)
        return own.user_counts[users] - itself, totals


def public_weights(train: Ratings) -> NDArray[np.float32]:
    """Wgt without noise, for methods under which who rated what is public: a packed triangle."""
    return weighted_products(train, Raters.of(train), np.ones(len(train)), inverse_counts(train)).astype(
        np.float32
    )

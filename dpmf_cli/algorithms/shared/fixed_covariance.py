"""Predictions with a covariance that no data went into: all items alike."""

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
    """Averages, and a covariance of `variance` on the diagonal (ridge included) and `covariance` elsewhere.

    own      the ratings of every user who may ask: a prediction for user u uses those of u
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
        # `spread` is positive for m = 0 too unless c is the larger part of it; a sum of nothing is 0 anyway.
        weight = np.where(counts > 0, self.covariance / np.where(counts > 0, spread, 1.0), 0.0)
        return np.asarray(out + weight[:, None] * totals)

    @property
    def published(self) -> Arrays:
        """The averages, as far as they are released."""
        return self.effects.published


@dataclass(frozen=True)
class NearestAlike(AlikeItems):
    """With the `k` of the user's items that share the most raters with the item asked for, by Wgt: who rated what
    must be public.

    weight  Wgt: a packed triangle
    """

    weight: NDArray[np.float32]
    k: int

    @property
    def published(self) -> Arrays:
        """Wgt too, which is public."""
        return {**super().published, "weight": self.weight}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model of what was `published`, for the users who ask."""
        effects = effects_of(arrays, entry, own)
        return cls(own, effects, entry.of_an_item, entry.covariance, arrays["weight"], entry.k)

    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        own = self.own
        found = nearest(own, users, items, self.weight, self.k)
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            # Place −1, where the user has fewer than k, is the 0 behind the last residual.
            residuals = np.append(own_residuals(own, self.effects, lane), 0.0)
            totals[:, lane] = residuals[found].sum(axis=1)
        return (found >= 0).sum(axis=1), totals


@dataclass(frozen=True)
class AllAlike(AlikeItems):
    """With all items that the user rated but the one asked for."""

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model of what was `published`, for the users who ask."""
        return cls(own, effects_of(arrays, entry, own), entry.of_an_item, entry.covariance)

    def neighbours(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        own = self.own
        # Behind the last rating stands one that nobody asks for, where the search for a greater pair ends.
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
    """Wgt, where who rated what is public: a packed triangle."""
    return weighted_products(train, Raters.of(train), np.ones(len(train)), inverse_counts(train)).astype(
        np.float32
    )

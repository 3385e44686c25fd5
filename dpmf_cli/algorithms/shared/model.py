"""The result of a fit: a model for each ε of a grid, and what it may tell besides its predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Scale


class Model(Protocol):
    """A fitted algorithm: one recommender for each ε of the grid."""

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        """(n, E) predicted ratings, rating scale, for n pairs of dense indices."""


Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name. An array whose name begins with `users` has a row for each user."""


@runtime_checkable
class ReleasableModel(Protocol):
    """A model with a part that can be published.

    `published` is everything that may be published: released numbers, functions of them, and public numbers. A class
    method `restored(arrays, entry, own)` makes the same model from it. `entry` is the algorithm, and `own` are the
    ratings of the users who ask. A method that is not joint predicts from `published` alone.
    """

    @property
    def published(self) -> Arrays: ...


@dataclass(frozen=True)
class RecordCosts:
    """The `record_costs` of a model whose fit gave the training ratings different ε.

    For each ε of the grid: the threshold t, the fraction of the training ratings that was sampled (`kept`), and
    the least, the median and the largest ε that can be proved for a training rating."""

    threshold: tuple[float, ...]
    kept: tuple[float, ...]
    least: tuple[float, ...]
    median: tuple[float, ...]
    largest: tuple[float, ...]


@dataclass(frozen=True)
class UnitModel:
    """Maps the predictions of `unit` on [0, 1] to the rating scale.

    known_users (n_users,), known_items (n_items,)  whether a user, or an item, has training ratings
    fallback  (E,) the prediction on [0, 1] if one of them has none
    """

    unit: Model
    scale: Scale
    known_users: NDArray[np.bool_]
    known_items: NDArray[np.bool_]
    fallback: NDArray[np.float64]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        known = (self.known_users[users] & self.known_items[items])[:, None]
        unit = np.where(known, self.unit.predict(users, items), self.fallback)
        return np.asarray(self.scale.minimum + self.scale.width * unit)

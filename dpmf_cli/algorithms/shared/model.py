"""What a fit gives: a model for each ε of a grid, and what it may tell beside its predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Model(Protocol):
    """A fitted algorithm: one recommender for each ε of the grid."""

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        """(n, E) predicted ratings, rating scale, for n pairs of dense indices."""


Arrays = Mapping[str, NDArray[Any]]
"""Arrays by name. Those whose name begins with `users` have a row for each user."""


@runtime_checkable
class ReleasableModel(Protocol):
    """A model of which something can be published.

    `published` is all that may be: numbers that were released, functions of them, and what is public. A class method
    `restored(arrays, entry, own)` makes the same model of it. `entry` is the algorithm, `own` are the ratings of the
    users who ask: a method that is not joint predicts from `published` alone.
    """

    @property
    def published(self) -> Arrays: ...


@dataclass(frozen=True)
class RecordCosts:
    """For each ε of the grid: the threshold t, the part of the training ratings that was sampled, and the least, the
    median and the largest ε that can be proved for a training rating."""

    threshold: tuple[float, ...]
    kept: tuple[float, ...]
    least: tuple[float, ...]
    median: tuple[float, ...]
    largest: tuple[float, ...]


@runtime_checkable
class AccountsForRecords(Protocol):
    """A model whose fit gave the training ratings different ε, and which tells them; results keep what it tells."""

    @property
    def record_costs(self) -> RecordCosts: ...

"""What a fit gives: a model for each ε of a grid, and what it may tell beside its predictions."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Model(Protocol):
    """A fitted algorithm: one recommender for each ε of the grid."""

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        """(n, E) predicted ratings, rating scale, for n pairs of dense indices."""


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

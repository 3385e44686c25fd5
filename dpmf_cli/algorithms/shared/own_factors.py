"""Factorisations that release only the items' side. A user's factors follow from that user's own ratings."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.ratings import Ratings


@runtime_checkable
class SolvesOwnFactors(Protocol):
    """An algorithm whose users solve for their own factors."""

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """The items, and the users of `own`. Each user's effect and factors are made from that user's ratings."""


@dataclass(frozen=True)
class OwnFactors:
    """Predicts from released items, and from the target user's own ratings.

    items   the released items, without users
    beside  the other released arrays
    own     the ratings of every user who may ask; a prediction for user u uses only those of u
    """

    entry: SolvesOwnFactors
    items: FactorModel
    beside: Arrays
    own: Ratings

    @cached_property
    def solved(self) -> FactorModel:
        """The items and the users. The users' part is not released."""
        return self.entry.with_own_factors(self.items, self.beside, self.own)

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        return self.solved.predict(users, items)

    @property
    def published(self) -> Arrays:
        """The items, and the other released arrays."""
        return {"factors": self.items.published["items"], **self.beside}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        if not isinstance(entry, SolvesOwnFactors):
            raise TypeError("its method makes no such model")
        factors = arrays["factors"]
        items = FactorModel.restored({"users": factors[:0], "items": factors}).without_users()
        beside = {name: array for name, array in arrays.items() if name != "factors"}
        return cls(entry, items, beside, own)

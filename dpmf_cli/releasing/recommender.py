"""A released model, or one that could be released: it predicts for the caller's own ids."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.model import Arrays, Model
from dpmf_cli.datasets.canonical import Ids
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings, with_ratings
from dpmf_cli.releasing import models
from dpmf_cli.releasing.ids import as_ids, different, places
from dpmf_cli.releasing.statement import Statement


@dataclass(frozen=True)
class OwnRatings:
    """Ratings that users bring to a joint model: (n,) users, items, and values on the scale of the data set."""

    users: Ids
    items: Ids
    values: NDArray[np.float64]

    @classmethod
    def of(cls, users: ArrayLike, items: ArrayLike, values: ArrayLike) -> "OwnRatings":
        """Makes own ratings from arrays. Raises DpmfError for values that are not ids, and for different lengths."""
        found = as_ids(users, "users"), as_ids(items, "items"), np.asarray(values, np.float64)
        if len({each.shape for each in found}) != 1:
            raise DpmfError(
                "users, items and ratings have different lengths; give one of each for every rating"
            )
        return cls(*found)


@dataclass(frozen=True, repr=False)
class Recommender:
    """The content of a release, and its predictions.

    arrays    all that is published of the model
    item_ids  (n_items,); user_ids (n_users,), or None if the model has no parts for users
    own       the ratings that a joint model predicts from if `predict` gets none
    """

    statement: Statement
    arrays: Arrays
    item_ids: Ids
    user_ids: Ids | None
    own: OwnRatings | None = None

    def __repr__(self) -> str:
        privacy = self.statement.privacy
        proved = "no provable ε" if privacy.provable is None else f"ε = {privacy.provable:g} provable"
        delta = f", δ = {privacy.delta:g}" if privacy.delta else ""
        return (
            f"<{self.statement.name} of {self.statement.dataset.name}, {privacy.neighbours}, {proved}{delta}>"
        )

    def predict(
        self, users: ArrayLike, items: ArrayLike, own: OwnRatings | None = None
    ) -> NDArray[np.float64]:
        """Returns (n,) predicted ratings of n pairs, on the rating scale.

        `own` are the ratings of these users, for a joint model: a user without own ratings counts as one who has
        rated nothing. Raises DpmfError for values that are not ids, and for own ratings off the scale.
        """
        asked, place = different(as_ids(users, "users"))
        at = places(self.item_ids, as_ids(items, "items"))
        if at.shape != place.shape:
            raise DpmfError(f"{len(place)} users and {len(at)} items; give one of each for every pair")
        model = self.for_users(asked, own or self.own)
        out = np.empty(len(at))
        known = at >= 0
        out[known] = self._predicted(model, place[known], at[known])
        everything = np.arange(len(self.item_ids))
        for user in np.unique(place[~known]):
            mean = self._predicted(model, np.full(len(everything), user), everything).mean()
            out[~known & (place == user)] = mean
        return out

    def top(self, user: Any, count: int, own: OwnRatings | None = None) -> tuple[Ids, NDArray[np.float64]]:
        """Returns the `count` items with the largest predictions for a user, and these predictions.

        Leaves out items in the user's own ratings.
        """
        (name,) = as_ids([user], "user")
        predicted = self.predict(np.full(len(self.item_ids), name), self.item_ids, own)
        brought = own or self.own
        if brought is not None:
            rated = places(self.item_ids, brought.items[places(np.array([name]), brought.users) >= 0])
            predicted[rated[rated >= 0]] = -np.inf
        best = np.argsort(-predicted, kind="stable")[:count]
        best = best[np.isfinite(predicted[best])]
        return self.item_ids[best], predicted[best]

    @cached_property
    def entry(self) -> PrivateAlgorithm:
        """The algorithm with its parameters."""
        return self.statement.entry()

    def _predicted(
        self, model: Model, users: NDArray[np.int64], items: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Predicts (n,) on the scale of the data set. Predictions leave a model only here."""
        found = np.asarray(model.predict(users.astype(np.int32), items.astype(np.int32))[:, 0], np.float64)
        scale, stars = self.statement.dataset.scale, self.statement.dataset.stars
        found = stars.back(found) if stars else found
        return np.clip(found, scale.minimum, scale.maximum) if self.entry.clip_predictions else found

    def for_users(self, asked: Ids, own: OwnRatings | None = None) -> Model:
        """Returns the model with only these users, none of them twice; it predicts for their positions."""
        arrays = dict(self.arrays)
        if self.user_ids is not None:
            rows = places(self.user_ids, asked)
            chosen = {name: _rows(array, rows) for name, array in arrays.items() if name.startswith("users")}
            arrays |= chosen
        return models.restored(self.statement.kind, arrays, self.entry, self._own_ratings(asked, own))

    def _own_ratings(self, asked: Ids, own: OwnRatings | None) -> Ratings:
        """Returns the own ratings of these users, for items that the model knows. Ratings enter a model only here."""
        scale, stars = self.statement.dataset.scale, self.statement.dataset.stars
        none = np.empty(0, np.int32)
        nobody = Ratings(none, none, np.empty(0, np.float32), len(asked), len(self.item_ids), scale)
        if own is None or not self.statement.privacy.joint:
            return stars.of(nobody) if stars else nobody
        if not ((own.values >= scale.minimum) & (own.values <= scale.maximum)).all():
            raise DpmfError(
                f"own ratings are not all within {scale.minimum:g} to {scale.maximum:g}; correct those that are not"
            )
        users, items = places(asked, own.users), places(self.item_ids, own.items)
        here = (users >= 0) & (items >= 0)
        theirs = with_ratings(nobody, users[here], items[here], own.values[here])
        return stars.of(theirs) if stars else theirs


def _rows(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Returns the `rows` of users. A row of −1 is an unknown user: the mean of all rows, or False in a mask of known
    users."""
    found: NDArray[Any] = array[np.maximum(rows, 0)]
    if (rows < 0).any():
        known = array.dtype.kind == "b"
        found[rows < 0] = False if known else array.mean(axis=0, dtype=np.float64).astype(array.dtype)
    return found

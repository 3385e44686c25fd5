"""Item neighbourhoods with each model's own similarities, and predictions from them.

Wang and Tang 2017, equation 2. The similarities of an item to its neighbours are a row. Predictions are made item by
item, so that a row and the averages that it needs stay in the nearest cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import aligned, groups, pad, padded_width
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import RATED, example
from dpmf_cli.kernels.lanes import add, below, div, fma, load, magnitude, splat, store, sub, zeros

LEAST_NORM = np.float32(1e-30)
"""Replaces 0 in denominators. The numerator is then 0 too, or there is nothing to predict from."""


@dataclass(frozen=True)
class SimilarityLanes:
    """One group of at most 16 models of item neighbourhoods, side by side.

    neighbours  (n_items, k) int32: the neighbours of each item, all different; −1 fills up
    values      flat float32, rows of k vectors of `width` lanes: s_ij for the neighbours j of item i, in their order
    averages    flat float32, a vector for each item: r̄_i, rating scale
    part        the place of these models in the grid
    """

    neighbours: NDArray[np.int32]
    values: NDArray[np.float32]
    averages: NDArray[np.float32]
    width: int
    part: slice

    @property
    def lanes(self) -> int:
        """How many models there are. The other lanes, up to the width, belong to no model."""
        return int(self.part.stop - self.part.start)

    @property
    def groups(self) -> tuple["SimilarityLanes", ...]:
        """This group alone: a kernel that takes the models of a grid also takes a single group."""
        return (self,)

    @property
    def width_of(self) -> tuple[int, ...]:
        """A tuple whose length is the width: kernels read shapes from types."""
        return (0,) * self.width

    def rows(self) -> NDArray[np.float32]:
        """(n_items, k, lanes) the similarities: a view, which plain code may change."""
        return self.values.reshape(*self.neighbours.shape, self.width)[..., : self.lanes]

    def item_averages(self) -> NDArray[np.float32]:
        """(n_items, lanes) r̄, rating scale: a view."""
        return self.averages.reshape(-1, self.width)[:, : self.lanes]

    def predict(
        self, train: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """(n, lanes) r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| over the neighbours j that u rated in `train`.

        r̂_ui = r̄_i if there are no such neighbours, or if all their similarities are 0.
        """
        out = np.empty(len(users) * self.width, np.float32)
        _predict(
            users,
            items,
            np.argsort(items, kind="stable"),
            train.user_starts,
            train.items,
            train.values,
            self.neighbours,
            self.values,
            self.averages,
            out,
            self.width_of,
        )
        return out.reshape(len(users), self.width)[:, : self.lanes]


@dataclass(frozen=True)
class NeighbourhoodModel:
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| for each ε, the grid in groups of lanes.

    train  the ratings r_uj, without noise; a prediction for a user uses that user's own ratings only
    """

    train: Ratings
    groups: Sequence[SimilarityLanes]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, E) predictions for n pairs."""
        return np.concatenate([group.predict(self.train, users, items) for group in self.groups], axis=1)

    @property
    def published(self) -> dict[str, NDArray[Any]]:
        """neighbours (n_items, k), similarities (n_items, k, E), averages (n_items, E)."""
        return {
            "neighbours": self.groups[0].neighbours,
            "similarities": np.concatenate([group.rows() for group in self.groups], axis=2),
            "averages": np.concatenate([group.item_averages() for group in self.groups], axis=1),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], entry: Any, own: Ratings) -> Self:
        """Returns the model whose `published` arrays are `arrays`, for the users whose ratings are `own`."""
        similarities, averages = arrays["similarities"], arrays["averages"]
        return cls(
            own,
            [
                _similarity_lanes(arrays["neighbours"], similarities[..., part], averages[:, part], part)
                for part in groups(averages.shape[1])
            ],
        )


def neighbourhood_model(
    train: Ratings,
    neighbours: NDArray[np.int32],
    similarities: NDArray[np.float32] | float,
    averages: NDArray[np.float64],
) -> NeighbourhoodModel:
    """Returns a model with similarities common to all models of a grid, and with each model's own averages.

    neighbours (n_items, k), −1 fills up; similarities (n_items, k) or one number; averages (n_items, E).
    """
    common = np.broadcast_to(np.atleast_2d(np.asarray(similarities, np.float32)), neighbours.shape)[..., None]
    return NeighbourhoodModel(
        train,
        [
            _similarity_lanes(neighbours, common, averages[:, part], part)
            for part in groups(averages.shape[1])
        ],
    )


def _similarity_lanes(
    neighbours: NDArray[np.int32],
    similarities: NDArray[np.float32],
    averages: NDArray[np.floating],
    part: slice,
) -> SimilarityLanes:
    """One group; averages (n_items, lanes), similarities (n_items, k, lanes), or (n_items, k, 1) for all models."""
    width = padded_width(part.stop - part.start)
    flat = aligned((*neighbours.shape, width))
    flat[:] = similarities if similarities.shape[2] == 1 else pad(similarities, width)
    return SimilarityLanes(neighbours, flat.reshape(-1), pad(averages, width).reshape(-1), width, part)


@compiled()
def index_row(row, slots, sign):
    """Notes the place of each neighbour in a row (sign 1), or forgets it again (sign −1)."""
    for a in range(len(row)):
        if row[a] >= 0:
            slots[row[a]] = a if sign > 0 else -1


@compiled()
def rated_neighbours(item, first, last, items, slots, found):
    """Fills `found` with the places in `items` of the neighbours that a user rated, without the item itself.

    Returns how many there are.
    """
    count = 0
    for x in range(first, last):
        found[count] = x
        count += slots[items[x]] >= 0 and items[x] != item
    return count


@compiled(example(out=lambda s: np.zeros(len(RATED) * s.w)))
def _predict(users, items, order, user_starts, rated, values, neighbours, S, averages, out, width_of):
    w, like = len(width_of), zeros(width_of)
    k, slots = neighbours.shape[1], np.full(neighbours.shape[0], -1, np.int32)
    found = np.empty(neighbours.shape[0] + 1, np.int64)
    tiny, last = splat(LEAST_NORM, like), -1
    for at in order:
        i, u = np.int64(items[at]), users[at]
        if i != last:
            if last >= 0:
                index_row(neighbours[last], slots, -1)
            index_row(neighbours[i], slots, 1)
            last = i
        count = rated_neighbours(i, user_starts[u], user_starts[u + 1], rated, slots, found)
        top, norm = like, like
        for a in range(count):
            j = np.int64(rated[found[a]])
            s = load(S, (i * k + slots[j]) * w, like)
            top = fma(s, sub(splat(values[found[a]], like), load(averages, j * w, like)), top)
            norm = add(norm, magnitude(s))
        norm = below(norm, tiny, tiny, norm)
        store(out, np.int64(at) * w, add(load(averages, i * w, like), div(top, norm)))

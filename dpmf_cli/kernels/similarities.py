"""Item neighbourhoods with each model's own similarities, and predictions from them.

Wang and Tang 2017, equation 2. The similarities of an item to its neighbours are a row. Predictions are made item by
item, so that a row and the averages that it needs stay in the nearest cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Singles
from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import LaneGroup, aligned, groups, of_all_groups, pad, padded_width
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import RATED, example
from dpmf_cli.kernels.lane_math import below, fma
from dpmf_cli.kernels.lanes import load, splat, store, zeros
from dpmf_cli.kernels.sums import Columns

LEAST_NORM = np.float32(1e-30)
"""Replaces 0 in denominators. The numerator is then 0 too, or there is nothing to predict from."""


class ItemRows(NamedTuple):
    """The neighbours, similarities and averages of `SimilarityLanes`, as kernels take them."""

    neighbours: Ints
    S: Singles
    averages: Singles


@dataclass(frozen=True)
class SimilarityLanes(LaneGroup):
    """One group of at most 16 models of item neighbourhoods, side by side.

    neighbours  (n_items, k) int32: the neighbours of each item, all different; −1 fills up
    values      flat float32, rows of k vectors of `width` lanes: s_ij for the neighbours j of item i, in their order
    averages    flat float32, a vector for each item: r̄_i, rating scale
    """

    neighbours: Ints
    values: Singles
    averages: Singles

    @property
    def item_rows(self) -> ItemRows:
        return ItemRows(self.neighbours, self.values, self.averages)

    def rows(self) -> Singles:
        """(n_items, k, lanes) the similarities: a view, which plain code may change."""
        return self.values.reshape(*self.neighbours.shape, self.width)[..., : self.lanes]

    def item_averages(self) -> Singles:
        """(n_items, lanes) r̄, rating scale: a view."""
        return self.averages.reshape(-1, self.width)[:, : self.lanes]

    def predict(self, train: Ratings, users: Ints, items: Ints) -> Singles:
        """(n, lanes) r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| over the neighbours j that u rated in `train`.

        r̂_ui = r̄_i if there are no such neighbours, or if all their similarities are 0.
        """
        out = np.empty(len(users) * self.width, np.float32)
        order = np.argsort(items, kind="stable")
        _predict(users, items, order, Columns.of(train), self.item_rows, out, self.width_of)
        return out.reshape(len(users), self.width)[:, : self.lanes]


@dataclass(frozen=True)
class NeighbourhoodModel:
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| for each ε, the grid in groups of lanes.

    train  the ratings r_uj, without noise; a prediction for a user uses that user's own ratings only
    """

    train: Ratings
    groups: Sequence[SimilarityLanes]

    def predict(self, users: Ints, items: Ints) -> Singles:
        """(n, E) predictions for n pairs."""
        return of_all_groups(SimilarityLanes.predict)(self, self.train, users, items)

    @property
    def published(self) -> dict[str, NDArray[Any]]:
        """neighbours (n_items, k), similarities (n_items, k, E), averages (n_items, E)."""
        return {
            "neighbours": self.groups[0].neighbours,
            "similarities": of_all_groups(SimilarityLanes.rows)(self),
            "averages": of_all_groups(SimilarityLanes.item_averages)(self),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], entry: Any, own: Ratings) -> Self:
        """Returns the model whose `published` arrays are `arrays`, for the users whose ratings are `own`."""
        neighbours, similarities, averages = (
            arrays[name] for name in ("neighbours", "similarities", "averages")
        )
        return cls(own, _groups(neighbours, similarities, averages))


def neighbourhood_model(
    train: Ratings, neighbours: Ints, similarities: Singles | float, averages: Doubles
) -> NeighbourhoodModel:
    """Returns a model with similarities common to all models of a grid, and with each model's own averages.

    neighbours (n_items, k), −1 fills up; similarities (n_items, k) or one number; averages (n_items, E).
    """
    common = np.broadcast_to(np.atleast_2d(np.asarray(similarities, np.float32)), neighbours.shape)[..., None]
    return NeighbourhoodModel(train, _groups(neighbours, common, averages))


def _groups(neighbours: Ints, similarities: Singles, averages: Floats) -> list[SimilarityLanes]:
    """Models of averages (n_items, E) and similarities (n_items, k, E), or (n_items, k, 1) for all models."""

    def of(part: slice) -> SimilarityLanes:
        width = padded_width(part.stop - part.start)
        flat = aligned((*neighbours.shape, width))
        flat[:] = similarities if similarities.shape[2] == 1 else pad(similarities[..., part], width)
        return SimilarityLanes(part, neighbours, flat.reshape(-1), pad(averages[:, part], width).reshape(-1))

    return [of(part) for part in groups(averages.shape[1])]


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
def _predict(users, items, order, ratings, rows, out, width_of):
    _, rated, values, user_starts = ratings
    neighbours, S, averages = rows
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
            top = fma(s, splat(values[found[a]], like) - load(averages, j * w, like), top)
            norm = norm + abs(s)
        norm = below(norm, tiny, tiny, norm)
        store(out, np.int64(at) * w, load(averages, i * w, like) + top / norm)

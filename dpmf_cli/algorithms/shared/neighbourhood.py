"""Item neighbourhoods: which items are the neighbours of an item, and what is predicted from them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from dpmf_cli.kernels.similarities import SimilarityLanes, similarity_lanes
from dpmf_cli.lane_groups import groups
from dpmf_cli.ratings import Ratings

BLOCK = 512
"""Items whose similarities to all others are held at a time."""


@dataclass(frozen=True)
class NeighbourhoodModel:
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| for each ε: Wang and Tang 2017, equation 2.

    train  the ratings that predictions are made from: those of the target user, without noise
    """

    train: Ratings
    groups: Sequence[SimilarityLanes]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.concatenate([group.predict(self.train, users, items) for group in self.groups], axis=1)


def start_models(
    neighbours: NDArray[np.int32], similarity: NDArray[np.float32] | float, averages: NDArray[np.float64]
) -> list[SimilarityLanes]:
    """Models with common similarities, and `averages` (n_items, E) of each ε, in groups of lanes."""
    return [similarity_lanes(neighbours, similarity, averages[:, part]) for part in groups(averages.shape[1])]


def by_user(train: Ratings, values: NDArray[np.float64]) -> csr_matrix:
    """(n_users, n_items), a number for each rating."""
    return csr_matrix((values, (train.users, train.items)), (train.n_users, train.n_items))


def item_products(left: csr_matrix, right: csr_matrix) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """(b, n_items) Σ_u left_ui·right_uj, for a block of items i at a time."""
    columns = csc_matrix(left)
    for first in range(0, left.shape[1], BLOCK):
        block = slice(first, min(first + BLOCK, left.shape[1]))
        yield block, (columns[:, block].T @ right).toarray()


def largest(scores: NDArray[np.float64], items: slice, k: int) -> NDArray[np.int32]:
    """(b, k) for each row the k items with the largest scores, ascending; the lower item first among equals.

    scores (b, n_items) are those of the rows' own `items`, which are not their own neighbours. k < n_items
    """
    scores[np.arange(len(scores)), np.arange(items.start, items.stop)] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.sort(order, axis=1).astype(np.int32)


def most_co_rated(train: Ratings, k: int) -> NDArray[np.int32]:
    """(n_items, min(k, n_items − 1)) the items that most users rated together with each."""
    ones = by_user(train, np.ones(len(train)))
    k = min(k, train.n_items - 1)
    return np.concatenate([largest(counts, items, k) for items, counts in item_products(ones, ones)])


def all_others(n_items: int) -> NDArray[np.int32]:
    """(n_items, n_items − 1) every other item: nothing of the ratings."""
    others = np.arange(n_items - 1, dtype=np.int32)[None, :]
    return np.asarray(others + (others >= np.arange(n_items)[:, None]), dtype=np.int32)

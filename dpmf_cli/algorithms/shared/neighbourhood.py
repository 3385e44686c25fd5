"""Finds the items that are the neighbours of an item."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix

from dpmf_cli.ratings import Ratings

BLOCK = 512
"""The number of items whose similarities to all others are held at a time."""


def by_user(train: Ratings, values: NDArray[np.float64]) -> csr_matrix:
    """(n_users, n_items) a sparse matrix with a number for each rating."""
    return csr_matrix((values, (train.users, train.items)), (train.n_users, train.n_items))


def item_products(left: csr_matrix, right: csr_matrix) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yields Σ_u left_ui·right_uj (b, n_items) for one block of items i after the other."""
    columns = csc_matrix(left)
    for first in range(0, left.shape[1], BLOCK):
        block = slice(first, min(first + BLOCK, left.shape[1]))
        yield block, (columns[:, block].T @ right).toarray()


def largest(scores: NDArray[np.float64], items: slice, k: int) -> NDArray[np.int32]:
    """(b, k) for each row the k items with the largest scores, in ascending order of items.

    Among equal scores the lower items are taken. `scores` (b, n_items) belong to the rows' `items`; an item is not
    its own neighbour. k < n_items. Overwrites the scores of each item with itself.
    """
    scores[np.arange(len(scores)), np.arange(items.start, items.stop)] = -np.inf
    last = scores.shape[1] - max(k, 1)  # k is 0 if there is one item
    least = np.partition(scores, last, axis=1)[:, last, None]
    above, equal = scores > least, scores == least
    room = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= room))
    return np.nonzero(chosen)[1].reshape(len(scores), k).astype(np.int32)


def most_co_rated(train: Ratings, k: int) -> NDArray[np.int32]:
    """(n_items, min(k, n_items − 1)) for each item, the items that most users rated together with it."""
    ones = by_user(train, np.ones(len(train)))
    k = min(k, train.n_items - 1)
    return np.concatenate([largest(counts, items, k) for items, counts in item_products(ones, ones)])


def all_others(n_items: int) -> NDArray[np.int32]:
    """(n_items, n_items − 1) for each item, every other item. Uses no rating."""
    others = np.arange(n_items - 1, dtype=np.int32)[None, :]
    return np.asarray(others + (others >= np.arange(n_items)[:, None]), dtype=np.int32)

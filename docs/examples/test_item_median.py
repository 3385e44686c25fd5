"""The contract of algorithms, inherited, and medians by hand: `python -m pytest test_item_median.py`."""

import numpy as np
from item_median import ItemMedian, allowed_ratings, larger_sides
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.testing import PrivateAlgorithmContract, fit, variants_of


class TestItemMedian(PrivateAlgorithmContract):
    entries = variants_of(ItemMedian)

    def learns(self, algorithm: Algorithm) -> float:
        return 0.95  # a median is a whole star

    def tied(self, algorithm: Algorithm, ratings: Ratings) -> NDArray[np.bool_]:
        """Items of which two candidates have the least loss."""
        losses = larger_sides(ratings, allowed_ratings(ratings.scale))
        items = (losses == losses.min(axis=1, keepdims=True)).sum(axis=1) > 1
        return np.tile(items, ratings.n_users)


def test_without_noise_it_is_the_median() -> None:
    values = np.array([1, 2, 5, 4, 4, 1], np.float32)
    ratings = Ratings(
        np.array([0, 1, 2, 0, 1, 2], np.int32),
        np.array([0, 0, 0, 1, 1, 1], np.int32),
        values,
        3,
        3,
        Scale(1, 5, 1),
    )
    order = np.lexsort((ratings.items, ratings.users))
    ratings = Ratings(ratings.users[order], ratings.items[order], values[order], 3, 3, ratings.scale)
    (entry, _) = variants_of(ItemMedian).values()
    model, _ = fit(entry, ratings, [np.inf])
    found = model.predict(np.zeros(3, np.int32), np.arange(3, dtype=np.int32))
    assert found[:, 0].tolist() == [2.0, 4.0, values.mean()]

"""Predictions from similarities against NumPy in float64, lane by lane."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.similarities import SimilarityLanes, neighbourhood_model
from tests.conftest import make_ratings

RATINGS = make_ratings(2, n_users=15, n_items=10, density=0.5)
ITEMS, K, LANES = 10, 6, 3

Array = NDArray[Any]


def one_group(neighbours: Array, values: Array | float, averages: Array) -> SimilarityLanes:
    """The models of a grid that fills one group of lanes; averages (n_items, lanes)."""
    (group,) = neighbourhood_model(RATINGS, neighbours, values, averages).groups
    return group


def some_neighbours(seed: int = 0) -> Array:
    """(10, 6) neighbours in any order, sometimes including the item itself; the last places of some rows are
    fillers."""
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(ITEMS)[:K] for _ in range(ITEMS)], np.int32)
    rows[3, 4:], rows[7, 1:], rows[8, :] = -1, -1, -1
    return rows


def some_models(lanes: int = LANES, seed: int = 0) -> SimilarityLanes:
    """Each model's own similarities, some negative and some 0, and its own averages."""
    rng = np.random.default_rng(seed)
    models = one_group(some_neighbours(), 1.0, rng.uniform(2, 4.5, (ITEMS, lanes)))
    values = rng.normal(0.4, 0.7, (ITEMS, K, lanes))
    values[rng.random(values.shape) < 0.1] = 0
    models.rows()[:] = values
    return models


def similarities(models: SimilarityLanes, lane: int) -> Array:
    """(n_items, k) float64"""
    return models.rows()[:, :, lane].astype(np.float64)


def averages_of(models: SimilarityLanes, lane: int) -> Array:
    return models.item_averages()[:, lane].astype(np.float64)


def sign(values: Array) -> Array:
    return np.where(values < 0, -1.0, 1.0)


def known(train: Ratings, row: Array, user: int, item: int) -> tuple[Array, Array]:
    """(places in the row, ratings) of the neighbours that a user rated, without the item itself."""
    rated = dict(
        zip(train.items[train.users == user].tolist(), train.values[train.users == user], strict=True)
    )
    places = [a for a, j in enumerate(row.tolist()) if j in rated and j != item]
    return np.array(places, int), np.array([rated[row[a]] for a in places], float)


def predicted(train: Ratings, neighbours: Array, s: Array, averages: Array, user: int, item: int) -> float:
    places, ratings = known(train, neighbours[item], user, item)
    norm = np.abs(s[item, places]).sum()
    own = ratings - averages[neighbours[item, places]]
    return float(averages[item] + (s[item, places] @ own / norm if norm > 0 else 0.0))


@pytest.mark.parametrize("lanes", [LANES, 11])
def test_predictions_are_those_of_numpy(lanes: int) -> None:
    models = some_models(lanes)
    models.values.reshape(ITEMS, K, -1)[2] = 0
    pairs = np.random.default_rng(1).permutation(15 * ITEMS)
    users, items = (part.astype(np.int32) for part in np.divmod(pairs, ITEMS))
    found = models.predict(RATINGS, users, items)
    assert found.shape == (150, lanes)
    for lane in (0, lanes - 1):
        s, averages = similarities(models, lane), averages_of(models, lane)
        wanted = [
            predicted(RATINGS, models.neighbours, s, averages, u, i)
            for u, i in zip(users, items, strict=True)
        ]
        assert found[:, lane] == pytest.approx(wanted, abs=1e-5)
        alone = np.isin(items, (2, 8))  # similarities that are all 0, and no neighbours at all
        assert np.array_equal(found[alone, lane], averages[items[alone]].astype(np.float32))

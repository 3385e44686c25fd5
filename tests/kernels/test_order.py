"""Orders of ratings: counting sorts, and blocks that do not affect results."""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.factorization import shuffled_blocks, visiting_order
from dpmf_cli.algorithms.shared.private_factorization import in_order
from dpmf_cli.kernels.sums import item_major, shuffle_within, sums_by
from dpmf_cli.streams import Streams
from tests.conftest import make_ratings

RATINGS = make_ratings(7, n_users=40, n_items=13)


def test_item_major_is_the_stable_sort_by_item() -> None:
    starts, users, values = item_major(RATINGS)
    order = np.argsort(RATINGS.items, kind="stable")
    assert np.array_equal(users, RATINGS.users[order])
    assert np.array_equal(values, RATINGS.values[order])
    assert np.array_equal(np.diff(starts), RATINGS.item_counts)
    assert starts[0] == 0


@pytest.mark.parametrize("block", [1, 7, 50, 10**6])
def test_visits_in_blocks_are_those_of_one_draw_for_all_ratings(block: int) -> None:
    whole = shuffle_within(RATINGS.user_starts, np.random.default_rng(1).random(len(RATINGS)))
    parts = list(shuffled_blocks(RATINGS, np.random.default_rng(1), block))
    assert [part.start for part, _ in parts] == [0, *(part.stop for part, _ in parts[:-1])]
    assert np.array_equal(np.concatenate([part.start + places for part, places in parts]), whole)
    assert len(parts) == 1 or block < len(RATINGS)


@pytest.mark.parametrize("kind", ["user_major", "shuffled"])
def test_visits_are_the_ratings_in_the_order_of_visits(kind: Literal["user_major", "shuffled"]) -> None:
    streams = Streams(1, "x", "y", 0, 0)
    order = visiting_order(RATINGS, kind, streams.generator("order of visits"))
    visits = in_order(RATINGS, kind, streams)
    for found, whole in (
        (visits.users, RATINGS.users),
        (visits.items, RATINGS.items),
        (visits.values, RATINGS.values),
    ):
        assert np.array_equal(found, whole[order])
    assert not np.array_equal(visits.items, RATINGS.items)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_by_key_are_bincounts_to_the_bit(kind: type) -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(5, size=10_000, dtype=np.int32)
    values: NDArray[np.floating] = rng.normal(size=10_000).astype(kind)
    assert np.array_equal(sums_by(keys, values, 6), np.bincount(keys, values, 6))

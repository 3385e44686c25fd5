"""Orders of ratings: counting sorts, and blocks that do not affect results; kept perturbed ratings."""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.factorization import shuffled_blocks, visiting_order
from dpmf_cli.algorithms.shared.private_factorization import in_order
from dpmf_cli.core.compiled.lane_groups import padded_width
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels import sgd
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.sgd import Sgd, Visits, descend_perturbed
from dpmf_cli.kernels.sums import item_major, shuffle_within, sums_by
from dpmf_cli.privacy.noise import LaneNoise
from tests.conftest import make_ratings

RATINGS = make_ratings(3, n_users=12, n_items=9)


def test_shuffling_within_users_keeps_users_together_and_moves_items() -> None:
    starts = RATINGS.user_starts
    order = shuffle_within(starts, np.random.default_rng(0).random(len(RATINGS)))
    assert sorted(order.tolist()) == list(range(len(RATINGS)))
    assert np.array_equal(RATINGS.users[order], RATINGS.users)
    assert not np.array_equal(order, np.arange(len(RATINGS)))


def test_shuffling_is_uniform() -> None:
    rng = np.random.default_rng(1)
    counts = np.zeros(6)
    for _ in range(6000):
        a, b, _ = shuffle_within(np.array([0, 3]), rng.random(3))
        counts[2 * a + (b > 3 - a - b)] += 1
    assert ((counts - 1000) ** 2 / 1000).sum() < 25.7  # χ² with 5 degrees of freedom, level 1e-4


@pytest.mark.parametrize("lanes", [1, 11])
def test_perturbed_ratings_are_the_same_kept_or_computed_anew(
    lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 4 * len(RATINGS) * padded_width(lanes)

    def after(most: int) -> bytes:
        monkeypatch.setattr(sgd, "MOST_KEPT", most)
        assert sgd.kept_bytes(len(RATINGS), lanes) == (taken if taken <= most else 0)
        rng = np.random.default_rng(4)
        p, q = rng.normal(0, 0.3, (12, 4)), rng.normal(0, 0.3, (9, 4))
        (group,) = factor_model(
            p, q, rng.normal(0, 0.3, (12, lanes)), rng.normal(3.5, 0.3, (9, lanes))
        ).groups
        noise = LaneNoise(np.random.default_rng(5).laplace(size=len(RATINGS)), np.linspace(0.1, 2, lanes))
        visits = Visits(RATINGS.users, RATINGS.items, RATINGS.values)
        descend_perturbed.run(group, noise, visits, Sgd(0.05, 0.1, 1.0, epochs=3))
        return group.users.tobytes() + group.items.tobytes()

    assert after(taken) == after(taken - 1)


MANY = make_ratings(7, n_users=40, n_items=13)


def test_item_major_is_the_stable_sort_by_item() -> None:
    starts, users, places = item_major(MANY)
    order = np.argsort(MANY.items, kind="stable")
    assert np.array_equal(users, MANY.users[order])
    assert np.array_equal(places, order)
    assert np.array_equal(np.diff(starts), MANY.item_counts)
    assert starts[0] == 0


@pytest.mark.parametrize("block", [1, 7, 50, 10**6])
def test_visits_in_blocks_are_those_of_one_draw_for_all_ratings(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shuffle_within(MANY.user_starts, np.random.default_rng(1).random(len(MANY)))
    monkeypatch.setattr("dpmf_cli.algorithms.shared.factorization.BLOCK", block)
    parts = list(shuffled_blocks(MANY, np.random.default_rng(1)))
    assert [part.start for part, _ in parts] == [0, *(part.stop for part, _ in parts[:-1])]
    assert np.array_equal(np.concatenate([part.start + places for part, places in parts]), whole)
    assert len(parts) == 1 or block < len(MANY)


@pytest.mark.parametrize("kind", ["user_major", "shuffled"])
def test_visits_are_the_ratings_in_the_order_of_visits(kind: Literal["user_major", "shuffled"]) -> None:
    streams = Streams(1, "x", "y", 0, 0)
    order = visiting_order(MANY, kind, streams.generator("order of visits"))
    visits = in_order(MANY, kind, streams)
    for found, whole in (
        (visits.users, MANY.users),
        (visits.items, MANY.items),
        (visits.values, MANY.values),
    ):
        assert np.array_equal(found, whole[order])
    assert not np.array_equal(visits.items, MANY.items)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_by_key_are_bincounts_to_the_bit(kind: type) -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(5, size=10_000, dtype=np.int32)
    values: NDArray[np.floating] = rng.normal(size=10_000).astype(kind)
    assert np.array_equal(sums_by(keys, values, 6), np.bincount(keys, values, 6))

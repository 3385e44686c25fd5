"""Folds and errors."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.evaluation.folds import assign_folds, portion
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.experiment.running.cutting import arrivals, cut_ratings
from tests.conftest import make_ratings


@given(st.integers(2, 12), st.integers(12, 200), st.integers(0, 100))
def test_folds_partition_the_ratings_evenly(folds: int, count: int, seed: int) -> None:
    counts = np.bincount(assign_folds(count, folds, np.random.default_rng(seed)), minlength=folds)
    assert counts.sum() == count
    assert np.ptp(counts) <= 1


def test_folds_are_random() -> None:
    """Ratings are ordered by user, so folds that followed their order would not be random samples."""
    one, other = (assign_folds(1000, 10, np.random.default_rng(seed)) for seed in (0, 1))
    assert 50 < (one == other).sum() < 200
    assert 50 < (one == np.arange(1000) % 10).sum() < 200


def test_no_test_rating_is_trained_on_and_none_is_lost() -> None:
    ratings = make_ratings()
    seen = []
    for fold in range(5):
        train, test = cut_ratings(ratings, Cut(5, fold), dataset="data", seed=0)
        pairs = [set(zip(part.users.tolist(), part.items.tolist(), strict=True)) for part in (train, test)]
        assert not pairs[0] & pairs[1]
        assert len(train) + len(test) == len(ratings)
        assert (train.n_users, train.n_items) == (ratings.n_users, ratings.n_items)
        seen.append(pairs[1])
    assert len(set.union(*seen)) == len(ratings) == sum(map(len, seen))


def test_ratings_without_the_pairs_of_others() -> None:
    ratings = make_ratings()
    listed = ratings.select(np.arange(len(ratings)) % 7 == 0)
    last = np.array([ratings.n_users - 1], np.int32), np.array([ratings.n_items - 1], np.int32)
    stranger = replace(listed, users=last[0], items=last[1], values=listed.values[:1])
    assert in_ratings(ratings, listed).tolist() == [at % 7 == 0 for at in range(len(ratings))]
    rest = ratings.select(~in_ratings(ratings, listed))
    assert not in_ratings(rest, listed).any()
    assert len(rest) + len(listed) == len(ratings)
    assert (rest.n_users, rest.n_items) == (ratings.n_users, ratings.n_items)
    few = ratings.select(ratings.users < last[0])
    assert not in_ratings(few, stranger).any()
    assert not in_ratings(few, few.select(np.zeros(len(few), np.bool_))).any()


DAY = 86_400
in_time = partial(arrivals, order="timestamp", dataset="data", seed=0)


def timed(times: np.ndarray | None = None) -> Ratings:
    ratings = make_ratings()
    if times is None:
        times = np.random.default_rng(1).integers(10, 40, len(ratings)) * DAY
    return replace(ratings, columns={"timestamp": times})


def test_time_is_the_order_and_ties_keep_their_place() -> None:
    times = np.zeros(len(make_ratings()), np.int32)
    times[:4] = [30, 10, 20, 10]
    order = in_time(timed(times))
    assert order[-4:].tolist() == [1, 3, 2, 0]
    assert order[:-4].tolist() == list(range(4, len(times)))


def test_what_a_portion_holds_by_hand() -> None:
    times = np.full(len(make_ratings()), 100 * DAY)
    times[:3] = [5 * DAY, 6.5 * DAY, 7 * DAY]
    ratings = timed(times)
    first = in_time(ratings)[:3]
    found = portion(ratings, 3 / len(times), "timestamp", first)
    assert (found.ratings, found.users, found.days) == (3, len(set(ratings.users[:3].tolist())), 2.0)
    assert portion(ratings, 0.5, "random", first).days is None


@pytest.mark.parametrize("times", [None, 7])
def test_ratings_of_no_time_or_of_one_have_no_first(times: int | None) -> None:
    ratings = make_ratings()
    if times is not None:
        ratings = timed(np.full(len(ratings), times))
    with pytest.raises(DpmfError, match="so no first ones; use `order: random`"):
        in_time(ratings)

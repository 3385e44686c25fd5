"""Portions: the first of the ratings, by time or at random, each within the next."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.portions import first_share, portion, ranked
from dpmf_cli.ratings import Ratings
from dpmf_cli.results.task import Cut
from dpmf_cli.running.cutting import arrivals, cut_ratings, fold_assignment, training_shape
from tests.conftest import make_ratings

DAY = 86_400


def timed(times: np.ndarray | None = None) -> Ratings:
    ratings = make_ratings()
    if times is None:
        times = np.random.default_rng(1).integers(10, 40, len(ratings)) * DAY
    return replace(ratings, columns={"timestamp": times})


def test_time_is_the_order_and_ties_keep_their_place() -> None:
    times = np.zeros(len(make_ratings()), np.int32)
    times[:4] = [30, 10, 20, 10]
    order = ranked(timed(times), "timestamp", rng=np.random.default_rng(0))
    assert order[-4:].tolist() == [1, 3, 2, 0]
    assert order[:-4].tolist() == list(range(4, len(times)))


@pytest.mark.parametrize("order", ["timestamp", "random"])
def test_a_larger_portion_holds_every_smaller_one(order: str) -> None:
    ratings = timed()
    shares = [
        first_share(arrivals(ratings, order, dataset="data", seed=3), share)  # type: ignore[arg-type]
        for share in (0.1, 0.25, 0.7, 1.0)
    ]
    assert [len(share) for share in shares] == [
        round(share * len(ratings)) for share in (0.1, 0.25, 0.7, 1.0)
    ]
    assert all(set(small.tolist()) <= set(large.tolist()) for small, large in pairwise(shares))


def test_a_random_order_follows_the_seed_alone() -> None:
    ratings = make_ratings()
    one, again, other = (arrivals(ratings, "random", dataset="data", seed=seed) for seed in (1, 1, 2))
    assert (one == again).all()
    assert 0 < (one == other).sum() < len(one) / 4


def test_what_a_portion_holds_by_hand() -> None:
    times = np.full(len(make_ratings()), 100 * DAY)
    times[:3] = [5 * DAY, 6.5 * DAY, 7 * DAY]
    ratings = timed(times)
    first = first_share(ranked(ratings, "timestamp", rng=np.random.default_rng(0)), 3 / len(times))
    found = portion(ratings, 3 / len(times), "timestamp", first)
    assert (found.ratings, found.users, found.days) == (3, len(set(ratings.users[:3].tolist())), 2.0)
    assert portion(ratings, 0.5, "random", first).days is None


@pytest.mark.parametrize("times", [None, 7])
def test_ratings_of_no_time_or_of_one_have_no_first(times: int | None) -> None:
    ratings = make_ratings()
    if times is not None:
        ratings = timed(np.full(len(ratings), times))
    with pytest.raises(DpmfError, match="so no first ones; use `order: random`"):
        ranked(ratings, "timestamp", rng=np.random.default_rng(0))


@pytest.mark.parametrize("order", ["timestamp", "random"])
def test_a_cut_of_a_portion_keeps_each_rating_in_its_fold(order: str) -> None:
    ratings = timed()
    folds = fold_assignment("data", 3, 4, len(ratings))
    first = np.zeros(len(ratings), np.bool_)
    first[first_share(arrivals(ratings, order, dataset="data", seed=3), 0.3)] = True  # type: ignore[arg-type]
    for fold in range(4):
        cut = Cut(4, fold, 0.3, order)  # type: ignore[arg-type]
        train, test = cut_ratings(ratings, cut, dataset="data", seed=3)
        for found, wanted in ((train, first & (folds != fold)), (test, first & (folds == fold))):
            assert found.users.tolist() == ratings.users[wanted].tolist()
            assert found.items.tolist() == ratings.items[wanted].tolist()
            assert (found.n_users, found.n_items) == (ratings.n_users, ratings.n_items)


def test_a_fixed_test_set_is_tested_on_and_never_trained_on() -> None:
    ratings = make_ratings()
    listed = ratings.select(np.arange(len(ratings)) % 5 == 0)
    train, test = cut_ratings(ratings, Cut(1, 0, test="probe"), dataset="data", seed=3, test=listed)
    assert test is listed
    assert len(train) == len(ratings) - len(listed)


def test_the_shape_of_a_training_set() -> None:
    whole = training_shape(100, 50, 1000, 10, squares=40_000.0)
    assert (whole.users, whole.items, whole.ratings) == (100, 50, 900)
    assert whole.squares == pytest.approx(40_000 * 0.81)
    fixed = training_shape(100, 50, 1000, 1, squares=40_000.0)
    assert (fixed.ratings, fixed.squares) == (1000, 40_000)
    by_time, sampled = (
        training_shape(100, 50, 1000, 10, squares=40_000.0, portion=0.5, order=order)
        for order in ("timestamp", "random")  # type: ignore[misc]
    )
    assert (by_time.ratings, sampled.ratings) == (450, 450)
    assert by_time.squares == pytest.approx(2 * sampled.squares)
    guessed = training_shape(100, 50, 1000, 10)
    assert guessed.squares == pytest.approx(2.5 * 900**2 / 100)

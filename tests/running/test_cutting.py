"""Training and test ratings: of folds, of portions of the ratings, and of a fixed test set."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpmf_cli.evaluation.portions import Order, first_share
from dpmf_cli.ratings import Ratings
from dpmf_cli.results.task import Cut
from dpmf_cli.running.cutting import arrivals, cut_ratings, fold_assignment, training_shape
from tests.conftest import make_ratings


def timed() -> Ratings:
    ratings = make_ratings()
    return replace(
        ratings, columns={"timestamp": np.random.default_rng(1).integers(10, 40, len(ratings)) * 86_400}
    )


@pytest.mark.parametrize("order", ["timestamp", "random"])
def test_a_larger_portion_holds_every_smaller_one(order: Order) -> None:
    ratings = timed()
    shares = [
        first_share(arrivals(ratings, order, dataset="data", seed=3), share)
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


@pytest.mark.parametrize("order", ["timestamp", "random"])
def test_a_cut_of_a_portion_keeps_each_rating_in_its_fold(order: Order) -> None:
    ratings = timed()
    folds = fold_assignment("data", 3, 4, len(ratings))
    first = np.zeros(len(ratings), np.bool_)
    first[first_share(arrivals(ratings, order, dataset="data", seed=3), 0.3)] = True
    for fold in range(4):
        cut = Cut(4, fold, 0.3, order)
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
        for order in ("timestamp", "random")
    )
    assert (by_time.ratings, sampled.ratings) == (450, 450)
    assert by_time.squares == pytest.approx(2 * sampled.squares)
    guessed = training_shape(100, 50, 1000, 10)
    assert guessed.squares == pytest.approx(2.5 * 900**2 / 100)

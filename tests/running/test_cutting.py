"""Training and test ratings: of folds, of portions of the ratings, and of a fixed test set."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.datasets import Sizes
from dpmf_cli.datasets.spec import LeaveOutSplit, NewUsersSplit, TimeSplit
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.experiment.running.cutting import arrivals, cut_ratings, folds_of
from dpmf_cli.experiment.running.plan import training_set
from tests.conftest import make_ratings


def timed() -> Ratings:
    ratings = make_ratings()
    return replace(
        ratings, columns={"timestamp": np.random.default_rng(1).integers(10, 40, len(ratings)) * 86_400}
    )


@pytest.mark.parametrize("order", ["timestamp", "random"])
def test_a_larger_portion_holds_every_smaller_one(order: Order) -> None:
    ratings = timed()
    asked = (0.1, 0.25, 0.7, 1.0)
    cuts = (Cut(4, 0, share, order) for share in asked)
    shares = [np.flatnonzero(folds_of(ratings, cut, dataset="data", seed=3) >= 0) for cut in cuts]
    assert [len(share) for share in shares] == [round(share * len(ratings)) for share in asked]
    assert all(set(small.tolist()) <= set(large.tolist()) for small, large in pairwise(shares))


def test_a_random_order_follows_the_seed_alone() -> None:
    one, again, other = (arrivals(make_ratings(), "random", dataset="data", seed=seed) for seed in (1, 1, 2))
    assert (one == again).all()
    assert 0 < (one == other).sum() < len(one) / 4


@pytest.mark.parametrize("order", ["timestamp", "random"])
def test_a_cut_of_a_portion_keeps_each_rating_in_its_fold(order: Order) -> None:
    ratings = timed()
    folds = folds_of(ratings, Cut(4, 0), dataset="data", seed=3)
    first = np.zeros(len(ratings), np.bool_)
    first[arrivals(ratings, order, dataset="data", seed=3)[: round(0.3 * len(ratings))]] = True
    for fold in range(4):
        cut = Cut(4, fold, 0.3, order)
        train, test = cut_ratings(ratings, cut, dataset="data", seed=3)
        for found, wanted in ((train, first & (folds != fold)), (test, first & (folds == fold))):
            same = ratings.select(wanted)
            assert found.users.tolist() == same.users.tolist()
            assert found.items.tolist() == same.items.tolist()
            assert (found.n_users, found.n_items) == (ratings.n_users, ratings.n_items)


def test_a_fixed_test_set_is_tested_on_and_never_trained_on() -> None:
    ratings = make_ratings()
    listed = ratings.select(np.arange(len(ratings)) % 5 == 0)
    train, test = cut_ratings(ratings, Cut(1, 0, split="probe"), dataset="data", seed=3, test=listed)
    assert test is listed
    assert len(train) == len(ratings) - len(listed)


def test_the_latest_ratings_of_each_user_are_held_out_by_chance() -> None:
    ratings = timed()
    times = ratings.columns["timestamp"]
    for portion, used in ((1.0, np.ones(len(ratings), np.bool_)), (0.5, np.zeros(len(ratings), np.bool_))):
        used[arrivals(ratings, "timestamp", dataset="data", seed=3)[: round(portion * len(ratings))]] = True
        folds = folds_of(ratings, Cut(3, 0, portion, split="recent"), dataset="data", seed=3)
        assert (folds[~used] == -1).all()
        for user in np.unique(ratings.users[used]):
            own = used & (ratings.users == user)
            latest = own & (folds < 3)
            assert latest.sum() == min(9, own.sum())
            assert latest.sum() == own.sum() or times[latest].min() >= times[own & ~latest].max()
        for fold in range(3):
            cut = Cut(3, fold, portion, split="recent")
            train, test = cut_ratings(ratings, cut, dataset="data", seed=3)
            assert test.items.tolist() == ratings.items[folds == fold].tolist()
            assert len(train) + len(test) == used.sum()


def test_a_rating_is_among_the_latest_held_out_with_probability_one_third() -> None:
    n = 30_000
    grid = np.indices((n // 10, 10)).reshape(2, -1).astype(np.int32)
    same = np.tile(np.repeat([0, 1], [1, 9]), n // 10)
    same[:10] = 0  # the first user has rated everything at once
    ratings = replace(
        Ratings(grid[0], grid[1], np.ones(n, np.float32), n // 10, 10, make_ratings().scale),
        columns={"timestamp": same},
    )
    folds = folds_of(ratings, Cut(3, 0, split="recent"), dataset="data", seed=3)
    counts = np.bincount(folds)
    assert counts[3] == n // 10
    assert np.abs(counts[:3] - n * 0.3).max() < 4 * np.sqrt(n * 0.9 * 2 / 9)
    last = [
        folds_of(ratings, Cut(3, 0, split="recent"), dataset="data", seed=seed)[:10] for seed in range(50)
    ]
    assert len({int(np.flatnonzero(each == 3)[0]) for each in last}) > 5  # which of equal times is at random


ONE_CUT = (
    TimeSplit(by="time", test=0.3),
    LeaveOutSplit(by="leave_out", k=2),
    LeaveOutSplit(by="leave_out", k=2, which="random"),
    NewUsersSplit(by="new_users", users=0.2, fold_in=0.7),
    NewUsersSplit(by="new_users", users=0.001, fold_in=0.7),
)


@pytest.mark.parametrize("split", ONE_CUT, ids=str)
def test_one_cut_holds_out_what_it_says(split: TimeSplit | LeaveOutSplit | NewUsersSplit) -> None:
    times = np.random.default_rng(1).permutation(len(make_ratings())) // 40
    ratings = replace(make_ratings(), columns={"timestamp": times})
    train, test = cut_ratings(ratings, Cut(1, 0, split=split), dataset="data", seed=3)
    other = folds_of(ratings, Cut(1, 0, split=split), dataset="data", seed=4)
    assert (other[in_ratings(ratings, test)] == 1).any()  # between equal times, too, chance decides
    assert len(train) + len(test) == len(ratings)
    assert not in_ratings(train, test).any()
    before, after, new = train.columns["timestamp"], test.columns["timestamp"], test.user_counts > 0
    if isinstance(split, TimeSplit):
        assert (len(test), before.max() <= after.min()) == (round(0.3 * len(ratings)), True)
    elif isinstance(split, LeaveOutSplit):
        assert (test.user_counts == np.minimum(2, ratings.user_counts)).all()
        users = np.flatnonzero(train.user_counts)
        late = [before[train.users == user].max() <= after[test.users == user].min() for user in users]
        assert all(late) == (split.which == "last")
    else:
        assert new.sum() == max(1, round(split.users * ratings.n_users))
        assert (train.user_counts == np.where(new, ratings.user_counts * 7 // 10, ratings.user_counts)).all()


@pytest.mark.parametrize("split", ONE_CUT[:3], ids=str)
def test_one_rating_more_moves_no_other_users_rating_over_a_cut(split: TimeSplit | LeaveOutSplit) -> None:
    whole = replace(make_ratings(), columns={"timestamp": np.arange(len(make_ratings())) % 5})
    for row in range(0, len(whole), 97):
        others = np.arange(len(whole)) != row
        both = [
            cut_ratings(each, Cut(1, 0, split=split), dataset="data", seed=3)[0]
            for each in (whole, whole.select(others))
        ]
        pairs, fewer = ({*zip(each.users.tolist(), each.items.tolist(), strict=True)} for each in both)
        assert len(pairs ^ fewer) <= (2 if split.by == "time" else 1)
        assert split.by == "time" or {user for user, _ in pairs ^ fewer} <= {int(whole.users[row])}


def test_what_is_held_out_of_the_latest_is_what_a_plan_counts_on() -> None:
    for ratings, held_out in ((900, 0.1 / 3), (50, 1 / 3)):
        shape, asked = training_set(Cut(3, 0, split="recent"), Sizes(10, 5, ratings, "counted"))
        assert (asked, shape.ratings) == pytest.approx((ratings * held_out, round(ratings * (1 - held_out))))


def test_the_shape_of_a_training_set() -> None:
    sized, squares = Sizes(100, 50, 1000, "counted"), 40_000.0
    whole, held_out = training_set(Cut(10, 0), sized, squares)
    assert (whole.users, whole.items, whole.ratings, held_out) == (100, 50, 900, 100)
    assert whole.squares == pytest.approx(40_000 * 0.81)
    orders: tuple[Order, Order] = ("timestamp", "random")
    by_time, sampled = (training_set(Cut(10, 0, 0.5, order), sized, squares)[0] for order in orders)
    assert (by_time.ratings, sampled.ratings) == (450, 450)
    assert by_time.squares == pytest.approx(2 * sampled.squares)
    assert training_set(Cut(10, 0), sized)[0].squares == pytest.approx(2.5 * 900**2 / 100)

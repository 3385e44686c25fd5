"""Portions: the first part of the ratings, by time or at random, each contained in the next."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.folds import first_share, portion, ranked
from dpmf_cli.ratings import Ratings
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

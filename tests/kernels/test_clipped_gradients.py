"""No user moves clipped sums by more than the bound, and what is not finite adds nothing.

The sums themselves are tested with the methods that take them (tests/algorithms), which are written out in NumPy.
"""

from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.als import by_item
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, factor_model
from dpmf_cli.kernels.gradients import clipped_item_sums
from dpmf_cli.kernels.normal_equations import (
    RatingWeights,
    Residuals,
    UserParts,
    item_equations,
    shorten_users,
)
from tests.conftest import make_ratings

RATINGS = make_ratings(2, n_users=20, n_items=12)


def model_of(ratings: Ratings, scale: float, seed: int = 0, factors: int = 3, grid: int = 2) -> FactorModel:
    rng = np.random.default_rng(seed)
    n_users, n_items = ratings.n_users, ratings.n_items
    users, items = rng.normal(0, scale, (n_users, factors)), rng.normal(0, 1, (n_items, factors))
    return factor_model(users, items, rng.normal(0, 1, (n_users, grid)), rng.normal(3, 1, (n_items, grid)))


def lanes_of(*given: Any, **more: Any) -> FactorLanes:
    (lanes,) = model_of(*given, **more).groups
    return lanes


def test_what_others_add_is_not_rounded_anew_with_a_user() -> None:
    """6,000 users on one item: in single precision the sum would move by several per cent more than the bound."""
    n, clip = 6000, 1e-4
    users, fives = np.arange(n, dtype=np.int32), np.full(n, 5, np.float32)
    ratings = Ratings(users, np.zeros(n, np.int32), fives, n, 1, RATINGS.scale)
    factors = lanes_of(ratings, 1.0, factors=1)
    everybody = np.arange(n)
    whole, _ = clipped_item_sums(factors, ratings, clip)
    moves = [
        np.abs(whole - clipped_item_sums(factors, ratings, clip, sampled=np.delete(everybody, u))[0]).max()
        for u in (0, 1, 2, 3000, n - 1)
    ]
    assert moves == pytest.approx([clip] * 5, rel=1e-9)


def test_a_direction_that_is_not_finite_adds_nothing_nor_does_a_user_without_ratings() -> None:
    factors, along, some = lanes_of(RATINGS, 0.7), np.ones((20, 2, 2)), RATINGS.select(RATINGS.users != 5)
    along[3, 1, 0] = np.inf
    found, left = clipped_item_sums(factors, some, np.ones(2), directions=along)
    along[3] = 0
    without_it, _ = clipped_item_sums(factors, some, np.ones(2), directions=along)
    assert left[3, 0] == 0
    assert not left[5].any()
    assert np.array_equal(found[..., 0], without_it[..., 0])


def test_a_user_whose_factors_are_not_finite_adds_nothing_to_normal_equations() -> None:
    model, rng = model_of(RATINGS, 0.7, grid=19), np.random.default_rng(5)
    weights = RatingWeights(rng.uniform(0.1, 1, (20, 19)), rng.uniform(0.1, 1, (12, 19)))
    parts = UserParts(RATINGS, by_item(RATINGS), weights, Residuals(1.5, after_factors=True, vector=0.7))
    model.groups[0].rows("users")[3, 1, 2] = np.nan
    _, found = item_equations(model, parts, slice(None))
    model.groups[0].rows("users")[3, :, 2] = 0
    assert found == pytest.approx(item_equations(model, parts, slice(None))[1], abs=1e-12)


def test_users_are_shortened_and_what_is_not_finite_is_0() -> None:
    model, limits = model_of(RATINGS, 0.7, grid=19), np.linspace(0.3, 1.2, 19)
    before = model.published["users"][:, :-1].astype(float)
    model.groups[0].rows("users")[3:5, 1, 2] = np.nan, np.inf
    before[3:5, :, 2] = 0
    shorten_users(model, limits)
    after = model.published["users"][:, :-1].astype(float)
    lengths = np.maximum(np.linalg.norm(before, axis=1), 1e-300)
    assert np.all(np.linalg.norm(after, axis=1) <= limits)
    assert after == pytest.approx(before * np.minimum(1, limits / lengths)[:, None], rel=1e-6)

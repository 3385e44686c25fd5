"""Clipped gradients against NumPy, and no neighbour that differs in a user moves them by more than the bound."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.factors import FactorLanes, factor_model
from dpmf_cli.kernels.gradients import clipped_item_sums, descend_items
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import clipped_contributions
from tests.conftest import make_ratings

RATINGS = make_ratings(2, n_users=20, n_items=12)


def lanes_of(ratings: Ratings, scale: float, seed: int = 0, factors: int = 3) -> FactorLanes:
    rng = np.random.default_rng(seed)
    n_users, n_items = ratings.n_users, ratings.n_items
    users, items = rng.normal(0, scale, (n_users, factors)), rng.normal(0, 1, (n_items, factors))
    effects = rng.normal(0, 1, (n_users, 2)), rng.normal(3, 1, (n_items, 2))
    (lanes,) = factor_model(users, items, *effects).groups
    return lanes


def sums_by_numpy(
    factors: FactorLanes, along: np.ndarray, ratings: Ratings, weights: np.ndarray, clip: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    users, items = (factors.table(side).astype(np.float64) for side in ("users", "items"))
    total = np.zeros((ratings.n_items, along.shape[1], factors.lanes))
    left = np.zeros((ratings.n_users, factors.lanes))
    for lane in range(factors.lanes):
        for u in np.unique(ratings.users):
            own = np.zeros((ratings.n_items, along.shape[1]))
            for x in np.flatnonzero(ratings.users == u):
                i = ratings.items[x]
                error = ratings.values[x] - users[u, -1, lane] - items[i, -1, lane]
                error -= users[u, :-1, lane] @ items[i, :-1, lane]
                own[i] = weights[u] * error * along[u, :, lane]
            left[u, lane] = min(1.0, clip[lane] / max(float(np.linalg.norm(own)), 1e-300))
            total[..., lane] += own * left[u, lane]
    return total, left


def by_numpy(factors: FactorLanes, ratings: Ratings, sampled: np.ndarray, clip: float) -> np.ndarray:
    some = ratings.select(np.isin(ratings.users, sampled))
    along, equal = factors.rows("users").astype(np.float64), np.ones(ratings.n_users)
    return sums_by_numpy(factors, along, some, equal, np.full(factors.lanes, clip))[0]


def without(ratings: Ratings, user: int) -> Ratings:
    return ratings.select(ratings.users != user)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100), st.integers(0, 19), st.data())
def test_a_user_moves_the_gradient_by_no_more_than_the_bound(
    seed: int, clip: float, user: int, data: Any
) -> None:
    """For any ratings of the user, and however large all factors are."""
    rng = np.random.default_rng(seed)
    extreme = RATINGS.scale.minimum + RATINGS.scale.width * rng.integers(0, 2, len(RATINGS))
    ratings = replace(RATINGS, values=extreme.astype(np.float32))
    factors = lanes_of(ratings, data.draw(st.sampled_from([1e-3, 1.0, 1e3])), seed)
    present, absent = (
        clipped_item_sums(factors, some, clip)[0] for some in (ratings, without(ratings, user))
    )
    moved = np.linalg.norm((present - absent).reshape(-1, factors.lanes), axis=0)
    bound = clipped_contributions(clip, 2, Neighbours.USER)
    assert bound.neighbours is Neighbours.USER
    assert np.all(moved <= bound.value * (1 + 1e-9))


def test_the_bound_is_attained() -> None:
    factors = lanes_of(RATINGS, 1.0)
    present, absent = (clipped_item_sums(factors, some, 0.1)[0] for some in (RATINGS, without(RATINGS, 5)))
    moved = np.linalg.norm((present - absent).reshape(-1, factors.lanes), axis=0)
    assert moved == pytest.approx(clipped_contributions(0.1, 2, Neighbours.USER).value)


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


@pytest.mark.parametrize("clip", [0.5, 5.0, 1e9])
def test_each_users_gradient_is_clipped_as_a_whole_and_each_model_takes_its_own_step(clip: float) -> None:
    """Nineteen models, in two groups: Q ← Q + η(gradients − w·Q), with a gradient and an η for each."""
    rng = np.random.default_rng(1)
    effects = rng.normal(0, 1, (20, 19)), rng.normal(3, 1, (12, 19))
    model = factor_model(rng.normal(0, 1, (20, 3)), rng.normal(0, 1, (12, 3)), *effects)
    sampled = np.array([0, 3, 4, 19])
    found, _ = clipped_item_sums(model, RATINGS, clip, sampled=sampled)
    expected = [by_numpy(group, RATINGS, sampled, clip) for group in model.groups]
    assert found == pytest.approx(np.concatenate(expected, axis=-1), abs=1e-9)
    before = np.concatenate([group.rows("items") for group in model.groups], axis=-1)
    rates = np.linspace(0, 1, 19)
    descend_items(model, found, rates, 0.3)
    after = np.concatenate([group.rows("items") for group in model.groups], axis=-1)
    assert after == pytest.approx(before + rates * (found - 0.3 * before), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("clip", [0.3, 4.0, 1e9])
def test_weighted_sums_along_directions_are_clipped_user_by_user(clip: float) -> None:
    factors, rng = lanes_of(RATINGS, 0.7), np.random.default_rng(8)
    along, weights = rng.normal(size=(20, 2, 2)), rng.uniform(0.1, 1, 20)
    clips, some = np.array([clip, 2 * clip]), without(RATINGS, 5)
    found = clipped_item_sums(factors, some, clips, directions=along, weights=weights)
    for one, other in zip(found, sums_by_numpy(factors, along, some, weights, clips), strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    assert not found[1][5].any()


def test_a_direction_that_is_not_finite_adds_nothing() -> None:
    factors, along = lanes_of(RATINGS, 0.7), np.ones((20, 2, 2))
    clips = np.ones(2)
    along[3, 1, 0] = np.inf
    found, left = clipped_item_sums(factors, RATINGS, clips, directions=along)
    along[3] = 0
    without_it, _ = clipped_item_sums(factors, RATINGS, clips, directions=along)
    assert left[3, 0] == 0
    assert np.array_equal(found[..., 0], without_it[..., 0])

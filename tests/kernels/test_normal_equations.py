"""Weighted normal equations of items against NumPy, and how far a user moves them."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.als import by_item
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.normal_equations import (
    RatingWeights,
    Residuals,
    UserParts,
    isometric,
    item_equations,
    last_ranks,
    shorten_users,
    squared_weights,
    whole,
)
from tests.conftest import make_ratings

RATINGS = make_ratings(3, n_users=23, n_items=14)
GRID, FACTORS, MOST = 19, 3, 4
"""Two groups of lanes."""
SOME = slice(2, 11)


def model_of(ratings: Ratings, factors: int = FACTORS, scale: float = 0.7) -> FactorModel:
    rng = np.random.default_rng(4)
    users, items = (
        rng.normal(0, scale, (ratings.n_users, factors)),
        rng.normal(0, 1, (ratings.n_items, factors)),
    )
    effects = rng.normal(0, 1, (ratings.n_users, GRID)), rng.normal(3, 1, (ratings.n_items, GRID))
    model = factor_model(users, items, *effects)
    for group in model.groups:
        group.rows("users")[:] *= np.linspace(0.5, 1.5, group.lanes, dtype=np.float32)
    return model


def weights_of(ratings: Ratings, *, ranked: bool) -> RatingWeights:
    rng = np.random.default_rng(5)
    weights = RatingWeights(
        rng.uniform(0.1, 1, (ratings.n_users, GRID)), rng.uniform(0.1, 1, (ratings.n_items, GRID))
    )
    if not ranked:
        return weights
    ranks = rng.permuted(np.tile(np.arange(ratings.n_items, dtype=float)[:, None], GRID), axis=0)
    return replace(weights, ranks=ranks, last=last_ranks(ratings, ranks, MOST))


def by_numpy(
    model: FactorModel, ratings: Ratings, weights: RatingWeights, residuals: Residuals
) -> tuple[np.ndarray, np.ndarray]:
    """A (n_items, E, d, d) and b (n_items, d, E), user by user."""
    published = {side: table.astype(float) for side, table in model.published.items()}
    d = published["users"].shape[1] - 1
    gram, sides = np.zeros((ratings.n_items, GRID, d, d)), np.zeros((ratings.n_items, d, GRID))
    bounds, vectors = (np.broadcast_to(each, GRID) for each in (residuals.bound, residuals.vector))
    for lane in range(GRID):
        for u in range(ratings.n_users):
            own, p = np.zeros((ratings.n_items, d)), published["users"][u, :-1, lane]
            mine = np.flatnonzero(ratings.users == u)
            if weights.ranks is not None:
                order = np.argsort(weights.ranks[ratings.items[mine], lane])
                mine = mine[order[:MOST]]
            for x in mine:
                i = ratings.items[x]
                left = ratings.values[x] - published["items"][i, -1, lane] - published["users"][u, -1, lane]
                if residuals.after_factors:
                    left -= p @ published["items"][i, :-1, lane]
                weight = weights.users[u, lane] * weights.items[i, lane]
                own[i] = weight * np.clip(left, -bounds[lane], bounds[lane]) * p
                gram[i, lane] += weight * np.outer(p, p)
            sides[..., lane] += own * min(1.0, vectors[lane] / max(float(np.linalg.norm(own)), 1e-300))
    return gram, sides


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize(
    "residuals",
    [
        Residuals(),
        Residuals(0.8),
        Residuals(np.linspace(0.2, 2, GRID), after_factors=True),
        Residuals(1.5, vector=0.7),
        Residuals(1.5, after_factors=True, vector=np.linspace(0.01, 3, GRID)),
    ],
)
def test_they_are_the_weighted_sums_of_clipped_parts(ranked: bool, residuals: Residuals) -> None:
    model, weights = model_of(RATINGS), weights_of(RATINGS, ranked=ranked)
    gram, sides = by_numpy(model, RATINGS, weights, residuals)
    arguments = (model, UserParts(RATINGS, by_item(RATINGS), weights, residuals), SOME)
    packed, found = item_equations(*arguments)
    assert whole(isometric(packed, FACTORS), FACTORS) == pytest.approx(gram[SOME], abs=1e-12)
    assert found == pytest.approx(sides[SOME], abs=1e-12)
    assert np.array_equal(item_equations(*arguments, with_gram=False)[1], found)


def test_users_are_shortened_and_what_is_not_finite_is_0() -> None:
    model, limits = model_of(RATINGS), np.linspace(0.3, 1.2, GRID)
    model.groups[0].rows("users")[3, 1, 2] = np.nan
    model.groups[0].rows("users")[4, 1, 2] = np.inf
    before = model.published["users"][:, :-1].astype(float)
    shorten_users(model, limits)
    after = model.published["users"][:, :-1].astype(float)
    assert np.all(np.linalg.norm(after, axis=1) <= limits)
    assert not after[3:5, :, 2].any()
    lengths = np.linalg.norm(before, axis=1)
    with np.errstate(invalid="ignore"):
        expected = before * np.minimum(1, limits / lengths)[:, None]
    finite = np.isfinite(lengths)[:, None] & np.ones_like(before, bool)
    assert after[finite] == pytest.approx(expected[finite], rel=1e-6)


def test_a_user_whose_part_is_not_finite_adds_nothing() -> None:
    model, weights = model_of(RATINGS), weights_of(RATINGS, ranked=False)
    parts = UserParts(RATINGS, by_item(RATINGS), weights, Residuals(1.5, after_factors=True, vector=0.7))
    model.groups[0].rows("users")[3, 1, 2] = np.nan
    _, found = item_equations(model, parts, slice(None))
    model.groups[0].rows("users")[3, :, 2] = 0
    assert found == pytest.approx(item_equations(model, parts, slice(None))[1], abs=1e-12)


def test_as_many_items_as_a_user_may_have() -> None:
    weights = weights_of(RATINGS, ranked=True)
    assert weights.ranks is not None
    assert weights.last is not None
    left = weights.ranks[RATINGS.items] <= weights.last[RATINGS.users]
    for lane in range(GRID):
        counts = np.bincount(RATINGS.users, left[:, lane], RATINGS.n_users)
        assert np.array_equal(counts, np.minimum(RATINGS.user_counts, MOST))
        squares = np.bincount(
            RATINGS.users, left[:, lane] * weights.items[RATINGS.items, lane] ** 2, RATINGS.n_users
        )
        assert squared_weights(RATINGS, weights)[:, lane] == pytest.approx(squares)

"""Mixtures over lanes: rows that are empty or vanish, and how far users move.

What is solved and summed is tested by `test_em_is_plain_em` (tests/algorithms/test_local.py).
"""

import numpy as np
import pytest

from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.factors import FactorModel, factor_model, move_factors, set_effects, users_moved
from dpmf_cli.kernels.mixture import Mixture, by_item, by_user, solve_mixture
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)
GRID, RNG = 20, np.random.default_rng(2)
P, Q = RNG.uniform(0, 1, (15, 2)), RNG.uniform(0, 1, (11, 2))


def start() -> FactorModel:
    """Models in two groups, each with its own averages."""
    return factor_model(P, Q, RNG.normal(0, 0.3, (15, GRID)), RNG.normal(0.5, 0.3, (11, GRID)))


def solve(model: FactorModel, ratings: SideRatings, ridge: float) -> None:
    values = LaneValues.of_grid(RNG.uniform(0, 1, (len(RATINGS), GRID)).astype(np.float32))
    mixture = Mixture(np.ones((1, GRID)), np.geomspace(0.02, 3, GRID)[None])
    solve_mixture(model, ratings, values, mixture, regularization=ridge, active=np.ones(GRID, np.bool_))


def test_a_row_without_ratings_stays() -> None:
    model, of_users = start(), by_user(RATINGS)
    solve(model, SideRatings("users", of_users.rows._replace(starts=np.zeros(16, np.int64))), 0.07)
    assert model.published["users"][:, :-1, 0] == pytest.approx(P, abs=1e-6)


def test_factors_that_a_ridge_removes_end_at_zero() -> None:
    """Numbers below the smallest normal number would make every later sweep a hundred times slower."""
    model = start()
    for ratings in (by_user(RATINGS), by_item(RATINGS)) * 12:
        solve(model, ratings, 1e3)
        factors = np.concatenate([table[:, :-1] for table in model.published.values()])
        assert (np.abs(factors[factors != 0]) >= 0.99e-12).all()
    assert not factors.any()


def test_how_far_users_move_is_told_of_each_model_without_their_averages() -> None:
    model = start()
    before, then = [group.users.copy() for group in model.groups], model.published["users"][:, :-1]
    moves = np.random.default_rng(5).normal(0, 1, then.shape) * np.linspace(0, 1, GRID)
    move_factors(model, "users", slice(None), moves)
    set_effects(model, "users", np.full((15, GRID), 9.0))
    now = model.published["users"][:, :-1].astype(np.float64)
    expected = np.sqrt(((now - then) ** 2).sum(axis=(0, 1)) / (now**2).sum(axis=(0, 1)))
    assert users_moved(before, model) == pytest.approx(expected, rel=1e-5)
    assert users_moved(before, model)[0] == 0

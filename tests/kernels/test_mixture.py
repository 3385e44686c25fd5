"""Least squares weighted by a mixture, over lanes, against NumPy in float64."""

import numpy as np
import pytest

from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model, move_factors, set_effects, users_moved
from dpmf_cli.kernels.mixture import (
    Mixture,
    by_item,
    by_user,
    mixture_sums,
    residual_variances,
    solve_mixture,
)
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)
MESSAGES: dict[Side, SideRatings] = {"users": by_user(RATINGS), "items": by_item(RATINGS)}
SIDES: tuple[Side, Side] = ("users", "items")
FACTORS, RIDGE, GRID = 2, 0.07, 20
"""Models in two groups."""
EVERY = np.ones(GRID, np.bool_)
STOPPED = {"none": EVERY, "some": np.arange(GRID) % 5 > 0, "a group": np.arange(GRID) < 16}
"""Which models are active."""
RNG = np.random.default_rng(2)
P, Q = RNG.uniform(0, 1, (15, FACTORS)), RNG.uniform(0, 1, (11, FACTORS))
OF_USERS, OF_ITEMS = RNG.normal(0, 0.3, (15, GRID)), RNG.normal(0.5, 0.3, (11, GRID))
VALUES = RNG.uniform(0, 1, (len(RATINGS), GRID)).astype(np.float32)
LEFT = VALUES - OF_USERS[RATINGS.users] - OF_ITEMS[RATINGS.items]
MIXTURES = {
    "one component": Mixture(np.ones((1, GRID)), np.geomspace(0.02, 3, GRID)[None]),
    "three components": Mixture(
        RNG.dirichlet(np.ones(3), GRID).T * [[1], [1], [0.0]] + [[0.0], [0.0], [0.5]],
        np.geomspace([0.01, 0.1, 1.0], [0.3, 0.5, 2.0], GRID).T,
    ),
}


def start() -> FactorModel:
    """Models, each with its own averages."""
    return factor_model(P, Q, OF_USERS, OF_ITEMS)


def solve(model: FactorModel, side: Side, mixture: Mixture, active: np.ndarray, ridge: float = RIDGE) -> None:
    values = LaneValues.of_grid(VALUES)
    solve_mixture(model, MESSAGES[side], values, mixture, regularization=ridge, active=active)


def posterior(errors: np.ndarray, mixture: Mixture, lane: int) -> np.ndarray:
    """(K, n) equation 10."""
    variances = mixture.variances[:, lane, None]
    heights = mixture.proportions[:, lane, None] * np.exp(-(errors**2) / (2 * variances)) / np.sqrt(variances)
    return np.asarray(heights / heights.sum(axis=0))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", MIXTURES)
@pytest.mark.parametrize("active", STOPPED.values(), ids=STOPPED)
def test_each_row_of_an_active_model_minimises_its_weighted_ridge_regression(
    kind: str, side: Side, active: np.ndarray
) -> None:
    model, mixture = start(), MIXTURES[kind]
    solve(model, side, mixture, active)
    found = model.published[side]
    own, other, rows, others = (
        (P, Q, RATINGS.users, RATINGS.items) if side == "users" else (Q, P, RATINGS.items, RATINGS.users)
    )
    for lane in range(GRID):
        for row in range(len(own)):
            mine = rows == row
            factors, targets = other[others[mine]], LEFT[mine, lane]
            gamma = posterior(targets - factors @ own[row], mixture, lane)
            weight = (gamma / (12 * mixture.variances[:, lane, None])).sum(axis=0)
            gram = (factors.T * weight) @ factors + RIDGE * mine.sum() * np.eye(FACTORS)
            expected = np.linalg.solve(gram, (factors.T * weight) @ targets) if active[lane] else own[row]
            assert found[row, :-1, lane] == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("active", STOPPED.values(), ids=STOPPED)
def test_sums_of_the_mixture_and_variances(active: np.ndarray) -> None:
    model, mixture, values = start(), MIXTURES["three components"], LaneValues.of_grid(VALUES)
    counts, squares = mixture_sums(model, MESSAGES["users"], values, mixture, active)
    for lane in np.flatnonzero(active).tolist():
        errors = LEFT[:, lane] - (P[RATINGS.users] * Q[RATINGS.items]).sum(axis=1)
        gamma = posterior(errors, mixture, lane)
        assert counts[:, lane] == pytest.approx(gamma.sum(axis=1), rel=1e-4)
        assert squares[:, lane] == pytest.approx((gamma * errors**2).sum(axis=1), rel=1e-4)
    assert residual_variances(model, RATINGS, values) == pytest.approx(LEFT.var(axis=0), rel=1e-4)


def test_a_row_without_ratings_stays() -> None:
    model, mixture, values = start(), MIXTURES["one component"], LaneValues.of_grid(VALUES)
    nobody = SideRatings("users", MESSAGES["users"].rows._replace(starts=np.zeros(16, np.int64)))
    solve_mixture(model, nobody, values, mixture, regularization=RIDGE, active=EVERY)
    assert model.published["users"][:, :-1, 0] == pytest.approx(P, abs=1e-6)


def test_factors_that_a_ridge_removes_end_at_zero() -> None:
    """Numbers below the smallest normal number would make every later sweep a hundred times slower."""
    model = start()
    for _ in range(12):
        for side in SIDES:
            solve(model, side, MIXTURES["one component"], EVERY, ridge=1e3)
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

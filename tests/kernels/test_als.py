"""ALS over lanes against dense normal equations."""

import numpy as np
import pytest

from dpmf_cli.kernels.als import (
    RowProblem,
    by_user,
    solve_rows,
)
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.sums import residual_sums_by_user
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)


@pytest.mark.parametrize("bound", [np.inf, 0.7])
@pytest.mark.parametrize("factors", [1, 4])
def test_each_row_minimises_its_ridge_regression(factors: int, bound: float) -> None:
    rng = np.random.default_rng(factors)
    p, q = rng.normal(size=(15, factors)), rng.normal(size=(11, factors))
    users, items = rng.normal(0, 0.3, (15, 2)), rng.normal(3.5, 0.3, (11, 2))
    model = factor_model(p, q, users, items)
    ridge = 0.2
    solve_rows(model, by_user(RATINGS), RowProblem(ridge, bound))
    found = model.groups[0].users.reshape(15, factors + 1, model.groups[0].width)
    for lane in range(2):
        for user in range(15):
            rows = RATINGS.users == user
            of = RATINGS.items[rows]
            target = np.clip(RATINGS.values[rows] - items[of, lane] - users[user, lane], -bound, bound)
            gram = q[of].T @ q[of] + ridge * rows.sum() * np.eye(factors)
            assert found[user, :-1, lane] == pytest.approx(np.linalg.solve(gram, q[of].T @ target), abs=2e-4)
    assert np.allclose(found[:, -1, :2], users, atol=1e-7)


def user_rows(problem: RowProblem) -> tuple[np.ndarray, np.ndarray]:
    """Item factors, and the users' rows (15, 3) that solve a problem on residuals from 3.5."""
    rng = np.random.default_rng(2)
    q = rng.normal(size=(11, 3))
    model = factor_model(rng.normal(size=(15, 3)), q, np.zeros((15, 1)), np.full((11, 1), 3.5))
    solve_rows(model, by_user(RATINGS), problem)
    return q, model.groups[0].rows("users")[..., 0].astype(float)


def normal_equations(user: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ q·qᵀ and Σ r̃·q of one user, residuals from 3.5 clamped to ±1."""
    rows = RATINGS.users == user
    of = RATINGS.items[rows]
    return q[of].T @ q[of], q[of].T @ np.clip(RATINGS.values[rows] - 3.5, -1, 1)


def test_the_minimum_within_a_ball_meets_its_optimality_conditions() -> None:
    q, rows = user_rows(RowProblem(0.5, 1.0, per_rating=False, ball=0.2))
    lengths = np.linalg.norm(rows, axis=1)
    assert (lengths < 0.2 * (1 + 1e-5)).all()
    assert 0 < (lengths < 0.199).sum() < 15  # some minima are inside, some at the edge
    for user, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        gram, right = normal_equations(user, q)
        downhill = right - (gram + 0.5 * np.eye(3)) @ row
        if length < 0.199:
            assert downhill == pytest.approx(np.zeros(3), abs=2e-4)
        else:  # the gradient points straight out of the ball
            assert downhill @ row == pytest.approx(np.linalg.norm(downhill) * length, rel=2e-3, abs=2e-4)


def test_a_lane_in_the_ball_does_not_depend_on_one_outside() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.normal(size=(15, 3)), rng.normal(size=(11, 3))
    users, items = rng.normal(0, 0.5, (15, 8)), rng.normal(3.5, 0.5, (11, 8))
    problem = RowProblem(1.0, 1.0, per_rating=False, ball=0.15)
    together = factor_model(p, q, users, items)
    solve_rows(together, by_user(RATINGS), problem)
    for lane in range(8):
        alone = factor_model(p, q, users[:, [lane]], items[:, [lane]])
        solve_rows(alone, by_user(RATINGS), problem)
        one, of_all = (each.groups[0].users.reshape(15, 4, -1) for each in (alone, together))
        assert np.array_equal(one[:, :, 0], of_all[:, :, lane])


def test_residual_sums_by_user() -> None:
    averages = np.random.default_rng(0).normal(3.5, 0.5, (11, 3))
    sums = residual_sums_by_user(RATINGS.users, RATINGS.items, RATINGS.values, averages, 15)
    residuals = RATINGS.values[:, None] - averages[RATINGS.items]
    for user in range(15):
        assert sums[user] == pytest.approx(residuals[RATINGS.users == user].sum(axis=0))
    assert sums[15] == pytest.approx(residuals.sum(axis=0))
    alone = residual_sums_by_user(RATINGS.users, RATINGS.items, RATINGS.values, averages[:, [1]], 15)
    assert np.array_equal(alone[:, 0], sums[:, 1])

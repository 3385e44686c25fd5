"""ALS over lanes against dense normal equations."""

import numpy as np
import pytest

from dpmf_cli.kernels.als import RowProblem, by_user, solve_rows
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.sums import residual_sums_by_user
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)


@pytest.mark.parametrize("bound", [np.inf, 0.7])
@pytest.mark.parametrize("factors", [2, 5])
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


def test_residual_sums_by_user() -> None:
    averages = np.random.default_rng(0).normal(3.5, 0.5, (11, 3))
    sums = residual_sums_by_user(RATINGS.users, RATINGS.items, RATINGS.values, averages, 15)
    residuals = RATINGS.values[:, None] - averages[RATINGS.items]
    for user in range(15):
        assert sums[user] == pytest.approx(residuals[RATINGS.users == user].sum(axis=0))
    assert sums[15] == pytest.approx(residuals.sum(axis=0))
    alone = residual_sums_by_user(RATINGS.users, RATINGS.items, RATINGS.values, averages[:, [1]], 15)
    assert np.array_equal(alone[:, 0], sums[:, 1])

"""ALS over lanes against dense normal equations; gradients by coordinate, and the sums of reports and of clamped residuals
against NumPy.
"""

import numpy as np
import pytest

from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model, move_factors, set_effects
from dpmf_cli.kernels.gradients import clamped_sums, coordinate_gradients, sums_of_reports
from dpmf_cli.kernels.sums import residual_sums_by_user
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)


@pytest.mark.parametrize("bound", [np.inf, 0.7])
@pytest.mark.parametrize("factors", [1, 5])
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


@pytest.mark.parametrize("grid", [3, 20])
def test_a_report_is_of_its_own_coordinate_of_the_gradient(grid: int) -> None:
    rng = np.random.default_rng(3)
    p, q = rng.normal(0, 1, (15, 4)), rng.normal(0, 1, (11, 4))
    of_users, of_items = rng.normal(0, 1, (15, grid)), rng.normal(0, 1, (11, grid))
    users, items, values = RATINGS.users, RATINGS.items, RATINGS.values
    coordinates = rng.integers(4, size=len(RATINGS)).astype(np.uint8)
    model = factor_model(p, q, of_users, of_items)
    found = coordinate_gradients(model, users, items, coordinates, values, 0.05)
    predicted = (p[users] * q[items]).sum(axis=1)[:, None] + of_users[users] + of_items[items]
    expected = (values[:, None] - predicted) * p[users, coordinates][:, None] / 0.05
    assert found.shape == (len(RATINGS), grid)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_reports_are_summed_by_item_and_coordinate_as_often_as_they_count() -> None:
    items, coordinates = np.array([2, 0, 2, 2]), np.array([1, 0, 1, 0], np.uint8)
    reported = np.array([[1, 10], [2, 20], [4, 40], [8, 80]], np.float32)
    sums = sums_of_reports(items, coordinates, np.array([1, 1, 3, 2]), reported, (3, 2))
    expected = np.zeros((3, 2, 2))
    expected[0, 0], expected[2, 0], expected[2, 1] = (2, 20), (16, 160), (13, 130)
    assert np.array_equal(sums, expected)


OF_SIDES = make_ratings(2, n_users=20, n_items=12)


def model_of(grid: int, factors: int = 3) -> FactorModel:
    rng = np.random.default_rng(grid)
    users, items = rng.normal(0, 0.5, (20, factors)), rng.normal(0, 0.5, (12, factors))
    return factor_model(users, items, rng.normal(0, 1, (20, grid)), rng.normal(3, 1, (12, grid)))


@pytest.mark.parametrize("grid", [1, 3, 19])
@pytest.mark.parametrize("bound", [0.4, 1.5])
@pytest.mark.parametrize("side", ["users", "items"])
def test_each_sum_is_that_of_clamped_residuals_times_features(side: Side, grid: int, bound: float) -> None:
    model, of_users = model_of(grid), side == "users"
    features = np.asfortranarray(np.random.default_rng(1).normal(0, 1, (12 if of_users else 20, 4)))
    found = clamped_sums(model, (by_user if of_users else by_item)(OF_SIDES), features, bound)
    left = OF_SIDES.values[:, None] - model.predict(OF_SIDES.users, OF_SIDES.items).astype(np.float64)
    clamped = np.clip(left, -bound, bound) / bound
    own, other = (OF_SIDES.users, OF_SIDES.items) if of_users else (OF_SIDES.items, OF_SIDES.users)
    expected = np.zeros((20 if of_users else 12, 4, grid))
    np.add.at(expected, own, features[other][:, :, None] * clamped[:, None])
    assert found == pytest.approx(expected, abs=1e-5)


def test_factors_and_effects_are_changed_in_all_groups_and_only_where_asked() -> None:
    model, rng = model_of(19), np.random.default_rng(5)
    before = model.published
    moves, effects = rng.normal(0, 1, (12, 2, 19)), rng.normal(0, 1, (20, 19))
    move_factors(model, "items", slice(1, 3), moves)
    set_effects(model, "users", effects)
    after = model.published
    expected = {side: table.copy() for side, table in before.items()}
    expected["items"][:, 1:3] += moves.astype(np.float32)
    expected["users"][:, -1] = effects
    assert all(after[side] == pytest.approx(expected[side], abs=1e-6) for side in after)
    users, items = OF_SIDES.users, OF_SIDES.items
    products = np.einsum("nfe,nfe->ne", after["users"][users, :-1], after["items"][items, :-1])
    predicted = products + after["users"][users, -1] + after["items"][items, -1]
    assert model.predict(users, items) == pytest.approx(predicted, abs=1e-5)

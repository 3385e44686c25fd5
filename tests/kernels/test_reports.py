"""Gradients by coordinate and the sums of reports, against NumPy."""

import numpy as np
import pytest

from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.reports import coordinate_gradients, sums_of_reports
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)


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

"""The distribution of absolute errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf_cli.evaluation.metrics import error_cdf


def test_known_answer() -> None:
    values = np.array([1, 2, 3, 4], np.float32)
    predictions = np.array([[1, 5], [2.5, 5], [2, 5], [6, 5]], np.float32)
    found = error_cdf(predictions, values, [0, 0.5, 1, 2, 4])
    assert found.tolist() == [[0.25, 0.5, 0.75, 1, 1], [0, 0, 0.25, 0.5, 1]]


def test_a_prediction_that_is_not_finite_is_off_by_more_than_any_limit() -> None:
    predictions = np.array([[np.nan], [np.inf], [-np.inf], [3.0]])
    assert error_cdf(predictions, np.full(4, 3.0), [0.0, 1e300]).tolist() == [[0.25, 0.25]]


@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 4))
def test_it_counts(seed: int, count: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    predictions, values = (
        rng.integers(1, 6, (count, columns)).astype(float),
        rng.integers(1, 6, count).astype(float),
    )
    limits = np.arange(5.0)
    found = error_cdf(predictions, values, limits.tolist())
    assert found == pytest.approx(
        np.array([[np.mean(np.abs(p - values) <= x) for x in limits] for p in predictions.T])
    )
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, -1] == 1).all()


@pytest.mark.parametrize("limits", [[1, 1], [2, 1], [-0.5, 1]])
def test_limits_must_ascend_from_zero(limits: list[float]) -> None:
    with pytest.raises(ValueError, match="ascend"):
        error_cdf(np.zeros((2, 1)), np.zeros(2), limits)


def test_nothing_has_no_distribution() -> None:
    with pytest.raises(ValueError, match="no values"):
        error_cdf(np.zeros((0, 1)), np.zeros(0), [1.0])

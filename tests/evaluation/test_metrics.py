"""RMSE and MAE: each column alone gives the same bits as all columns at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.evaluation.folds import assign_folds
from dpmf_cli.evaluation.metrics import error_cdf, errors_of


def test_rmse_and_mae_by_hand() -> None:
    predictions = np.array([[1.0, 3.0], [2.0, np.nan]], np.float32)
    rmse, mae = errors_of(predictions, np.array([1.0, 4.0])).values()
    assert rmse.tolist() == [np.sqrt(2.0), np.inf]
    assert mae.tolist() == [1.0, np.inf]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_columns_are_summed_as_rows_of_one_matrix(kind: type[np.floating[Any]]) -> None:
    rng = np.random.default_rng(2)
    predictions: NDArray[Any] = rng.normal(size=(50_001, 3)).astype(kind)
    values = rng.normal(size=50_001)
    squares = np.square(predictions.T.astype(np.float64, order="C") - values)
    expected = np.sqrt([np.add.reduce(row) / len(values) for row in squares])
    for part in (slice(None), slice(1, 2)):
        rmse, mae = errors_of(predictions[:, part], values).values()
        assert np.array_equal(rmse, expected[part])
        assert mae == pytest.approx(np.abs(predictions - values[:, None]).mean(axis=0)[part])


def test_predictions_in_blocks_are_those_of_all_pairs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    model = EffectsModel(rng.normal(size=(9, 2)), rng.normal(size=(5, 2)))
    users, items = rng.integers(5, size=100, dtype=np.int32), rng.integers(9, size=100, dtype=np.int32)
    monkeypatch.setattr("dpmf_cli.algorithms.shared.averages_baseline._CHUNK", 7)
    assert np.array_equal(model.predict(users, items), model.items[items] + model.users[users])


def test_folds_are_dealt_out_in_turn_and_shuffled() -> None:
    dealt = (np.arange(1003) % 10).astype(np.int16)
    np.random.default_rng(5).shuffle(dealt)
    assert np.array_equal(assign_folds(1003, 10, np.random.default_rng(5)), dealt)


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

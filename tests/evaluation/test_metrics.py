"""RMSE and MAE: each column alone gives the same bits as all columns at once."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.evaluation.folds import assign_folds
from dpmf_cli.evaluation.metrics import mean_errors


def test_rmse_and_mae_by_hand() -> None:
    predictions = np.array([[1.0, 3.0], [2.0, np.nan]], np.float32)
    rmse, mae = mean_errors(predictions, np.array([1.0, 4.0]))
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
        rmse, mae = mean_errors(predictions[:, part], values)
        assert np.array_equal(rmse, expected[part])
        assert mae == pytest.approx(np.abs(predictions - values[:, None]).mean(axis=0)[part])


def test_predictions_in_blocks_are_those_of_all_pairs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    model = EffectsModel(rng.normal(size=(9, 2)), rng.normal(size=(5, 2)))
    users, items = rng.integers(5, size=100, dtype=np.int32), rng.integers(9, size=100, dtype=np.int32)
    monkeypatch.setattr("dpmf_cli.algorithms.shared.averages._CHUNK", 7)
    assert np.array_equal(model.predict(users, items), model.items[items] + model.users[users])


def test_folds_are_dealt_out_in_turn_and_shuffled() -> None:
    dealt = (np.arange(1003) % 10).astype(np.int16)
    np.random.default_rng(5).shuffle(dealt)
    assert np.array_equal(assign_folds(1003, 10, np.random.default_rng(5)), dealt)

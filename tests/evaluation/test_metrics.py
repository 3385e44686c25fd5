"""RMSE and MAE: each column alone gives the same bits as all columns at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.terminal import duration, signed, significant
from dpmf_cli.evaluation.metrics import error_cdf, errors_by_group, errors_of, quarters


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
    monkeypatch.setattr("dpmf_cli.algorithms.shared.averages._CHUNK", 7)
    assert np.array_equal(model.predict(users, items), model.items[items] + model.users[users])


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


def test_a_quarter_is_cut_by_rank_equal_counts_by_index() -> None:
    fewest, most = (np.flatnonzero(each).tolist() for each in quarters(np.array([2, 2, 7, 2, 0])))
    assert (fewest, most) == ([0, 4], [2, 3])
    assert [each.tolist() for each in quarters(np.array([3]))] == [[True], [True]]


def rated(pairs: list[tuple[int, int]], values: list[float]) -> Ratings:
    users, items = np.array(pairs, np.int32).T
    return Ratings(users, items, np.array(values, np.float32), 4, 4, Scale(1, 5))


TRAIN = rated([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)], [3.0] * 6)  # user 3 and item 3 are cold
TEST = rated([(0, 1), (0, 3), (2, 1), (3, 0), (3, 3)], [3.0, 5.0, 2.0, 4.0, 1.0])  # user 1 is not tested


def test_errors_by_group_by_hand() -> None:
    """Squared errors of the item average: users 0, 2 and 3 have 5, 1 and 4; user 2 has as many in the first column."""
    average = np.array([2.0, 3.0, 3.0, 4.0, 3.0])
    predictions = np.array([[3, 3, 3, 3, 3], [4, 5, 2, 7, 1], [3, 5, 2, np.nan, 1]], np.float32).T
    found = errors_by_group(predictions, average, TRAIN, TEST)
    least_active, most_active, least_popular, most_popular, gain = found.tolist()
    assert least_active == pytest.approx(np.sqrt([(1 + 4) / 2, 9 / 2, np.inf]))
    assert most_active == pytest.approx(np.sqrt([(0 + 4) / 2, 1 / 2, 0]))
    assert least_popular == pytest.approx(np.sqrt([(4 + 4) / 2, 0, 0]))
    assert most_popular == pytest.approx([1, 3, np.inf])
    assert gain == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert np.array_equal(errors_by_group(predictions[:, 1:2], average, TRAIN, TEST), found[:, 1:2])


def test_a_group_without_a_held_out_rating_is_named() -> None:
    tested = TEST.select(TEST.items != 3)
    with pytest.raises(DpmfError, match=r"least popular items: no held-out rating .*; use fewer `folds`"):
        errors_by_group(np.ones((3, 1)), np.ones(3), TRAIN, tested)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.18, "0.180"),
        (2, "2.00"),
        (12.5, "12.5"),
        (60, "60.0"),
        (9.996, "10.0"),
        (999.7, "1000"),
        (1234.5, "1230"),
        (0.000123, "0.000123"),
        (0.0000123, "1.23e-05"),
        (1.234e9, "1.23e+09"),
        (0, "0"),
    ],
)
def test_three_significant_figures(value: float, text: str) -> None:
    assert significant(value) == text


@given(st.floats(1e-12, 1e12))
def test_significant_figures_are_within_half_a_unit_of_the_last(value: float) -> None:
    assert float(significant(value)) == pytest.approx(value, rel=0.0051)


def test_a_difference_has_its_sign_and_a_true_minus() -> None:
    assert [signed(value, digits) for value, digits in ((0.00124, 4), (-1.25, 3), (0, 1))] == [
        "+0.0012",
        "−1.250",
        "+0.0",
    ]


def test_a_span_of_time_is_in_the_unit_that_suits_it() -> None:
    assert [duration(each) for each in (0, 99, 100, 5999, 9000)] == [
        "0 s",
        "99 s",
        "2 min",
        "100 min",
        "2.5 h",
    ]

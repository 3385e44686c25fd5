"""Axes: the visible range, and the places of ticks."""

import numpy as np
import pytest

from dpmf_cli.report.figures.axes import epsilon_ticks, rmse_limits


def test_the_axis_ends_a_little_above_the_worst_baseline() -> None:
    low, high = rmse_limits([np.array([50.0, 1.0, 0.9])], [1.1, 0.98])
    assert (low, high) == pytest.approx((0.888, 1.112))


def test_every_curve_keeps_its_best_point_in_sight_within_reason() -> None:
    _, high = rmse_limits([np.array([9.0, 1.4]), np.array([1.0])], [1.1])
    assert 1.4 < high < 1.43
    _, high = rmse_limits([np.array([9.0, 8.0]), np.array([1.0])], [1.1])
    assert 1.1 < high < 1.12
    low, high = rmse_limits([np.array([np.inf, 9.0, 1.0])], [])
    assert (low, high) == pytest.approx((0.94, 2.06))
    low, high = rmse_limits([np.array([1.0])], [])
    assert low < 1 < high


def test_local_curves_are_in_sight_from_end_to_end() -> None:
    """Unregularised ISGD at ε = 0.1 is 1.6 times the global average, and the paper's figure shows it."""
    curve = np.array([1.78, 1.5, 1.34])
    assert rmse_limits([curve], [1.13])[1] < 1.4
    assert 1.78 < rmse_limits([curve], [1.13], whole=True)[1] < 1.85
    assert 2.26 < rmse_limits([np.array([50.0, 1.0])], [1.13], whole=True)[1] < 2.4
    assert 1.13 < rmse_limits([np.array([1.0])], [1.13], whole=True)[1] < 1.15


def test_ticks_are_one_two_five_or_decades() -> None:
    assert epsilon_ticks(0.099, 21) == [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    assert epsilon_ticks(0.001, 100) == [0.001, 0.01, 0.1, 1, 10, 100]

"""Crossings: laws over generated curves, and of the intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf_cli.evaluation.crossings import (
    find_crossings,
    measure_crossing,
)
from dpmf_cli.evaluation.interpolation import first_crossing
from tests.evaluation.made_curves import baseline, crossing, curve, experiment, noisy, order


@st.composite
def differences(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A grid whose points are well apart, and a difference curve on it."""
    steps = draw(st.lists(st.floats(1.05, 4.0), min_size=1, max_size=10))
    epsilons = 0.05 * np.cumprod([1.0, *steps])
    values = draw(
        st.lists(
            st.floats(-1, 1).filter(lambda v: v == 0 or abs(v) > 1e-6),
            min_size=len(epsilons),
            max_size=len(epsilons),
        )
    )
    return epsilons, np.array(values)


@given(differences(), st.floats(0.05, 0.95), st.data())
def test_a_grid_point_added_on_the_line_changes_nothing(
    made: tuple[np.ndarray, np.ndarray], part: float, data: st.DataObject
) -> None:
    epsilons, values = made
    at = data.draw(st.integers(0, len(epsilons) - 2))
    added = epsilons[at] * (epsilons[at + 1] / epsilons[at]) ** part
    between = values[at] + part * (values[at + 1] - values[at])
    refined = first_crossing(np.insert(epsilons, at + 1, added), np.insert(values, at + 1, between))
    assert refined == pytest.approx(first_crossing(epsilons, values), rel=1e-6)


@given(differences(), st.floats(0.01, 100))
def test_scaling_epsilon_scales_the_crossing(made: tuple[np.ndarray, np.ndarray], factor: float) -> None:
    epsilons, values = made
    expected = first_crossing(epsilons, values) * factor
    assert first_crossing(epsilons * factor, values) == pytest.approx(expected, rel=1e-9)


@given(differences(), st.floats(0.01, 100))
def test_scaling_the_difference_keeps_the_crossing(
    made: tuple[np.ndarray, np.ndarray], factor: float
) -> None:
    epsilons, values = made
    assert first_crossing(epsilons, factor * values) == pytest.approx(
        first_crossing(epsilons, values), rel=1e-6
    )


@given(differences())
def test_the_status_says_where_the_curve_is(made: tuple[np.ndarray, np.ndarray]) -> None:
    epsilons, values = made
    found = first_crossing(epsilons, values)
    if (values > 0).all():
        assert found == math.inf
    elif values[0] <= 0:
        assert found == -math.inf
    else:
        assert epsilons[0] < found <= epsilons[-1]
        before = epsilons < found * (1 - 1e-9)
        assert (values[before] > 0).all()


@given(st.lists(differences(), min_size=2, max_size=2), st.integers(0, 2**31))
def test_many_curves_at_once_are_as_each_alone(made: list[tuple[np.ndarray, np.ndarray]], seed: int) -> None:
    epsilons = made[0][0]
    curves = np.random.default_rng(seed).normal(0.2, 1, (5, 4, len(epsilons)))
    at_once = first_crossing(epsilons, curves)
    assert at_once.shape == (5, 4)
    alone = [[first_crossing(epsilons, one) for one in row] for row in curves]
    np.testing.assert_allclose(at_once, alone, rtol=1e-14)  # NumPy's powers differ by a bit with the length


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=8),
    st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=10),
    st.floats(0.05, 2),
)
def test_the_interval_of_a_falling_curve_contains_the_crossing(
    falls: list[float], shifts: list[float], start: float
) -> None:
    epsilons = np.geomspace(0.1, 10, len(falls) + 1)
    values = start - np.cumsum([0.0, *falls]) + np.array(shifts)[:, None]
    found = crossing(epsilons, values[:, None, :])
    point = found.reproduced if found.reproduced is not None else order(found.status)
    assert order(found.low) <= point * (1 + 1e-9)
    assert point * (1 - 1e-9) <= order(found.high)


def test_scaling_epsilon_scales_the_interval() -> None:
    values = noisy(2, (5, 3, 3), [1.0, 0.1, -1.0])
    once, tenfold = crossing([0.1, 1, 10], values), crossing([1, 10, 100], values)
    assert order(tenfold.low) == pytest.approx(10 * order(once.low))
    assert order(tenfold.high) == pytest.approx(10 * order(once.high))


def test_a_crossing_does_not_depend_on_the_others_present() -> None:
    values = noisy(3, (3, 5, 3, 3), [1.0, 0.1, -1.0])
    curves = [curve([0.1, 1, 10], value, label=label) for value, label in zip(values, "abc", strict=True)]
    alone = {one.label: find_crossings(experiment(one)) for one in curves}
    together = find_crossings(experiment(*reversed(curves)))
    assert [found.label for found in together] == ["c", "b", "a"]
    assert all([found] == alone[found.label] for found in together)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = noisy(4, (5, 3, 3), [1.0, 0.1, -1.0])
    made = curve([0.1, 1, 10], values)
    (first,), (again,), (other,) = (find_crossings(experiment(made, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.reproduced == other.reproduced
    assert (first.low, first.high) != (other.low, other.high)


def test_the_interval_covers_the_true_crossing_of_overlapping_folds() -> None:
    """95 % at the correlation 1/k that the correction assumes; three standard errors are 3.3 %."""
    folds, trials, rng = 10, 400, np.random.default_rng(5)
    grid = np.array([0.1, 1.0, 10.0])
    covered = 0
    for trial in range(trials):
        common, own = (
            rng.normal() * math.sqrt(1 / folds),
            rng.normal(size=(folds, 1, 1)) * math.sqrt(1 - 1 / folds),
        )
        values = 0.1 * (common + own) + 0.02 * rng.normal(size=(folds, 2, 1)) + np.array([1.0, 0.0, -1.0])
        made = curve(grid, values)
        found = measure_crossing(experiment(made, seed=trial), made, baseline(folds=folds), replicates=400)
        covered += order(found.low) <= 1.0 <= order(found.high)
    assert covered / trials == pytest.approx(0.95, abs=0.034)

"""How far a crossing may be off between two grid points, for curves that are known between them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmf_cli.evaluation.crossings import SETTLED, WIDEST, crossing_range, first_crossing, open_gaps

NONE = np.empty((0, 0))


@st.composite
def smooth_curves(draw: st.DrawFn) -> tuple[float, float, float]:
    """(noise, power, level) of `difference`, whose RMSE falls with its noise: √(1 + (noise/ε)^power) − level."""
    return draw(st.floats(0.3, 3)), draw(st.floats(0.7, 2.5)), draw(st.floats(1.02, 1.6))


def difference(epsilons: np.ndarray, made: tuple[float, float, float]) -> np.ndarray:
    noise, power, level = made
    return np.asarray(np.sqrt(1 + (noise / epsilons) ** power) - level, np.float64)


def true_crossing(made: tuple[float, float, float]) -> float:
    noise, power, level = made
    return float(noise / (level**2 - 1) ** (1 / power))


@given(smooth_curves(), st.floats(1.05, 4), st.floats(0, 1))
def test_the_range_holds_the_true_crossing(
    made: tuple[float, float, float], ratio: float, shift: float
) -> None:
    true = true_crossing(made)
    epsilons = true * np.power(ratio, np.arange(-3.0, 4) + shift)
    values = difference(epsilons, made)
    low, high = (float(end) for end in crossing_range(epsilons, values))
    assert low * (1 - 1e-9) <= true <= high * (1 + 1e-9)
    assert low <= first_crossing(epsilons, values) <= high


@given(smooth_curves(), st.floats(1.05, 1.45), st.floats(0.1, 0.9))
def test_a_gap_cut_in_half_leaves_a_third_open_at_most(
    made: tuple[float, float, float], ratio: float, shift: float
) -> None:
    def width(step: float) -> float:
        epsilons = true_crossing(made) * np.power(step, np.arange(-8.0, 9) + shift)
        low, high = crossing_range(epsilons, difference(epsilons, made))
        return float(np.log(high / low)) / (shift * (1 - shift))

    assert width(ratio**0.5) <= width(ratio) / 3


def test_the_range_ends_where_a_parabola_with_twice_its_bend_crosses() -> None:
    x = np.array([0.0, 0.3, 0.6, 0.9])
    values = 0.5 * x**2 - 1.2 * x + 0.5  # meets 0 between 0.3 and 0.6
    chord = first_crossing(np.exp(x), values)
    low, high = crossing_range(np.exp(x), values)
    # Chord minus twice the bend 0.5·(x − 0.3)·(0.6 − x).
    doubled = np.roots([1.0, -0.9 - 0.75, 0.18 + 0.41])
    assert np.log(low) == pytest.approx(min(doubled, key=lambda root: abs(root - 0.45)))
    assert high == chord


@pytest.mark.parametrize("epsilons", [[1.0, 1.2], [0.5, 1.0, 1.01 * WIDEST, 3.0]])
def test_of_two_points_or_a_wide_gap_nothing_is_known_between_them(epsilons: list[float]) -> None:
    values = np.linspace(0.9, -1.1, len(epsilons)) if len(epsilons) == 2 else np.array([2.0, 1.0, -1.0, -2.0])
    low, high = crossing_range(np.array(epsilons), values)
    at = len(epsilons) // 2 - 1
    assert [float(low), float(high)] == epsilons[at : at + 2]


@pytest.mark.parametrize("values", [[0.3, 0.2, 0.1], [-0.1, -0.2, -0.3], [-0.1]])
def test_outside_of_the_grid_there_is_no_range_and_nothing_to_add(values: list[float]) -> None:
    epsilons = np.array([1.0, 3.0, 9.0])[: len(values)]
    low, high = crossing_range(epsilons, np.array(values))
    assert low == high == first_crossing(epsilons, np.array(values))
    assert open_gaps(epsilons, np.array(values), NONE) == []


def test_a_gap_is_open_until_interpolation_moves_the_crossing_by_less_than_its_interval() -> None:
    epsilons = 1.3 ** np.arange(12.0)
    values = difference(epsilons, (3.0, 2.0, 1.2))
    low, _ = crossing_range(epsilons, values)
    chord = float(first_crossing(epsilons, values))
    open_by = float(np.log(chord / low))
    assert open_by > SETTLED
    slope = float(np.diff(values)[5:7].mean() / np.log(1.3))

    def spread(width: float) -> np.ndarray:
        return values + np.linspace(-1, 1, 2001)[:, None] * width * abs(slope)

    (gap,) = open_gaps(epsilons, values, NONE)
    assert gap[0] < chord < gap[1]
    assert gap in open_gaps(epsilons, values, spread(0.5 * open_by))
    assert open_gaps(epsilons, values, spread(3 * open_by)) == []

"""What a chart is made of: limits, ticks, places of labels, looks, and text."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.figure import Figure

from dpmf_cli.evaluation.metrics import RMSE
from dpmf_cli.report.figures.charts import Level, Line, epsilon_ticks, limits_around, limits_of, spread
from dpmf_cli.report.figures.style import COLOURS, LOOKS, MARKERS, Look, file_of, looks, new_figure


def rmse_limits(curves: Sequence[Any], baselines: Sequence[float], *, whole: bool = False) -> Any:
    lines = [Line("", Look(0, 0), curve, curve) for curve in curves]
    return limits_of(RMSE, [*lines, *(Level("", level) for level in baselines)], whole=whole)


def test_the_axis_ends_a_little_above_the_worst_baseline() -> None:
    low, high = rmse_limits([np.array([50.0, 1.0, 0.9])], [1.1, 0.98])
    assert (low, high) == pytest.approx((0.888, 1.112))


def test_every_curve_keeps_its_best_point_in_sight_within_reason() -> None:
    _, high = rmse_limits([np.array([9.0, 1.4]), np.array([1.0])], [1.1])
    assert 1.4 < high < 1.43
    _, high = rmse_limits([np.array([9.0, 8.0]), np.array([1.0])], [1.1])
    assert 1.1 < high < 1.12
    assert rmse_limits([np.array([np.inf, 9.0, 1.0])], []) == pytest.approx((0.94, 2.06))
    low, high = rmse_limits([np.array([1.0])], [])
    assert low < 1 < high


def test_local_curves_are_in_sight_from_end_to_end() -> None:
    """Unregularised ISGD at ε = 0.1 is 1.6 times the global average, and the paper's figure shows it."""
    curve = np.array([1.78, 1.5, 1.34])
    assert rmse_limits([curve], [1.13])[1] < 1.4
    assert 1.78 < rmse_limits([curve], [1.13], whole=True)[1] < 1.85
    assert 2.26 < rmse_limits([np.array([50.0, 1.0])], [1.13], whole=True)[1] < 2.4
    assert 1.13 < rmse_limits([np.array([1.0])], [1.13], whole=True)[1] < 1.15


def test_a_level_without_noise_is_as_a_curve_and_more_is_better_cuts_nothing() -> None:
    line = Line("a", Look(0, 0), np.arange(2.0), np.array([9.0, 1.0]))
    noise_free = Level("no noise", 2.0, look=Look(0, 0))
    assert limits_of(RMSE, [line, Level("GA", 1.1), noise_free])[1] == pytest.approx(1.106)
    ndcg = replace(RMSE, key="ndcg@5", larger_is_better=True)
    assert limits_of(ndcg, [line, noise_free]) == pytest.approx((0.52, 9.48))
    banded = replace(line, low=line.y - 1, high=np.array([np.inf, 2.0]))
    assert limits_around([banded, Level("GA", -1.0)]) == pytest.approx((-1.6, 9.6))


def test_ticks_are_one_two_five_or_decades() -> None:
    assert epsilon_ticks(0.099, 21) == [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    assert epsilon_ticks(0.001, 100) == [0.001, 0.01, 0.1, 1, 10, 100]


def test_labels_move_apart_by_hand() -> None:
    assert spread([0.5, 0.5], 0.2, 0, 1) == pytest.approx([0.4, 0.6])
    assert spread([0.9, 0.1], 0.2, 0, 1) == pytest.approx([0.9, 0.1])
    assert spread([0.0, 0.05, 0.9], 0.1, 0, 1) == pytest.approx([0.0, 0.1, 0.9])
    assert spread([0.5, 0.5, 0.5], 2.0, 0, 1) == pytest.approx([0, 0.5, 1])
    assert spread([], 0.1, 0, 1) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.2))
def test_labels_keep_their_order_their_distance_and_the_range(targets: Sequence[float], gap: float) -> None:
    placed = spread(targets, gap, 0.0, 1.0)
    apart = min(gap, 1 / max(1, len(targets) - 1))
    by_height = sorted(placed)
    assert by_height[0] >= -1e-9
    assert by_height[-1] <= 1 + 1e-9
    assert all(upper - lower >= apart - 1e-9 for lower, upper in pairwise(by_height))
    for (target, position), (other, elsewhere) in pairwise(sorted(zip(targets, placed, strict=True))):
        assert target == other or position < elsewhere


@pytest.mark.parametrize("groups", [list(range(LOOKS)), [0] * LOOKS, [rank // 16 for rank in range(LOOKS)]])
def test_as_many_lines_as_there_are_looks_share_none(groups: list[int]) -> None:
    assert len(set(looks(groups))) == LOOKS == len(COLOURS) * len(MARKERS)
    assert len(set(looks([*groups, *range(LOOKS)])[LOOKS:])) == LOOKS


def test_a_group_has_a_colour_and_every_line_a_marker_of_its_own() -> None:
    found = looks(["a", "b", "a", "c", "b"])
    assert [look.colour for look in found] == [0, 1, 0, 2, 1]
    assert len({look.marker for look in found}) == 5


def figure_of(text: str) -> bytes:
    def draw() -> Figure:
        figure = new_figure(4, 4)
        figure.add_subplot().set_title(text)
        figure.text(0, 0, text)
        return figure

    return file_of(draw, "svg")


def test_every_character_of_a_text_is_drawn() -> None:
    assert figure_of("a\x1b[5m\u202eb") == figure_of(r"a\u001b[5m\u202eb")
    assert figure_of("two\nlines") != figure_of(r"two\u000alines")

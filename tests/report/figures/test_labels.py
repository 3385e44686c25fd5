"""Labels move apart by no more than they must."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmf_cli.report.figures.labels import spread


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

"""The grid in groups of lanes: cut, padded, and passed to kernels."""

import numpy as np
import pytest

from dpmf_cli.core.compiled.lane_groups import (
    MAXIMUM_WIDTH,
    LaneValues,
    groups,
    pad,
    padded_grid,
    padded_width,
)


@pytest.mark.parametrize(
    ("count", "widths"), [(1, [1]), (8, [8]), (9, [16]), (16, [16]), (20, [16, 8]), (48, [16] * 3)]
)
def test_groups_cover_the_grid_once(count: int, widths: list[int]) -> None:
    parts = groups(count)
    assert np.concatenate([np.arange(count)[group] for group in parts]).tolist() == list(range(count))
    assert [padded_width(group.stop - group.start) for group in parts] == widths
    assert padded_grid(count) == sum(widths)
    assert max(widths) <= MAXIMUM_WIDTH


def test_padding_repeats_the_last_model() -> None:
    assert pad(np.array([[1.0, 2.0]]), 4).tolist() == [[1.0, 2.0, 2.0, 2.0]]


@pytest.mark.parametrize("grid", [1, 8, 9, 16, 20])
def test_values_are_found_by_model_and_by_group(grid: int) -> None:
    numbers = np.random.default_rng(grid).random((7, grid)).astype(np.float32)
    values = LaneValues.empty(7, grid)
    for rows in (slice(0, 3), slice(3, 7)):
        values.put(rows, numbers[rows])
    assert np.array_equal(np.stack([values.column(e) for e in range(grid)], axis=1), numbers)
    for part in groups(grid):
        assert np.array_equal(values.of(part), pad(numbers[:, part], padded_width(part.stop - part.start)))
    assert all(map(np.array_equal, values.groups, LaneValues.of_grid(numbers).groups))

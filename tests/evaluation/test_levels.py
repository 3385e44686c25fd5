"""RMSE at one ε, on a grid and between its points."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import bends_beside, levels_at
from tests.evaluation.made_curves import baseline, curve, experiment

GRID = 1.4 ** np.arange(4.0)
LINE = [0.8, 0.4, 0.2, 0.1]


def test_between_two_it_is_linear_in_log_epsilon_and_the_interval_holds_the_bend() -> None:
    made = curve(GRID, np.broadcast_to(LINE, (6, 2, 4)))
    level, _ = levels_at(experiment(made), math.sqrt(GRID[1] * GRID[2]))
    assert level.interpolated
    assert level.value == pytest.approx(1.3)
    bend = bends_beside(GRID, 1 + np.array(LINE))[:, 1].max()
    assert [level.low, level.high] == pytest.approx([1.3 - bend / 4, 1.3])
    assert level.beside == {}
    with_mae = replace(made, others={"mae": made.rmse - 0.5})
    assert levels_at(experiment(with_mae), level.epsilon)[0].beside == {"mae": pytest.approx(0.8)}


def test_in_a_wide_gap_the_interval_is_between_its_ends() -> None:
    made = curve([1, 4, 16], np.broadcast_to([0.8, 0.4, 0.2], (6, 2, 3)))
    level, _ = levels_at(experiment(made), 2)
    assert [level.low, level.high] == pytest.approx([1.4, 1.8])


def test_beside_a_model_that_diverged_there_is_no_number() -> None:
    made = curve(GRID, [[[np.inf, 0.4, 0.2, 0.1]]])
    assert levels_at(experiment(made), 1.2)[0].value == math.inf
    assert levels_at(experiment(made), 1.5)[0].value == pytest.approx(1.37, abs=0.05)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 0.0, -1.0, math.nan, math.inf])
def test_outside_of_the_grid_it_is_refused(epsilon: float) -> None:
    made = experiment(curve(GRID, [LINE]), baselines=(baseline(),))
    with pytest.raises(
        DpmfError, match=r"outside of the grid of pge, 1 to 2\.744; ask for an ε within the grid"
    ):
        levels_at(made, epsilon)

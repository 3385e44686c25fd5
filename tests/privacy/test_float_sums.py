"""Sums of ratings in the kernels that add noise: how far a rating moves them in floats. They end on a grid."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.als import RowProblem, by_item, solve_perturbed, solve_rows
from dpmf_cli.kernels.factors import FactorLanes, factor_model
from dpmf_cli.kernels.gradients import step_batch
from dpmf_cli.kernels.sgd import Sgd
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.testing import fit
from tests.algorithms.fitted import entry
from tests.conftest import make_ratings

RATERS, ONES = 100_000, 65_536
SCALE = Scale(1, 5, 1)


def hovering(value: float) -> tuple[Ratings, np.ndarray]:
    """An item whose raters' factors sum to a little less than 2¹⁶, and then rise and fall by less than the
    distance of float32 numbers there. Above 2¹⁶ the rises are rounded up and the falls to nothing. `value` is
    the first rating: 4 for a residual of 1; with 5, all later sums are above 2¹⁶."""
    rows = np.zeros((RATERS, 2), np.float32)  # the second factor does nothing
    rows[:ONES, 0], rows[ONES - 1, 0] = 1, 1 - 2**-6
    rows[ONES::2, 0], rows[ONES + 1 :: 2, 0] = 1.2 * 2**-8, -0.8 * 2**-8
    values = np.full(RATERS, 4, np.float32)
    values[0] = value
    everyone = np.arange(RATERS, dtype=np.int32)
    return Ratings(everyone, np.zeros(RATERS, np.int32), values, RATERS, 1, SCALE), rows


NOTHING = LaneNoise(np.zeros((RATERS + 1, 2)), np.zeros(1))
ITEM = LaneNoise(np.zeros((1, 2)), np.zeros(1))
PROBLEM = RowProblem(1.0, 2.0, per_rating=False)


def of_batch(lanes: FactorLanes, ratings: Ratings) -> float:
    step_batch.run(lanes, NOTHING, ratings, Sgd(1.0, 0.0, bound=2.0, clip=9.0))
    return float(lanes.rows("items")[0, 0, 0])


def of_normal_equations(
    solve: Callable[[FactorLanes, Ratings], None],
) -> Callable[[FactorLanes, Ratings], float]:
    def sums(lanes: FactorLanes, ratings: Ratings) -> float:
        rows = lanes.rows("users")[:, 0, 0].astype(np.float64)
        solve(lanes, ratings)
        return float(lanes.rows("items")[0, 0, 0] * (rows @ rows + 1))

    return sums


SUMS = {
    "batch": of_batch,
    "objective": of_normal_equations(
        lambda lanes, ratings: solve_perturbed.run(lanes, ITEM, by_item(ratings), PROBLEM, np.inf)
    ),
    "output": of_normal_equations(
        lambda lanes, ratings: solve_perturbed.run(lanes, ITEM, by_item(ratings), PROBLEM, np.inf, np.ones(1))
    ),
    "float32": of_normal_equations(lambda lanes, ratings: solve_rows(lanes, by_item(ratings), PROBLEM)),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_rating_of_a_long_row_moves_its_sum_by_its_own_part(name: str) -> None:
    """Its residual is 1 or 2, so the sum moves by 1; a sum in float32 moves by a hundred times that."""
    found = []
    for value in (4.0, 5.0):
        ratings, rows = hovering(value)
        (lanes,) = factor_model(rows, np.zeros((1, 2)), np.zeros((RATERS, 1)), np.full((1, 1), 3.0)).groups
        found.append(SUMS[name](lanes, ratings))
    move = abs(found[1] - found[0])
    if name == "float32":
        assert move > 100  # otherwise the ratings would not matter
    else:
        assert move == pytest.approx(1, abs=0.02)  # what is read was rounded to float32


LEAST: dict[str, dict[str, Any]] = {
    "pals": {"regularization": 1e-6},
    "pals unbounded": {"neighbours": "unbounded", "ridge": 1e-6},
    "pals_objective": {"regularization": 1e-6},
    "dp_pmf": {"passes": 2, "least_ridge": 1e-3},
    "dp_pmf unbounded": {"neighbours": "unbounded", "passes": 2, "least_ridge": 1e-3},
}


@pytest.mark.parametrize("norm", [0.5, 100.0])
@pytest.mark.parametrize("name", LEAST)
def test_the_least_weights_leave_no_factor_undefined(name: str, norm: float) -> None:
    """Rows of many extreme ratings and rows of one: more factors than ratings, and the same ratings over and over."""
    algorithm = entry(name.split()[0], mode="corrected", factors=9, item_norm=norm, **LEAST[name])
    extreme = np.array([1, 5], np.float32)
    users, items = np.divmod(np.arange(3000 * 2, dtype=np.int32), np.int32(2))
    many = Ratings(users, items, extreme[(users + items) % 2], 3000, 2, SCALE)
    few = make_ratings(1, n_users=6, n_items=5)
    for ratings in (many, many.select(np.arange(len(many)) != 7), few, few.select(np.arange(len(few)) != 2)):
        for epsilon in (0.01, 1e6):
            (group,) = fit(algorithm, ratings, [epsilon])[0].groups
            assert np.isfinite(group.users).all()
            assert np.isfinite(group.items).all()

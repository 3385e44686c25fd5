"""Numbers below the normal range: 0 in the kernels of SGD, and nowhere else."""

from collections.abc import Callable
from typing import no_type_check

import numpy as np
import pytest

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.compiled.lane_groups import LaneValues
from dpmf_cli.kernels.factors import FactorLanes, factor_model
from dpmf_cli.kernels.lanes import flush_denormals, restore_denormals
from dpmf_cli.kernels.sgd import (
    Sgd,
    Visits,
    descend_clamped_errors,
    descend_noisy_errors,
    descend_perturbed,
    descend_values,
)
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise
from dpmf_cli.ratings import Ratings, Scale

LEAST = np.float32(np.finfo(np.float32).smallest_normal)


def halved() -> float:
    return float(np.multiply(np.array([LEAST]), np.float32(0.5))[0])


@compiled()
@no_type_check
def halved_while_flushed(number):
    before = flush_denormals()
    half = number[0] * np.float32(0.5)
    number[0] = half
    restore_denormals(before)
    return half


def test_denormals_are_zero_while_a_kernel_runs_and_not_after() -> None:
    assert halved() > 0
    assert halved_while_flushed(np.array([LEAST])) == 0
    assert halved() > 0


ONE, NOTHING = np.zeros(1, np.int32), np.zeros(1, np.float32)
VISIT, NOISE = Visits(ONE, ONE, NOTHING), LaneNoise(np.zeros(1), np.ones(1))
Descent = Callable[[FactorLanes], None]
KERNELS: dict[str, Descent] = {
    "perturbed": lambda start: descend_perturbed.run(start, NOISE, VISIT, Sgd(0.5, 0.5, 1)),
    "noisy errors": lambda start: descend_noisy_errors.run(start, NOISE, VISIT, Sgd(0.5, 0.5, 1, 1)),
    "clamped errors": lambda start: descend_clamped_errors(start, VISIT, Sgd(0.5, 0.5, 1, 1)),
    "values": lambda start: descend_values(
        start, ONE, ONE, ONE.astype(np.int64), LaneValues.of_grid(np.zeros((1, 1))), Sgd(0.5, 0.5)
    ),
    "survivors": lambda start: descend_survivors.run(
        start, KeyedNoise(7, np.ones(1)), Ratings(ONE, ONE, NOTHING, 1, 1, Scale(0, 1)), ONE,
        ONE.astype(np.int64), Sgd(0.5, 0.5, 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_factor_that_shrinks_below_the_normal_range_is_zero(kernel: str) -> None:
    least, nothing = np.full((1, 2), float(LEAST)), np.zeros((1, 1))
    (start,) = factor_model(least, least, nothing, nothing).groups
    KERNELS[kernel](start)
    rows = start.users[: 2 * start.width].reshape(2, -1)
    assert (rows[:, 0] == 0).all()
    assert halved() > 0  # nor after the kernel has run

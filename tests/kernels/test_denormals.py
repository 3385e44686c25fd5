"""Numbers below the normal range: 0 in the kernels of SGD, and nowhere else."""

from collections.abc import Callable

import numpy as np
import pytest

from dpmf_cli.kernels.denormals import flushing
from dpmf_cli.kernels.factors import FactorLanes, factor_lanes
from dpmf_cli.kernels.sgd import descend_noisy_errors, descend_perturbed, descend_values
from dpmf_cli.kernels.survivors import descend_survivors

LEAST = np.float32(np.finfo(np.float32).smallest_normal)


def halved() -> np.float32:
    return np.multiply(np.array([LEAST]), np.float32(0.5))[0]


def test_denormals_are_zero_while_a_kernel_runs_and_not_after() -> None:
    found: list[np.float32] = []
    flushing(lambda: found.append(halved()))()
    assert found == [0]
    assert halved() > 0


def test_an_error_ends_it_too() -> None:
    with pytest.raises(ZeroDivisionError):
        flushing(lambda: 1 / 0)()  # type: ignore[arg-type,return-value]
    assert halved() > 0


ONE, NOTHING = np.zeros(1, np.int32), np.zeros(1, np.float32)
STEP = {"learning_rate": 0.5, "regularization": 0.5}
Descent = Callable[[FactorLanes], None]
KERNELS: dict[str, Descent] = {
    "perturbed": lambda start: descend_perturbed(
        start, ONE, ONE, NOTHING, NOTHING, np.ones(1), bound=1, epochs=1, **STEP
    ),
    "noisy errors": lambda start: descend_noisy_errors(
        start, ONE, ONE, NOTHING, NOTHING, np.ones(1), bound=1, error_bound=1, user_limit=np.inf, item_limit=np.inf, **STEP
    ),
    "values": lambda start: descend_values(
        start, ONE, ONE, ONE.astype(np.int64), np.zeros((1, start.width), np.float32), epochs=1, **STEP
    ),
    "survivors": lambda start: descend_survivors(
        start, np.array([0, 1]), ONE, NOTHING, 7, ONE, ONE.astype(np.int64), np.ones(1),
        bound=1, threshold=0, epochs=1, **STEP
    ),
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_factor_that_shrinks_below_the_normal_range_is_zero(kernel: str) -> None:
    start = factor_lanes(np.full((1, 2), LEAST), np.full((1, 2), LEAST), np.zeros((1, 1)), np.zeros((1, 1)))
    KERNELS[kernel](start)
    rows = start.users[: 2 * start.width].reshape(2, -1)
    assert (rows[:, 0] == 0).all()

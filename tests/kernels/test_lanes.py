"""Lane operations against NumPy: exact, for every width.

The exponential function in lanes against NumPy's.

Numbers below the normal range: 0 in the kernels of SGD, and nowhere else.
"""

from collections.abc import Callable
from typing import no_type_check

import numpy as np
import pytest
from numba import njit

from dpmf_cli.core.compiled.lane_groups import LaneValues
from dpmf_cli.core.compiled.machine_code import compiled, reference
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.factors import FactorLanes, factor_model
from dpmf_cli.kernels.lane_math import clamp, exponential, flush_denormals, fma, restore_denormals, sqrt
from dpmf_cli.kernels.lanes import load, splat, store, zeros
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


@njit
@no_type_check
def calculator(a, b, c, number, out, width_of):
    w, like = len(width_of), zeros(width_of)
    x, y, z = load(a, 0, like), load(b, 0, like), load(c, 0, like)
    store(out, 0 * w, x + y)
    store(out, 1 * w, x - y)
    store(out, 2 * w, x * y)
    store(out, 3 * w, x / y)
    store(out, 4 * w, sqrt(z))
    store(out, 5 * w, clamp(x, like - z, z))
    store(out, 6 * w, fma(x, y, z))
    store(out, 7 * w, splat(number, like))
    store(out, 8 * w, like)


@pytest.mark.parametrize("width", [8, 16])
def test_operations_are_ieee_operations_lane_by_lane(width: int) -> None:
    rng = np.random.default_rng(width)
    a, b, c = (rng.normal(size=width).astype(np.float32) for _ in range(3))
    c = np.abs(c)
    out = np.empty(9 * width, np.float32)
    calculator(a, b, c, np.float32(0.1), out, (0,) * width)
    exact = (a.astype(np.float64) * b + c).astype(np.float32)  # one rounding: the product is exact in float64
    expected = [a + b, a - b, a * b, a / b, np.sqrt(c), np.clip(a, -c, c), exact]
    expected += [np.full(width, 0.1, np.float32), np.zeros(width, np.float32)]
    assert np.array_equal(out.reshape(9, width), np.array(expected, np.float32))
    plain = np.empty(9 * width, np.float32)
    reference(calculator)(a, b, c, np.float32(0.1), plain, (0,) * width)
    assert np.array_equal(plain, out)


@njit
@no_type_check
def exponentials(x, out, width_of):
    w, like = len(width_of), zeros(width_of)
    for at in range(0, len(x), w):
        store(out, at, exponential(load(x, at, like), width_of))


@pytest.mark.parametrize("width", [8, 16])
def test_exponential_is_accurate_to_the_last_digits(width: int) -> None:
    x = -np.concatenate([np.geomspace(1e-10, 87, 4000), np.linspace(0, 87, 4000)]).astype(np.float32)
    out = np.empty_like(x)
    exponentials(x, out, (0,) * width)
    assert out == pytest.approx(np.exp(x.astype(np.float64)), rel=2.5e-7)
    low = np.full(width, -1e30, np.float32)
    exponentials(low, low, (0,) * width)
    assert ((low > 0) & (low < 1e-37)).all()


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
        start, KeyedNoise(7, np.ones(1)), Ratings(ONE, ONE, NOTHING, 1, 1, Scale(0, 1)),
        Sgd(0.5, 0.5, 1), ONE, ONE.astype(np.int64)
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

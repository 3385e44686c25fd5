"""Lane operations against NumPy: exact, for every width."""

from typing import no_type_check

import numpy as np
import pytest
from numba import njit

from dpmf_cli.compiled.decorator import twin
from dpmf_cli.kernels.lanes import add, clamp, div, fma, load, mul, splat, sqrt, store, sub, zeros


@njit
@no_type_check
def calculator(a, b, c, number, out, width_of):
    w, like = len(width_of), zeros(width_of)
    x, y, z = load(a, 0, like), load(b, 0, like), load(c, 0, like)
    store(out, 0 * w, add(x, y))
    store(out, 1 * w, sub(x, y))
    store(out, 2 * w, mul(x, y))
    store(out, 3 * w, div(x, y))
    store(out, 4 * w, sqrt(z))
    store(out, 5 * w, clamp(x, sub(like, z), z))
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
    twin(calculator)(a, b, c, np.float32(0.1), plain, (0,) * width)
    assert np.array_equal(plain, out)

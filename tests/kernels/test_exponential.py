"""The exponential function in lanes against NumPy's."""

from typing import no_type_check

import numpy as np
import pytest
from numba import njit

from dpmf_cli.kernels.lanes import exponential, load, store, zeros


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

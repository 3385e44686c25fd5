"""Noise in lanes: a clean number of each model of a group becomes a released one, on its grid."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.lanes import fma, load, mul, rint
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise


def noise_lanes(noise: LaneNoise | KeyedNoise, width: int) -> NDArray[np.float64]:
    """(3·width,) what a kernel needs of the noise of one group: its scales, one over its grids, and its grids."""
    return pad(np.stack([noise.scale, 1 / noise.grid, noise.grid]), width, np.float64).ravel()


@njit(cache=True, nogil=True, inline="always")
def released(clean, unit, lanes, wide):
    """`LaneNoise.added_to` in lanes of float64: the multiple of the grid nearest to clean + unit·scale.

    clean, unit  vectors like `wide`; lanes from `noise_lanes`
    """
    width = len(lanes) // 3
    noisy = fma(unit, load(lanes, 0, wide), clean)
    return mul(rint(mul(noisy, load(lanes, width, wide))), load(lanes, 2 * width, wide))

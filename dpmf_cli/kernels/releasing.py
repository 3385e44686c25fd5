"""Noise in lanes: a clean number of each model of a group becomes a released one, on its grid.

A float64 of size 1.5·2⁵²·g is a multiple of g, and so are its neighbours. So adding it to a number, and taking it off
again, rounds the number to the nearest multiple of g, the even one of two: in two additions, of which no other can be
made, and without a division. It does so up to 2⁵¹·g, more than 2⁴⁰ times the noise's scale; beyond, the result is a
multiple of g, and as near as float64 has it.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.lanes import add, fma, load, sub
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise

ANCHOR = 1.5 * 2.0**52
"""What is added to a number in units of its grid, and taken off again."""


def noise_lanes(noise: LaneNoise | KeyedNoise, width: int) -> NDArray[np.float64]:
    """(2·width,) what a kernel needs of the noise of one group: its scales, and its grids times `ANCHOR`."""
    return pad(np.stack([noise.scale, ANCHOR * noise.grid]), width, np.float64).ravel()


@njit(cache=True, nogil=True, inline="always")
def released(clean, unit, lanes, wide):
    """`LaneNoise.added_to` in lanes of float64: the multiple of the grid nearest to clean + unit·scale.

    clean, unit  vectors like `wide`; lanes from `noise_lanes`
    """
    anchor = load(lanes, len(lanes) // 2, wide)
    return sub(add(fma(unit, load(lanes, 0, wide), clean), anchor), anchor)

"""Noise in lanes: a clean number of each model of a group becomes a released one, on its grid."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.lanes import div, fma, load, mul, rint, splat, store, zeros_like
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise
from dpmf_cli.privacy.release import Publish


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


@njit(cache=True, nogil=True)
def release_row(row, factor, unit, first, lanes, factors_of, width_of):
    """row ← factor·(what is released of row/factor): d vectors of float64; unit flat, from number `first` on."""
    wide = zeros_like(row, width_of)
    times = splat(factor, wide)
    for f in range(len(factors_of)):
        at = f * len(width_of)
        clean = div(load(row, at, wide), times)
        store(row, at, mul(released(clean, splat(unit[first + f], wide), lanes, wide), times))


def published_rows(
    publish: Publish, clean: NDArray[np.float64], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """What is published of `clean` (m, …, lanes) in the ascending places `rows`; 0 in the others, which stay."""
    out = np.zeros(clean.shape)
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(run):
            out[run] = publish(clean[run], int(run[0]))
    return out

"""Noise in lanes: turns a clean number of each model of a group into a released one, on the model's grid.

Let g be the cell width of the grid. The float64 1.5·2⁵²·g is a multiple of g, and so are the float64 next to it. So
adding it to a number and subtracting it again rounds the number to the nearest multiple of g, the even one of two.
That takes two additions, which no compiler may replace, and no division. It works up to 2⁵¹·g, more than 2⁴⁰ times
the scale of the noise. For larger numbers the result is a multiple of g, and as near as float64 allows.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.lanes import add, div, fma, load, mul, splat, store, sub, zeros_like
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise
from dpmf_cli.privacy.release import Publish

ANCHOR = 1.5 * 2.0**52
"""The number that is added and subtracted again, in units of the grid."""


def noise_lanes(noise: LaneNoise | KeyedNoise, width: int) -> NDArray[np.float64]:
    """(2·width,) the noise of one group, as a kernel needs it: its scales, then its grids times `ANCHOR`."""
    return pad(np.stack([noise.scale, ANCHOR * noise.grid]), width, np.float64).ravel()


@compiled(inline="always")
def released(clean, unit, lanes, wide):
    """`LaneNoise.added_to` in lanes of float64: the multiple of the grid nearest to clean + unit·scale.

    clean, unit  vectors like `wide`; lanes from `noise_lanes`
    """
    anchor = load(lanes, len(lanes) // 2, wide)
    return sub(add(fma(unit, load(lanes, 0, wide), clean), anchor), anchor)


@compiled()
def release_row(row, factor, unit, first, lanes, factors_of, width_of):
    """Sets row ← factor·(row/factor as released), d vectors of float64. `unit` is flat, and used from `first` on."""
    wide = zeros_like(row, width_of)
    times = splat(factor, wide)
    for f in range(len(factors_of)):
        at = f * len(width_of)
        clean = div(load(row, at, wide), times)
        store(row, at, mul(released(clean, splat(unit[first + f], wide), lanes, wide), times))


def published_rows(
    publish: Publish, clean: NDArray[np.float64], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Publishes `clean` (m, …, lanes) in the ascending places `rows` only. Returns the result, 0 in other places."""
    out = np.zeros(clean.shape)
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(run):
            out[run] = publish(clean[run], int(run[0]))
    return out

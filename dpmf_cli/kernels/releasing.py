"""Noise in lanes: a clean number of each model of a group becomes a released one, on its grid.

A float64 of size 1.5·2⁵²·g is a multiple of g, and so are its neighbours. So adding it to a number, and taking it off
again, rounds the number to the nearest multiple of g, the even one of two: in two additions, of which no other can be
made, and without a division. It does so up to 2⁵¹·g, more than 2⁴⁰ times the noise's scale; beyond, the result is a
multiple of g, and as near as float64 has it.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.lanes import add, div, fma, load, mul, splat, store, sub, zeros_like
from dpmf_cli.lane_groups import pad
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise
from dpmf_cli.privacy.release import Publish

ANCHOR = 1.5 * 2.0**52
"""What is added to a number in units of its grid, and taken off again."""


def noise_lanes(noise: LaneNoise | KeyedNoise, width: int) -> NDArray[np.float64]:
    """(2·width,) what a kernel needs of the noise of one group: its scales, and its grids times `ANCHOR`."""
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

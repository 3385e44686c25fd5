"""Noise in lanes: turns a clean number of each model of a group into a released one, on the model's grid.

Let g be the cell width of the grid. The float64 1.5·2⁵²·g is a multiple of g, as are the float64 next to it, so that
adding it to a number and subtracting it again rounds the number to the nearest multiple of g, the even one of two.
That takes two additions, which no compiler may replace, and no division. It works up to 2⁵¹·g, more than 2⁴⁰ times
the scale of the noise; for larger numbers the result is a multiple of g, and as near as float64 allows.

Rows of a factor matrix also get noise here, and are projected to a ball.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats
from dpmf_cli.core.compiled.lane_groups import Grouped, on_each_group, pad
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.kernels.examples import USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lane_math import any_below, below, fma, sqrt
from dpmf_cli.kernels.lanes import doubles, load, splat, store, zeros, zeros_like
from dpmf_cli.privacy.noise import KeyedNoise, LaneNoise
from dpmf_cli.privacy.release import NoisyKernel, Publish, noisy_kernel

ANCHOR = 1.5 * 2.0**52
"""The number that is added and subtracted again, in units of the grid."""


def noise_lanes(noise: LaneNoise | KeyedNoise, width: int) -> Doubles:
    """(2·width,) the noise of one group, as a kernel needs it: its scales, then its grids times `ANCHOR`."""
    return pad(np.stack([noise.scale, ANCHOR * noise.grid]), width, np.float64).ravel()


def unit_and_lanes(noise: LaneNoise | None, width: int) -> tuple[Any, Any]:
    """The flat unit noise and the `noise_lanes`; twice None without noise, for which kernels are compiled apart."""
    return (None, None) if noise is None else (noise.unit.ravel(), noise_lanes(noise, width))


@compiled(inline="always")
def released(clean, unit, lanes, wide):
    """`LaneNoise.added_to` in lanes of float64: the multiple of the grid nearest to clean + unit·scale.

    clean  a vector like `wide`; unit a number; lanes from `noise_lanes`
    """
    anchor = load(lanes, len(lanes) // 2, wide)
    return fma(splat(unit, wide), load(lanes, 0, wide), clean) + anchor - anchor


@compiled()
def release_row(row, factor, unit, first, lanes, factors_of, width_of):
    """Sets row ← factor·(row/factor as released), d vectors of float64. `unit` is flat, and used from `first` on."""
    wide = zeros_like(row, width_of)
    times = splat(factor, wide)
    for f in range(len(factors_of)):
        at = f * len(width_of)
        clean = load(row, at, wide) / times
        store(row, at, released(clean, unit[first + f], lanes, wide) * times)


def without_noise(kernel: NoisyKernel) -> Callable[..., None]:
    """The kernel for fits without privacy: it runs in place, on every group of models, and adds no noise."""

    def run(models: Grouped[Any], *arguments: Any, **parameters: Any) -> None:
        for group in models.groups:
            kernel.run(group, None, *arguments, **parameters)

    return run


def published_rows(publish: Publish, clean: Doubles, rows: NDArray[np.intp]) -> Doubles:
    """What is published for `clean` (m, …, lanes) in the ascending places `rows` only; 0 in other places."""
    out = np.zeros(clean.shape)
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(run):
            out[run] = publish(clean[run], int(run[0]))
    return out


GUARD = np.float32(1 - 2**-11)
"""Clipping aims at a limit times this, so that rounding cannot exceed the limit. A float32 sum of m squares, added
one after the other, is too small by at most m·2⁻²⁴ of itself, and its root by at most half of that."""


def _plain_perturb(group: FactorLanes, publish: Publish, side: Side, limit: float) -> None:
    """The Python reference of `perturb_side`, which measures the rows of a side."""
    own = group.rows(side)
    own[:] = within(publish(own), limit)


@noisy_kernel(_plain_perturb)
def perturb_side(group: FactorLanes, noise: LaneNoise, side: Side, limit: float) -> None:
    """Sets each row p of a side to p + noise, then projects it to ‖p‖₂ ≤ limit, in place; noise unit (rows, d)."""
    own, _ = group.own_and_other(side)
    noisy = unit_and_lanes(noise, group.width)
    _perturb_rows(own, *noisy, float(limit), group.factors_of, group.width_of)


@on_each_group
def project_side(group: FactorLanes, side: Side, limit: float, rates: Floats | None = None) -> None:
    """Projects every row p of a side to ‖p‖₂ ≤ limit, in place; given `rates` (E,), in models with a rate above 0."""
    own, _ = group.own_and_other(side)
    wait = np.zeros(group.lanes, np.bool_) if rates is None else rates[group.part] <= 0
    kept = group.rows(side)[..., wait]
    _project_rows(own, np.float32(limit), group.factors_of, group.width_of)
    group.rows(side)[..., wait] = kept


def within(rows: Doubles, limit: float) -> Doubles:
    """`rows` (m, d, lanes), each projected to the L2 norm `limit`."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return np.asarray(rows * np.minimum(1, limit / lengths))


@compiled(example(unit=lambda s: numbers(USERS * s.d)))
def _perturb_rows(P, unit, noise, limit, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    wide, noisy = doubles(width_of), np.empty(d * w)
    for r in range(len(unit) // d):
        at = r * (d + 1) * w
        for f in range(d):
            store(noisy, f * w, load(P, at + f * w, wide))
        release_row(noisy, 1.0, unit, r * d, noise, factors_of, width_of)
        store_within(P, at, noisy, limit, factors_of, width_of)


@compiled(example())
def _project_rows(P, limit, factors_of, width_of):
    row = (len(factors_of) + 1) * len(width_of)
    for at in range(0, len(P), row):
        project(P, at, limit, factors_of, width_of)


@compiled(inline="always")
def store_within(P, at, row, limit, factors_of, width_of):
    """Projects `row`, d vectors of float32 or float64, to the L2 norm `limit`; stores it in P at `at`, rounded."""
    d, w = len(factors_of), len(width_of)
    project(row, 0, limit, factors_of, width_of)
    for f in range(d):
        store(P, at + f * w, load(row, f * w, zeros(width_of)))


@compiled()
def project(P, at, limit, factors_of, width_of):
    """Scales the row at `at` down to the L2 norm `limit`, in the lanes where it is longer; P float32 or float64."""
    d, w = len(factors_of), len(width_of)
    like = zeros_like(P, width_of)
    square = like
    for f in range(d):
        x = load(P, at + f * w, like)
        square = fma(x, x, square)
    shorten(P, at, square, limit, factors_of, width_of)


@compiled(inline="always")
def shorten(P, at, square, limit, factors_of, width_of):
    """`project` for a row whose squared norm is `square`; whether the row is longer in any lane."""
    w, longest, one = len(width_of), splat(limit * limit, square), splat(1.0, square)
    longer = any_below(longest, square)
    if longer:
        shrink = below(longest, square, splat(limit, square) / sqrt(square), one)
        for f in range(len(factors_of)):
            store(P, at + f * w, load(P, at + f * w, square) * shrink)
    return longer

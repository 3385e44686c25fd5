"""Where a curve crosses its baseline between two points of its grid, and how far from there it may cross.

Between two grid points the difference d of RMSE is taken as linear in x = log ε. Were d quadratic there, Newton's
form says which: with x₀ < x₁ the ends of the gap and x₂ another grid point,

    d(x) = chord(x) + d[x₀, x₁, x₂]·(x − x₀)·(x − x₁).

The next grid point on either side gives one such quadratic each. Both are taken with `SAFETY` times their bend. They
agree with the chord at the ends of the gap, so each has one root between them. From the smallest to the largest of
the three roots is the range in which the curve may cross. Where the gap is wider than `WIDEST`, or has no neighbour,
grid points say too little of what is between them: there the range is the whole gap.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.statistics import percentile_places

SAFETY, WIDEST = 2.0, 1.5
"""On how many times the bend to count, and the largest ratio of ε across a gap in which to."""

SETTLED = 0.01
"""Interpolation that may move a crossing by no more than this part of it is fine in any case."""


def first_crossing(epsilons: NDArray[np.float64], difference: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…) the ε at which each curve first is no longer above its baseline, coming from small ε.

    `epsilons` (E,) ascending, positive, finite; `difference` (…, E) is RMSE − baseline RMSE, finite.
    −inf stands for "below the grid", +inf for "not reached in the grid".
    """
    lower, upper = _gap(difference)
    above, below = _at(difference, lower), _at(difference, upper)
    drop = np.where(above > below, above - below, 1.0)
    between = epsilons[lower] * (epsilons[upper] / epsilons[lower]) ** (above / drop)
    crossing = np.where(below == 0, epsilons[upper], np.clip(between, epsilons[lower], epsilons[upper]))
    crossing = np.where(upper == 0, -np.inf, crossing)
    return np.where((difference <= 0).any(axis=-1), crossing, np.inf)


def crossing_range(
    epsilons: NDArray[np.float64], difference: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(…), (…) from which to which ε each curve may cross first; twice the crossing where that is out of the grid.

    Arguments as those of `first_crossing`.
    """
    chord = first_crossing(epsilons, difference)
    if len(epsilons) == 1:
        return chord, chord
    lower, upper = _gap(difference)
    above, below = _at(difference, lower), _at(difference, upper)
    low = high = chord
    for bends in bends_beside(epsilons, difference):
        # With t from 0 to 1 over the gap: bend·t² − (above − below + bend)·t + above = 0.
        bend = _at(bends, lower)
        middle = above - below + bend
        whole = middle + np.sqrt(np.maximum(middle**2 - 4 * bend * above, 0.0))
        t = np.clip(2 * above / np.where(whole > 0, whole, 1.0), 0.0, 1.0)
        root = epsilons[lower] * (epsilons[upper] / epsilons[lower]) ** t
        low, high = np.minimum(low, root), np.maximum(high, root)
    unknown = are_unknown(epsilons)[lower]
    low, high = np.where(unknown, epsilons[lower], low), np.where(unknown, epsilons[upper], high)
    crosses = np.isfinite(chord)
    return np.where(crosses, low, chord), np.where(crosses, high, chord)


def value_range(
    epsilons: NDArray[np.float64], values: NDArray[np.float64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(…) each: what curves (…, E) are at one ε of the range of the grid, and from which to which value they may be.

    At a grid point all three are the same. NaN where either end of the gap is NaN.
    """
    at = int(np.searchsorted(epsilons, epsilon))
    if epsilons[at] == epsilon:
        return values[..., at], values[..., at], values[..., at]
    lower, upper = values[..., at - 1], values[..., at]
    t = np.log(epsilon / epsilons[at - 1]) / np.log(epsilons[at] / epsilons[at - 1])
    chord = lower + t * (upper - lower)
    if are_unknown(epsilons)[at - 1]:
        return chord, np.minimum(lower, upper), np.maximum(lower, upper)
    bent = chord + bends_beside(epsilons, values)[..., at - 1] * t * (t - 1)
    return chord, np.fmin.reduce([chord, *bent]), np.fmax.reduce([chord, *bent])


def open_gaps(
    epsilons: NDArray[np.float64], mean: NDArray[np.float64], replicates: NDArray[np.float64]
) -> list[tuple[float, float]]:
    """The gaps (from ε, to ε) in which interpolation may move the crossing by more than its statistical interval.

    So of the crossing of `mean` (E,) and of the ends of its interval, which are crossings of two of the `replicates`
    (B, E), each with its own range. They are held against the distance of the crossing from the nearer end, in log ε,
    and against `SETTLED` where there is no end on the grid or none so far away. None where nothing crosses.
    """
    found = float(first_crossing(epsilons, mean))
    if not np.isfinite(found):
        return []
    curves = mean[None]
    if len(replicates):
        ordered = replicates[np.argsort(first_crossing(epsilons, replicates), kind="stable")]
        curves = np.vstack([curves, ordered[list(percentile_places(len(ordered)))]])
    crossings = first_crossing(epsilons, curves)
    distances = np.abs(np.log(crossings[(crossings > 0) & np.isfinite(crossings)] / found))[1:]
    tolerance = max(SETTLED, min(distances, default=0.0))
    gaps = []
    for crossing, low, high, lower, upper in zip(
        crossings, *crossing_range(epsilons, curves), *_gap(curves), strict=True
    ):
        if np.isfinite(crossing) and max(high / crossing, crossing / low) > np.exp(tolerance):
            gaps.append((float(epsilons[lower]), float(epsilons[upper])))
    return list(dict.fromkeys(gaps))


def bends_beside(epsilons: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2, …, E − 1) by how much a curve may bend in each gap, by the grid point below it and by that above.

    Where t goes from 0 to 1 over the gap, log ε being linear in t, the curve is off its chord by bend·t·(t − 1). At
    the ends of the grid a gap has one neighbour: the other bend is 0. `values` (…, E) are what is interpolated.
    """
    x = np.log(epsilons)
    second = np.zeros_like(values)
    second[..., 1:-1] = np.diff(np.diff(values) / np.diff(x)) / (x[2:] - x[:-2])
    return SAFETY * np.diff(x) ** 2 * np.stack([second[..., :-1], second[..., 1:]])


def are_unknown(epsilons: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(E − 1,) whether the grid says too little of what is in each gap."""
    wide = epsilons[1:] > WIDEST * epsilons[:-1] * (1 + 1e-9)
    unknown: NDArray[np.bool_] = wide | (len(epsilons) == 2)
    return unknown


def _gap(difference: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(…), (…) the grid points on either side of each first crossing; both are the first where there is none."""
    upper = (difference <= 0).argmax(axis=-1)
    return np.maximum(upper - 1, 0), upper


def _at(values: NDArray[np.float64], index: NDArray[np.intp]) -> NDArray[np.float64]:
    taken: NDArray[np.float64] = np.take_along_axis(values, index[..., None], axis=-1)[..., 0]
    return taken

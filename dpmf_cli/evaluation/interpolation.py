"""Finds where a curve crosses its baseline between two points of its grid, and the range in which it may cross.

Between two grid points the difference d of RMSE is taken as linear in x = log ε. If d is quadratic there, Newton's
form gives the quadratic: with x₀ < x₁ the ends of the gap and x₂ another grid point,

    d(x) = chord(x) + d[x₀, x₁, x₂]·(x − x₀)·(x − x₁).

The next grid point on each side of the gap gives one such quadratic. Both are taken with `SAFETY` times their bend.
They agree with the chord at the ends of the gap, so each has one root in the gap. The curve may cross anywhere from
the smallest to the largest of the three roots. If the gap is wider than `WIDEST`, or has no neighbouring grid point,
the grid says too little about the curve inside the gap, and the range is the entire gap.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.statistics import percentile_places

SAFETY, WIDEST = 2.0, 1.5
"""Factor on the bend of a quadratic, and the largest ratio of ε across a gap in which quadratics are trusted."""

SETTLED = 0.01
"""Interpolation may always move a crossing by up to this fraction of its ε."""


def first_crossing(epsilons: NDArray[np.float64], difference: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…) the first ε, from small to large, at which each curve is no longer above its baseline.

    `epsilons` (E,) is ascending, positive, finite; `difference` (…, E) is RMSE − baseline RMSE, finite.
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
    """(…), (…) the smallest and the largest ε at which each curve may cross first.

    Where the crossing is outside the grid, both are the crossing. Takes the arguments of `first_crossing`.
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
    """(…) each: the values of curves (…, E) at an ε within the grid, then the smallest and largest possible values.

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

    Three crossings are examined, each with its own range: that of `mean` (E,), and the two ends of its interval,
    which are crossings of two of the `replicates` (B, E). A gap is open if a crossing in it may move, in log ε, by
    more than the distance from the crossing of `mean` to the nearer end. If no end is on the grid, or that distance
    is below `SETTLED`, then `SETTLED` is the limit. There are no open gaps where `mean` does not cross.
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
    """(2, …, E − 1) how much a curve may bend in each gap, judged by the grid points below and above the gap.

    Let t go from 0 to 1 over the gap, with log ε linear in t. Then the curve deviates from its chord by
    bend·t·(t − 1). A gap at an end of the grid has one neighbour, so its other bend is 0. `values` (…, E) are the
    values to interpolate.
    """
    x = np.log(epsilons)
    second = np.zeros_like(values)
    second[..., 1:-1] = np.diff(np.diff(values) / np.diff(x)) / (x[2:] - x[:-2])
    return SAFETY * np.diff(x) ** 2 * np.stack([second[..., :-1], second[..., 1:]])


def are_unknown(epsilons: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(E − 1,) whether the grid says too little about the curve inside each gap."""
    wide = epsilons[1:] > WIDEST * epsilons[:-1] * (1 + 1e-9)
    unknown: NDArray[np.bool_] = wide | (len(epsilons) == 2)
    return unknown


def _gap(difference: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(…), (…) the indices of the grid points on either side of each first crossing; 0 and 0 without a crossing."""
    upper = (difference <= 0).argmax(axis=-1)
    return np.maximum(upper - 1, 0), upper


def _at(values: NDArray[np.float64], index: NDArray[np.intp]) -> NDArray[np.float64]:
    taken: NDArray[np.float64] = np.take_along_axis(values, index[..., None], axis=-1)[..., 0]
    return taken

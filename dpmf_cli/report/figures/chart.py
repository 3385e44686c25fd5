"""A chart as data: lines and levels over an axis. PNG, SVG, PDF and the picture in a page are drawn from it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.report.figures.style import GREY_LEVEL, Dash, Look

_IN_SIGHT = 1.3
"""A curve is off the axes if its lowest error is above this multiple of the worst baseline."""
_IN_SIGHT_LOCAL = 2.0
"""In the local model entire curves lie above all baselines, and the papers' figures show them. So they are in sight
from end to end, up to this multiple of the worst baseline."""


@dataclass(frozen=True)
class Line:
    """One curve. `x`, `y` and the ends of the band, `low` and `high`, are (n,); without a band the ends are None.

    `marks` are the (x, y) of its crossings.
    """

    name: str
    look: Look
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    dash: Dash = Dash.MEASURED
    marks: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Level:
    """A line across the chart. A level whose look says enough may have no label in the picture (`labelled`)."""

    name: str
    y: float
    dash: Dash = Dash.MEASURED
    look: Look = GREY_LEVEL
    labelled: bool = True


@dataclass(frozen=True)
class Chart:
    """What a chart shows; `series` are in the order in which they are drawn.

    key       a word without spaces, unique in a page
    limits    the ends of the y axis: lines are cut there
    log       whether the x axis is that of ε or θ: logarithmic, with the limits as they are in all pictures
    notes     sentences below the chart: what bands and circles mean, which curves are not drawn
    heading   heading above this chart and the charts after it; "" if an earlier chart has the heading
    """

    key: str
    title: str
    x_name: str
    y_name: str
    series: Sequence[Line | Level]
    limits: tuple[float, float]
    log: bool = False
    notes: Sequence[str] = field(default=())
    heading: str = ""

    @cached_property
    def lines(self) -> list[Line]:
        return [each for each in self.series if isinstance(each, Line)]

    @cached_property
    def levels(self) -> list[Level]:
        return [each for each in self.series if isinstance(each, Level)]

    @cached_property
    def places(self) -> list[float]:
        """All x at which some line has a point, ascending."""
        return sorted({float(x) for line in self.lines for x in line.x})


def limits_around(series: Iterable[Line | Level]) -> tuple[float, float]:
    """Returns the ends of a y axis that shows all lines and levels, bands included."""
    parts = ((each.y,) if isinstance(each, Level) else (each.y, each.low, each.high) for each in series)
    shown = np.concatenate([np.ravel(part) for each in parts for part in each if part is not None])
    shown = shown[np.isfinite(shown)]
    lowest, highest = float(shown.min()), float(shown.max())
    margin = 0.06 * (highest - lowest) or 0.05 * abs(highest) or 1.0
    return lowest - margin, highest + margin


def limits_of(metric: Metric, series: Iterable[Line | Level], *, whole: bool = False) -> tuple[float, float]:
    """Returns the ends of a metric's y axis: those of `rmse_limits`, or if more is better, ends that show all curves.

    Such metrics end at 0, so no curve needs to be cut. A level that is not grey belongs to a curve.
    """
    curves, levels = [], []
    for each in series:
        if isinstance(each, Line):
            curves.append(each.y)
        elif each.look == GREY_LEVEL:
            levels.append(each.y)
        else:
            curves.append(np.array([each.y]))
    if not metric.larger_is_better:
        return rmse_limits(curves, levels, whole=whole)
    shown = np.concatenate([*curves, levels])
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    margin = 0.06 * (high - low) or 0.05
    return low - margin, high + margin


def rmse_limits(
    curves: Sequence[NDArray[np.float64]], baselines: Sequence[float], *, whole: bool = False
) -> tuple[float, float]:
    """Returns the ends of the y axis: a little below the best RMSE, and a little above the worst baseline (GA in the
    papers).

    At small ε a curve may be many times worse than that, and is cut so as not to squash the others. The best point of
    every useful curve stays in sight. With `whole` all of every curve stays in sight, up to twice the worst baseline.
    Without baselines the axis ends at the highest RMSE or at twice the lowest, whichever is less.
    `curves` are mean RMSEs (E,), not all infinite.
    """
    finite = [shown for curve in curves if len(shown := curve[np.isfinite(curve)])]
    best, highest = [float(curve.min()) for curve in finite], [float(curve.max()) for curve in finite]
    lowest = min([*best, *baselines])
    if not baselines:
        ceiling = min(max(highest), 2 * lowest)
    elif whole:
        worst = max(baselines)
        ceiling = max(worst, min(max(highest, default=worst), _IN_SIGHT_LOCAL * worst))
    else:
        worst = max(baselines)
        ceiling = max([worst, *(value for value in best if value <= _IN_SIGHT * worst)])
    margin = 0.06 * (ceiling - lowest) or 0.05 * ceiling
    return lowest - margin, ceiling + margin


def epsilon_ticks(low: float, high: float) -> list[float]:
    """Returns ticks 1, 2, 5 of every decade in [low, high]; over more than four decades, only powers of ten."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high <= 1e4 * low else (1,)
    # Read from decimal text: 0.3 exactly, not 3 · 10⁻¹ with a rounding error that may leave the range.
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Returns positions in [low, high], at least `gap` apart, nearest to `targets` in least squares; in input order.

    With positions sorted and y_i = x_i − i·gap, "at least `gap` apart" means that y never falls, so y is the
    isotonic regression of the targets (Barlow et al., Statistical Inference under Order Restrictions, 1972), clipped
    to the range. If the labels do not fit, they are spaced evenly.
    """
    if not targets:
        return []
    count = len(targets)
    steps = min(gap, (high - low) / max(count - 1, 1)) * np.arange(count)
    order = np.argsort(targets, kind="stable")
    apart = isotonic_regression(np.asarray(targets)[order] - steps).x
    positions = np.empty(count)
    positions[order] = np.clip(apart, low, high - steps[-1]) + steps
    return positions.tolist()

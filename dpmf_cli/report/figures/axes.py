"""The axes of a figure over ε or θ: limits, ticks and names."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Axis, Measured
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.privacy.neighbours import Neighbours

#: A curve is off the axes if its lowest error is above this multiple of the worst baseline.
_IN_SIGHT = 1.3
#: In the local model entire curves lie above all baselines, and the papers' figures show them. So they are in sight
#: from end to end, up to this multiple of the worst baseline.
_IN_SIGHT_LOCAL = 2.0


def limits_of(
    metric: Metric, curves: Sequence[NDArray[np.float64]], levels: Sequence[float], *, whole: bool = False
) -> tuple[float, float]:
    """Returns the ends of a metric's y axis: those of `rmse_limits`, or if more is better, ends that show all curves.

    Such metrics end at 0, so no curve needs to be cut.
    """
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
    finite = [curve[np.isfinite(curve)] for curve in curves]
    best = [float(curve.min()) for curve in finite if len(curve)]
    lowest = min([*best, *baselines])
    if baselines:
        worst = max(baselines)
        if whole:
            highest = max((float(curve.max()) for curve in finite if len(curve)), default=worst)
            ceiling = max(worst, min(highest, _IN_SIGHT_LOCAL * worst))
        else:
            ceiling = max([worst, *(value for value in best if value <= _IN_SIGHT * worst)])
    else:
        ceiling = min(max(float(curve.max()) for curve in finite if len(curve)), 2 * lowest)
    margin = 0.06 * (ceiling - lowest) or 0.05 * ceiling
    return lowest - margin, ceiling + margin


def epsilon_ticks(low: float, high: float) -> list[float]:
    """Returns ticks 1, 2, 5 of every decade in [low, high]; over more than four decades, only powers of ten."""
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    steps = (1, 2, 5) if high <= 1e4 * low else (1,)
    # Read from decimal text: 0.3 exactly, not 3 · 10⁻¹ with a rounding error that may leave the range.
    ticks = [float(f"{step}e{decade:.0f}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def x_name(curves: Sequence[Measured], axis: Axis) -> str:
    """The name of the axis of ε or θ: whether the ε of these curves are those that can be proved."""
    proved = all(np.allclose(curve.claimed, curve.provable) for curve in curves)
    claim = "claimed and provable" if proved else "as claimed (what is provable differs)"
    return "θ" if axis == "theta" else f"total ε, {claim}"


def scale_axes(axes: Axes, curves: Sequence[Measured], levels: Sequence[float], axis: Axis) -> None:
    """Sets limits, ticks and names of both axes, for complete curves and the levels of baselines and references."""
    points = [curve.along(axis) for curve in curves]
    smallest, largest = min(float(each[0]) for each in points), max(float(each[-1]) for each in points)
    pad = (largest / smallest) ** 0.02 if largest > smallest else 2.0
    axes.set_xscale("log")
    axes.set_xlim(smallest / pad, largest * pad)
    axes.xaxis.set_major_locator(FixedLocator(epsilon_ticks(smallest / pad, largest * pad)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    twins = [twin.mean() for curve in curves if (twin := curve.without_noise()) is not None]
    local = any(curve.neighbours == Neighbours.LOCAL for curve in curves)
    metric = curves[0].metric
    axes.set_ylim(*limits_of(metric, [*(curve.mean() for curve in curves), *twins], levels, whole=local))
    axes.set_xlabel(x_name(curves, axis))
    axes.set_ylabel(metric.title)
    axes.spines[["top", "right"]].set_visible(False)

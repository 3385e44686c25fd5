"""A chart as data, and what it shows of an experiment: its parts by guarantee, its lines, names and notes.

A chart has lines and levels over an axis. PNG, SVG, PDF and the picture in a page are drawn from it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from dpmf_cli.evaluation.crossings import crossing_targets, is_complete, target_name
from dpmf_cli.evaluation.curves import Axis, Experiment, Measured, Reference
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.figures.style import GREY_LEVEL, Dash, Look
from dpmf_cli.report.tables.crossings import NAMES
from dpmf_cli.report.words import lines

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
    """Returns the ends of a metric's y axis: a little below the best RMSE, and a little above the worst baseline (GA
    in the papers). If more is better, metrics end at 0, no curve needs to be cut, and all are shown.

    At small ε a curve may be many times worse than that, and is cut so as not to squash the others. The best point of
    every useful curve stays in sight. With `whole` all of every curve stays in sight, up to twice the worst baseline.
    Without baselines the axis ends at the highest RMSE or at twice the lowest, whichever is less.
    A level that is not grey belongs to a curve. At least one curve has a finite mean.
    """
    curves, baselines = [], []
    for each in series:
        if isinstance(each, Level) and each.look == GREY_LEVEL:
            baselines.append(each.y)
        else:
            curves.append(np.atleast_1d(each.y))
    if metric.larger_is_better:
        shown = np.concatenate([*curves, baselines])
        low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
        margin = 0.06 * (high - low) or 0.05
        return low - margin, high + margin
    finite = [shown for curve in curves if len(shown := curve[np.isfinite(curve)])]
    best, highest = [float(curve.min()) for curve in finite], [float(curve.max()) for curve in finite]
    low = min([*best, *baselines])
    if not baselines:
        high = min(max(highest), 2 * low)
    else:
        worst = max(baselines)
        reached = [value for value in best if value <= _IN_SIGHT * worst]
        if whole:
            reached = [min(max(highest, default=worst), _IN_SIGHT_LOCAL * worst)]
        high = max([worst, *reached])
    margin = 0.06 * (high - low) or 0.05 * high
    return low - margin, high + margin


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


T = TypeVar("T")

MOST_LINES = 50
"""The most lines of a kind in one figure. More names do not fit beside it, and the looks of lines would repeat."""


def is_drawable(curve: Measured) -> bool:
    """Whether a figure can show a curve: all its tasks have a result, and at least one model converged."""
    return is_complete(curve) and bool(np.isfinite(curve.mean()).any())


def with_twins(found: Iterable[Measured]) -> list[Measured]:
    """Returns the measurements, each followed by its twin without noise if that was measured."""
    return [each for one in found for each in (one, one.without_noise()) if each is not None]


def parts_of(experiment: Experiment) -> dict[Guarantee | None, Experiment]:
    """Returns a part of the experiment for each guarantee: its curves, all baselines, and the guarantee in the title.

    An ε that protects one thing says nothing about another thing, and a joint ε does not bound what everybody learns.
    Side by side on an axis such ε would look comparable, and they are not. So no figure has ε of two guarantees. An
    experiment with one guarantee is its own only part, under None. Parts are in the order of tables.
    """
    found = {curve.guarantee.at_any_delta for curve in experiment.curves}
    if len(found) <= 1:
        return {None: experiment}

    def of(guarantee: Guarantee, measured: Measured) -> bool:
        return measured.is_baseline or measured.guarantee.at_any_delta == guarantee

    return {
        each: experiment.changed(partial(filter, partial(of, each)), title=f"{experiment.title}: {each}")
        for each in GUARANTEES
        if each in found
    }


def legible(experiment: Experiment) -> Experiment:
    """Returns the experiment with only the curves and baselines for which a figure has room.

    These are the `MOST_LINES` best of each kind by the metric that is shown, in their order. The title says how many
    there are in all. All values of one entry's sweep are one line, and the lines over one swept parameter are one
    kind. Baselines that crossings are measured against are kept before others.
    """
    kept, cut = set(), []
    for name, found in (("curves", experiment.curves), ("baselines", experiment.baselines)):
        best: dict[tuple[str, str, str], float] = {}
        for each in found:
            error = (
                -math.inf if each.is_baseline and each.algorithm in experiment.targets else least_loss(each)
            )
            best[_line(each)] = min(best.get(_line(each), math.inf), error)
        of_these = {
            line
            for kind in {kind for kind, _, _ in best}
            for line in lowest([line for line in best if line[0] == kind], best.__getitem__)
        }
        if len(of_these) < len(best):
            cut.append(f"{len(of_these):,} of {len(best):,} {name}")
        kept |= of_these
    if not cut:
        return experiment
    order = "highest" if experiment.metric.larger_is_better else "lowest"
    title = f"{experiment.title}, {' and '.join(cut)} ({order} {experiment.metric.title})"
    return experiment.changed(lambda found: [each for each in found if _line(each) in kept], title=title)


def _line(measured: Measured) -> tuple[str, str, str]:
    """Returns the swept parameter ("" without a sweep), the algorithm and the name of a line."""
    if measured.swept is None:
        return "", measured.algorithm, measured.label
    return measured.swept[0], measured.algorithm, measured.line


def lowest(found: Sequence[T], error: Callable[[T], float]) -> list[T]:
    """Returns the `MOST_LINES` of `found` with the lowest errors, in their order; of equal ones the first."""
    ranks = sorted(range(len(found)), key=lambda rank: error(found[rank]))
    return [found[rank] for rank in sorted(ranks[:MOST_LINES])]


def least_loss(measured: Measured) -> float:
    """Returns the lowest RMSE over all ε; ∞ if tasks have no result or all models diverged.

    For a metric of which more is better, it is minus the highest value.
    """
    mean = measured.metric.sign * measured.mean()
    return float(mean[np.isfinite(mean)].min(initial=math.inf)) if is_complete(measured) else math.inf


def sign_of(axis: Axis) -> str:
    return "θ" if axis == "theta" else "ε"


def at_place(name: str, axis: Axis, place: float) -> str:
    """Returns the name of a line at one ε or θ."""
    return f"{name}, {sign_of(axis)} = {place:g}"


def level_of(target: Measured | Reference) -> float:
    """Returns the level of a baseline in the metric that is shown, or the RMSE of a printed reference."""
    return target.rmse if isinstance(target, Reference) else float(target.values[:, :, 0].mean())


def level_names(experiment: Experiment) -> dict[str, str]:
    """Returns the name of each baseline in figures, by its label.

    It is the papers' name, or the label if several baselines have the same algorithm.
    """
    of_key = Counter(baseline.algorithm for baseline in experiment.baselines)
    return {
        each.label: each.label
        if of_key[each.algorithm] > 1
        else NAMES.get(each.algorithm) or each.line or each.algorithm.upper()
        for each in experiment.baselines
    }


def title_of(experiment: Experiment, curves: Sequence[Measured]) -> str:
    """Says what was measured: the title of a figure."""
    neighbours = dict.fromkeys(curve.neighbours for curve in curves)
    modes = dict.fromkeys(f"{curve.mode} mode" for curve in curves)
    folds, runs = (
        f"{n} {of}{'s' * (n != 1)}" for n, of in ((experiment.folds, "fold"), (experiment.runs, "run"))
    )
    return ", ".join([experiment.title, *neighbours, *modes, f"{folds} × {runs}"])


def notes_of(experiment: Experiment, curves: Sequence[Measured], ceiling: float | None = None) -> list[str]:
    """Returns the notes below curves; `ceiling` is the upper end of the y axis.

    Without one, they only say which δ belong to which curves, which ε the largest θ stands for, and which are joint.
    """
    folds, runs, _ = curves[0].rmse.shape
    ends: dict[float, dict[str, list[str]]] = {}
    for curve in curves if experiment.axis == "theta" else ():
        epsilon = significant(float(curve.epsilons[-1]))
        ends.setdefault(float(curve.along("theta")[-1]), {}).setdefault(epsilon, []).append(curve.label)
    return lines(
        "notes/figures",
        curves=curves,
        experiment=experiment,
        ceiling=ceiling,
        folds=folds,
        runs=runs,
        targets=[target_name(target) for target in crossing_targets(experiment)],
        ends=sorted(ends.items()),
        cut=[
            each.label
            for each in curves
            if ceiling is not None and is_complete(each) and not (each.mean() <= ceiling).all()
        ],
        missing=[each.label for each in (*curves, *experiment.baselines) if not is_complete(each)],
    )

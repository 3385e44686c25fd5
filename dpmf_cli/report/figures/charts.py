"""The charts of an experiment, as data: PNG, SVG, PDF and the picture in a page are drawn from them.

A chart has lines and levels over an axis. Curves are as in Friedman et al. 2016, figures 2 and 4, or over θ as in
McSherry and Mironov 2009, figure 1. Growth is that paper's figure 2. Sweeps are as in Friedman et al. 2016, figure 6,
and Zhang et al. 2018, figures 2, 4 and 5; the distribution of errors is Zhang et al.'s figure 3.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from dpmf_cli.core.terminal import significant
from dpmf_cli.evaluation.crossings import (
    band,
    crossing_targets,
    curve_stream,
    is_complete,
    measure_crossing,
    target_name,
)
from dpmf_cli.evaluation.curves import Axis, Experiment, Measured, Reference
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.evaluation.statistics import percentile_interval, replicate_means
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.figures.style import GREY_LEVEL, MARKERS, Dash, Look, looks
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
    """The ends of a y axis that shows all lines and levels, bands included."""
    parts = ((each.y,) if isinstance(each, Level) else (each.y, each.low, each.high) for each in series)
    shown = np.concatenate([np.ravel(part) for each in parts for part in each if part is not None])
    shown = shown[np.isfinite(shown)]
    lowest, highest = float(shown.min()), float(shown.max())
    margin = 0.06 * (highest - lowest) or 0.05 * abs(highest) or 1.0
    return lowest - margin, highest + margin


def limits_of(metric: Metric, series: Iterable[Line | Level], *, whole: bool = False) -> tuple[float, float]:
    """The ends of a metric's y axis: a little below the best RMSE, and a little above the worst baseline (GA
    in the papers). If more is better, metrics end at 0, no curve needs to be cut, and all are shown.

    At small ε a curve may be many times worse than that, and is cut so as not to squash the others. The best point of
    every useful curve stays in sight; with `whole` all of every curve does, up to twice the worst baseline. Without
    baselines the axis ends at the highest RMSE or at twice the lowest, whichever is less. A level that is not grey
    belongs to a curve. At least one curve has a finite mean.
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
    """Ticks 1, 2, 5 of every decade in [low, high]; over more than four decades, only powers of ten."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high <= 1e4 * low else (1,)
    # Read from decimal text: 0.3 exactly, not 3 · 10⁻¹ with a rounding error that may leave the range.
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions in [low, high], at least `gap` apart, nearest to `targets` in least squares; in input order.

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


def with_noise_free(found: Iterable[Measured]) -> list[Measured]:
    """The measurements, each followed by its noise-free run if that was measured."""
    return [each for one in found for each in (one, one.without_noise()) if each is not None]


def parts_of(experiment: Experiment) -> dict[Guarantee | None, Experiment]:
    """A part of the experiment for each guarantee: its curves, all baselines, and the guarantee in the title.

    An ε that protects one thing says nothing about another thing, and a joint ε does not bound what everybody learns.
    On one axis they would look comparable, so that no figure has ε of two guarantees.
    An experiment with one guarantee is its own only part, under None. Parts are in the order of tables.
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
    """The experiment with only the curves and baselines for which a figure has room.

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
    """The swept parameter ("" without a sweep), the algorithm and the name of a line."""
    if measured.swept is None:
        return "", measured.algorithm, measured.label
    return measured.swept[0], measured.algorithm, measured.line


def lowest(found: Sequence[T], error: Callable[[T], float]) -> list[T]:
    """The `MOST_LINES` of `found` with the lowest errors, in their order; of equal ones the first."""
    ranks = sorted(range(len(found)), key=lambda rank: error(found[rank]))
    return [found[rank] for rank in sorted(ranks[:MOST_LINES])]


def least_loss(measured: Measured) -> float:
    """The lowest RMSE, or minus the highest value of a metric of which more is better, over all ε; ∞ if tasks have no
    result or all models diverged."""
    mean = measured.metric.sign * measured.mean()
    return float(mean[np.isfinite(mean)].min(initial=math.inf)) if is_complete(measured) else math.inf


def sign_of(axis: Axis) -> str:
    return "θ" if axis == "theta" else "ε"


def at_place(name: str, axis: Axis, place: float) -> str:
    """The name of a line at one ε or θ."""
    return f"{name}, {sign_of(axis)} = {place:g}"


def level_of(target: Measured | Reference) -> float:
    """The level of a baseline in the metric that is shown, or the RMSE of a printed reference."""
    return target.rmse if isinstance(target, Reference) else float(target.values[:, :, 0].mean())


def level_names(experiment: Experiment) -> dict[str, str]:
    """The name of each baseline in figures, by its label: the papers' name, or the label if several baselines have
    the same algorithm."""
    of_key = Counter(baseline.algorithm for baseline in experiment.baselines)
    return {
        each.label: each.label
        if of_key[each.algorithm] > 1
        else NAMES.get(each.algorithm) or each.line or each.algorithm.upper()
        for each in experiment.baselines
    }


def title_of(experiment: Experiment, curves: Sequence[Measured]) -> str:
    neighbours = dict.fromkeys(curve.neighbours for curve in curves)
    modes = dict.fromkeys(f"{curve.mode} mode" for curve in curves)
    folds, runs = (
        f"{n} {of}{'s' * (n != 1)}" for n, of in ((experiment.folds, "fold"), (experiment.runs, "run"))
    )
    return ", ".join([experiment.title, *neighbours, *modes, f"{folds} × {runs}"])


def notes_of(experiment: Experiment, curves: Sequence[Measured], ceiling: float | None = None) -> list[str]:
    """The notes below curves; `ceiling` is the upper end of the y axis.

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
            if ceiling is not None and is_complete(each) and not (each.mean()[each.first :] <= ceiling).all()
        ],
        missing=[each.label for each in (*curves, *experiment.baselines) if not is_complete(each)],
    )


Band = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""(E,) each: the mean, and the lower and the upper end of its band."""
Quantity = Callable[[Measured], Band]

_MOST_LEVELS = 3
"""If a curve without a sweep has more ε than this, only its largest ε is drawn."""
_MOST_PANELS = 4


def charts_of(experiment: Experiment) -> list[Chart]:
    """All charts that can be drawn of an experiment; none if no curve is complete.

    If the experiment has several guarantees, each has charts of its own, under the sentence that says what its ε
    promises.
    """
    found: list[Chart] = []
    for guarantee, part in parts_of(experiment).items():
        shown = legible(part)
        figures = figures_of(shown)
        # A single ε is a point, not a curve: the table has it, and charts of sweeps show it as a level.
        if all(len(curve.epsilons) == 1 for curve in unswept(shown)):
            figures.pop("curves", None)
        figures |= {name: figures.pop(name) for name in ("error_cdf", "growth") if name in figures}
        charts = [chart for make in figures.values() for chart in make()]
        if shown is not part:
            note = f"Shown: {shown.title.removeprefix(part.title + ', ')}; all are in curves.csv."
            charts = [replace(chart, notes=(note, *chart.notes)) for chart in charts]
        if guarantee is not None:
            charts = [
                replace(
                    chart,
                    key=f"{chart.key}-{guarantee.key.replace('_', '-')}",
                    title=f"{chart.title}: {guarantee}",
                    heading="" if rank else f"{experiment.title}, {guarantee}: {guarantee.statement}",
                )
                for rank, chart in enumerate(charts)
            ]
        found += charts
    return found


def figures_of(experiment: Experiment) -> dict[str, Callable[[], list[Chart]]]:
    """What makes the charts of each figure, by the figure's name. All curves must have one guarantee."""
    found: dict[str, Callable[[], list[Chart]]] = {}
    with_errors = has_error_cdf(experiment)
    if any(map(is_drawable, unswept(experiment))):
        found["curves"] = lambda: [curves_chart(experiment)]
        if with_errors:
            found["error_cdf"] = lambda: [error_chart(experiment)]
    for parameter in swept_parameters(experiment):
        found[f"sweep-{parameter}"] = partial(sweep_charts, experiment, parameter)
        if with_errors:
            found[f"error_cdf-{parameter}"] = partial(sweep_charts, experiment, parameter, of_errors=True)
    if growth_lines(experiment):
        found["growth"] = lambda: [growth_chart(experiment)]
    return found


def unswept(experiment: Experiment) -> list[Measured]:
    return [curve for curve in experiment.curves if curve.swept is None]


def swept_parameters(experiment: Experiment) -> list[str]:
    """The parameters that sweeps of the experiment vary; each is the axis of a figure."""
    return list(dict.fromkeys(each.swept[0] for each in _drawable(experiment) if each.swept))


def has_error_cdf(experiment: Experiment) -> bool:
    return any(curve.error_cdf is not None for curve in experiment.curves)


def _drawable(experiment: Experiment) -> list[Measured]:
    """All complete measurements, noise-free runs included."""
    return [
        each for each in with_noise_free((*experiment.curves, *experiment.baselines)) if is_drawable(each)
    ]


def _key(experiment: Experiment, *words: str) -> str:
    """A word for an `id` in the page, as names of experiments are already."""
    return "-".join([experiment.name, *("".join(c if c.isalnum() else "-" for c in word) for word in words)])


def curve_series(
    experiment: Experiment, curve: Measured, name: str, look: Look, *, bands: bool = True
) -> Iterator[Line | Level]:
    """Yields a complete curve over ε or θ with its crossings, and the level of its noise-free run."""
    shown = slice(curve.first, None)  # no axis of ε can show ε → 0
    mean = np.where(np.isfinite(curve.mean()), curve.mean(), np.nan)[shown]
    low, high = (end[shown] for end in band(experiment, curve)) if bands else (None, None)
    marks = []
    for target in crossing_targets(experiment):
        crossing = measure_crossing(experiment, curve, target)
        x = crossing.theta if experiment.axis == "theta" else crossing.reproduced
        if x is not None:
            marks.append((x, level_of(target)))
    yield Line(name, look, curve.along(experiment.axis)[shown], mean, low, high, marks=tuple(marks))
    if (noise_free := curve.without_noise()) is not None:
        yield Level(f"{name}, no noise", level_of(noise_free), Dash.NO_NOISE, look, labelled=False)


def curves_chart(experiment: Experiment) -> Chart:
    """RMSE, or the metric that is shown, over ε or θ, for all curves without a sweep.

    Each curve has its 95 % band, each baseline and printed reference is a level, and crossings are marked. What is
    incomplete is named in the notes. At least one curve must be complete.
    """
    chosen = unswept(experiment)
    names = level_names(experiment)
    series: list[Line | Level] = [
        Level(names[each.label], level_of(each))
        for each in experiment.baselines
        if is_drawable(each) and each.swept is None
    ]
    series += [Level(each.name, each.rmse, Dash.PRINTED) for each in experiment.references]
    # Colours start anew with each pair of neighbours and mode: an algorithm run in both modes keeps its colour.
    of_pair, ranks = Counter[tuple[str, str]](), []
    for curve in chosen:
        ranks.append(of_pair[curve.neighbours, curve.mode])
        of_pair[curve.neighbours, curve.mode] += 1
    for curve, look in zip(chosen, looks(ranks), strict=True):
        if is_complete(curve):
            series += curve_series(experiment, curve, curve.label, look)
    complete = [curve for curve in chosen if is_complete(curve)]
    whole = any(curve.neighbours == Neighbours.LOCAL for curve in complete)
    limits = limits_of(experiment.metric, series, whole=whole)
    proved = all(np.allclose(curve.claimed, curve.provable) for curve in complete)
    claim = "claimed and provable" if proved else "as claimed (what is provable differs)"
    return Chart(
        key=_key(experiment, "curves"),
        title=f"{experiment.metric.title} over {sign_of(experiment.axis)}",
        x_name="θ" if experiment.axis == "theta" else f"total ε, {claim}",
        y_name=experiment.metric.title,
        series=series,
        limits=limits,
        log=True,
        notes=notes_of(experiment, chosen, limits[1]),
    )


def sweep_charts(experiment: Experiment, parameter: str, *, of_errors: bool = False) -> list[Chart]:
    """RMSE, or the metric that is shown, over a swept parameter.

    With `of_errors` there is a chart for each x, or for some, of the fraction of errors that are at most x.
    """
    quantities: dict[str, Quantity] = {
        experiment.metric.title: lambda each: (each.mean(), *band(experiment, each))
    }
    bands = "95 % bootstrap interval of the mean"
    if of_errors:
        bands = "± one standard deviation over folds and runs"

        def fraction(measured: Measured, at: int) -> Band:
            mean, sd = (moment[:, at] for moment in error_moments(measured))
            return mean, mean - np.nan_to_num(sd), mean + np.nan_to_num(sd)

        limits = experiment.curves[0].limits
        shown = np.linspace(0, len(limits) - 1, min(len(limits), _MOST_PANELS)).round().astype(int)
        quantities = {f"errors at most {limits[at]:g}": partial(fraction, at=at) for at in np.unique(shown)}
    return [
        Chart(
            key=_key(experiment, parameter, name),
            title=f"{name} over {parameter}",
            x_name=parameter,
            y_name=name,
            series=series,
            limits=limits_around(series),
            notes=(f"Bands: {bands}. Level: not swept.",),
        )
        for name, quantity in quantities.items()
        for series in [swept_series(experiment, parameter, quantity)]
    ]


def swept_series(experiment: Experiment, parameter: str, quantity: Quantity) -> list[Line | Level]:
    """A line for each entry that sweeps `parameter`, and each ε (or θ) of its grid that is shown.

    Levels of what is not swept follow. No two lines or levels share a look, except the grey of baselines.
    """
    drawable = [each for each in _drawable(experiment) if each.swept is None or each.swept[0] == parameter]
    swept, level = ([each for each in drawable if bool(each.swept) == is_swept] for is_swept in (True, False))
    called = level_names(experiment)
    # Swept entries are drawn at ε (or θ) from end to end, as many as `MOST_LINES` allows. Each is one that every
    # value of an entry has; other ε were added where only one value crosses a baseline.
    values = Counter(_entry(each) for each in swept)
    times = Counter((_entry(each), float(place)) for each in swept for place in each.along(experiment.axis))
    places = sorted(
        {place for (entry, place), n in times.items() if n == values[entry] and np.isfinite(place)}
    )
    room = min(max(MOST_LINES // max(len(values), 1), 1), len(places))
    shown = {places[at] for at in np.linspace(len(places) - 1, 0, room).round().astype(int)}
    # By what a line or level is of: an entry at one ε or θ, which is ∞ without noise.
    found: dict[tuple[str, str, float, bool], tuple[str, Dash, bool]] = {}
    points = defaultdict[tuple[str, str, float, bool], list[tuple[float, float, float, float]]](list)
    for measured in (*swept, *level):
        mean, low, high = quantity(measured)
        grid = measured.along(experiment.axis).tolist()
        (algorithm, line), is_swept = _entry(measured), measured.swept is not None
        is_grey = not is_swept and measured.is_baseline
        dash = Dash.MEASURED if measured.is_baseline or np.isfinite(grid[0]) else Dash.NO_NOISE
        for at, place in enumerate(grid):
            key = algorithm, line, place, is_swept
            name = called[measured.label] if is_grey else line
            if np.isfinite(place):
                is_last = len(grid) <= _MOST_LEVELS or at == len(grid) - 1
                if not (place in shown if is_swept else is_last):
                    continue
                name = at_place(name, experiment.axis, place)
            elif dash == Dash.NO_NOISE:
                name += ", no noise"
            found.setdefault(key, (name, dash, is_grey))
            value = measured.swept[1] if measured.swept else np.nan
            points[key].append((value, float(mean[at]), float(low[at]), float(high[at])))
    # A single entry has a colour for each ε; of several entries, each has one colour.
    alone = len(values) == 1
    apart = [key for key, (_, _, is_grey) in found.items() if not is_grey]
    look = dict(zip(apart, looks([key[2] if alone else key[:2] for key in apart]), strict=True))
    series: list[Line | Level] = []
    for key, (name, dash, _) in found.items():
        value, mean, low, high = np.array(sorted(points[key])).T
        if key[-1]:
            series.append(Line(name, look[key], value, mean, low, high, dash))
        else:
            series.append(Level(name, float(mean[0]), dash, look.get(key, GREY_LEVEL)))
    return series


def _entry(measured: Measured) -> tuple[str, str]:
    return measured.algorithm, measured.line or measured.algorithm.upper()


def error_moments(measured: Measured) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(E, X) mean and (E, X) standard deviation of `error_cdf` over folds × runs; NaN where there is none."""
    assert measured.error_cdf is not None
    folds, runs, *shape = measured.error_cdf.shape
    flat = measured.error_cdf.reshape(folds * runs, *shape)
    return flat.mean(axis=0), flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(tuple(shape), np.nan)


def error_chart(experiment: Experiment) -> Chart:
    """The distribution of errors of all entries without a sweep, the line with the highest mean first.

    There is a line for each ε of each curve, or for the largest of many, and for each baseline. At least one curve
    must be complete.
    """
    found: list[tuple[str, str, Dash, NDArray[np.float64]]] = []
    for curve in (each for each in unswept(experiment) if is_drawable(each)):
        grid, mean = curve.along(experiment.axis), error_moments(curve)[0]
        first = 0 if len(grid) <= _MOST_LEVELS else len(grid) - 1
        for at in range(len(grid) - 1, first - 1, -1):
            name = at_place(curve.label, experiment.axis, grid[at])
            found.append((curve.label, name, Dash.MEASURED, mean[at]))
        noise_free = curve.without_noise()
        if noise_free is not None and is_complete(noise_free):
            found.append(
                (curve.label, f"{curve.label}, no noise", Dash.NO_NOISE, error_moments(noise_free)[0][0])
            )
    x = np.array(experiment.curves[0].limits)
    lines = [
        Line(name, look, x, mean, dash=dash)
        for (_, name, dash, mean), look in zip(found, looks([label for label, *_ in found]), strict=True)
    ]
    called = level_names(experiment)
    levels = [each for each in experiment.baselines if each.swept is None and is_drawable(each)]
    lines += [
        Line(called[each.label], Look(None, rank % len(MARKERS)), x, error_moments(each)[0][0])
        for rank, each in enumerate(levels)
    ]
    low, high = limits_around(lines)
    return Chart(
        key=_key(experiment, "errors"),
        title="Distribution of errors",
        x_name="x, rating units",
        y_name="fraction of errors that are at most x",
        series=sorted(lines, key=lambda line: -float(np.mean(line.y))),
        limits=(max(low, 0.0), min(high, 1.03)),
        notes=("Mean over folds and runs.",),
    )


def loss_of(experiment: Experiment, curve: Measured) -> NDArray[np.float64]:
    """(4, E) what the noise of a curve costs: its RMSE less that of its noise-free run, paired by fold; NaN if
    unknown.

    The rows are the mean, the standard deviation over folds and runs, and the ends of the 95 % interval of the mean,
    which is computed as for a curve.
    """
    noise_free, unknown = curve.without_noise(), np.full(len(curve.epsilons), np.nan)
    if noise_free is None or not is_complete(curve):
        return np.stack([unknown] * 4)
    loss = curve.rmse - noise_free.rmse
    loss[:, :, ~np.isfinite(loss).all(axis=(0, 1))] = np.nan
    drawn = replicate_means(loss, rng=curve_stream(experiment, curve), partition=experiment.partition)
    ends = percentile_interval(drawn.curves) if drawn.over != "none" else (unknown, unknown)
    sd = loss.std(axis=(0, 1), ddof=1) if loss[:, :, 0].size > 1 else unknown
    return np.stack([loss.mean(axis=(0, 1)), sd, *ends])


def growth_lines(experiment: Experiment, places: NDArray[np.float64] | None = None) -> list[Line]:
    """The loss of each curve without a sweep, at each ε, over the portions at which it is known.

    `places` are the portions' x; by default they are their numbers of ratings.
    """
    if places is None:
        places = np.array([stage.portion.ratings for stage in experiment.growth], dtype=np.float64)
    found = []
    for rank, curve in enumerate(experiment.curves):
        if curve.swept is not None or not experiment.growth:
            continue
        losses = np.array([loss_of(experiment, stage.curves[rank]) for stage in experiment.growth])
        mean, _, low, high = losses.transpose(1, 2, 0)
        grid = curve.along(experiment.axis)
        for at, place in enumerate(grid):
            known = np.isfinite(mean[at])
            if known.any():
                name = curve.label if len(grid) == 1 else at_place(curve.label, experiment.axis, place)
                found.append((name, places[known], mean[at, known], low[at, known], high[at, known]))
    chosen = looks(range(len(found)))
    return [Line(name, look, *columns) for (name, *columns), look in zip(found, chosen, strict=True)]


def growth_chart(experiment: Experiment) -> Chart:
    """What privacy costs while ratings accumulate; the experiment must have `growth_lines`."""
    lines = growth_lines(experiment)
    bands = "Bands: 95 % bootstrap interval of the mean, paired by fold."
    return Chart(
        key=_key(experiment, "growth"),
        title="Loss as ratings accumulate",
        x_name="ratings so far",
        y_name="RMSE − RMSE without noise",
        series=lines,
        limits=limits_around((*lines, Level("", 0.0))),
        notes=(bands, *notes_of(experiment, experiment.curves)),
    )

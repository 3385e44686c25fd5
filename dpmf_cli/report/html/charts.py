"""The charts of an experiment: curves, sweeps, distributions of errors, growth. Each shows the same as its PNG."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.levels import band
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.report.figures.axes import limits_of, x_name
from dpmf_cli.report.figures.error_cdf import (
    FRACTION_NOTE,
    X_NAME,
    Y_NAME,
    error_cdf_lines,
    has_error_cdf,
    swept_error_cdfs,
)
from dpmf_cli.report.figures.growth import BANDS_NOTE, growth_lines
from dpmf_cli.report.figures.legible import legible
from dpmf_cli.report.figures.looks import Look, looks
from dpmf_cli.report.figures.notes import meaning_of, notes_of
from dpmf_cli.report.figures.panels import parts_of
from dpmf_cli.report.figures.shown import crossing_points, is_drawable, level_names, with_looks
from dpmf_cli.report.figures.style import Dash
from dpmf_cli.report.figures.sweeps import SWEPT_NOTE, SweptLine, swept_means, swept_parameters
from dpmf_cli.report.html.chart import Chart, ChartLine, Level, limits


def charts_of(experiment: Experiment) -> list[Chart]:
    """Returns all charts that can be drawn of an experiment; none if no curve is complete.

    If the experiment has several guarantees, each has charts of its own, under the sentence that says what its ε
    promises.
    """
    parts = parts_of(experiment)
    if len(parts) <= 1:
        return _charts(experiment)
    return [
        replace(
            chart,
            key=f"{chart.key}-{guarantee.key.replace('_', '-')}",
            title=f"{chart.title}: {guarantee}",
            heading="" if rank else f"{experiment.title}, {guarantee}: {guarantee.statement}",
        )
        for guarantee, part in parts.items()
        for rank, chart in enumerate(_charts(part))
    ]


def _charts(whole: Experiment) -> list[Chart]:
    experiment, charts = legible(whole), []
    unswept = [curve for curve in experiment.curves if curve.swept is None]
    drawable = any(is_drawable(curve) for curve in unswept)
    # A single ε is a point, not a curve: the table has it, and charts of sweeps show it as a level.
    if drawable and any(len(curve.epsilons) > 1 for curve in unswept):
        charts.append(_curves(experiment, unswept))
    for parameter in swept_parameters(experiment):
        means = swept_means(experiment, parameter)
        charts.append(_swept(experiment, parameter, experiment.metric.title, means, SWEPT_NOTE))
        if has_error_cdf(experiment):
            charts += [
                _swept(experiment, parameter, name, lines, FRACTION_NOTE)
                for name, lines in swept_error_cdfs(experiment, parameter)
            ]
    if drawable and has_error_cdf(experiment):
        charts.append(_error_cdf(experiment))
    if growth_lines(experiment):
        charts.append(_growth(experiment))
    if experiment is whole:
        return charts
    shown = f"Shown: {experiment.title.removeprefix(whole.title + ', ')}; all are in curves.csv."
    return [replace(chart, notes=(shown, *chart.notes)) for chart in charts]


def _key(experiment: Experiment, *words: str) -> str:
    """Returns a word for an `id` in the page. Names of experiments are such words already."""
    return "-".join([experiment.name, *("".join(c if c.isalnum() else "-" for c in word) for word in words)])


def _sign(experiment: Experiment) -> str:
    return "θ" if experiment.axis == "theta" else "ε"


def _curves(experiment: Experiment, chosen: Sequence[Measured]) -> Chart:
    """Charts RMSE, or the metric that is shown, over ε or θ, in the colours and dashes of `curves.png`."""
    baselines = [each for each in experiment.baselines if is_drawable(each) and each.swept is None]
    names = level_names(experiment)
    levels = [Level(names[each.label], float(each.mean()[0])) for each in baselines]
    levels += [Level(each.name, each.rmse, Dash.PRINTED) for each in experiment.references]
    lines, twins = [], []
    for curve, look in with_looks(chosen):
        lines.append(_curve(experiment, curve, look))
        twin = curve.without_noise()
        if twin is not None and is_complete(twin):
            twins.append(Level(f"{curve.label}, no noise", float(twin.mean()[0]), Dash.NO_NOISE, look, False))
    complete = [curve for curve in chosen if is_complete(curve)]
    local = any(curve.neighbours == Neighbours.LOCAL for curve in complete)
    shown = [*(curve.mean() for curve in complete), *(np.array([twin.y]) for twin in twins)]
    low, high = limits_of(experiment.metric, shown, [level.y for level in levels], whole=local)
    return Chart(
        key=_key(experiment, "curves"),
        title=f"{experiment.metric.title} over {_sign(experiment)}",
        x_name=x_name(complete, experiment.axis),
        y_name=experiment.metric.title,
        lines=tuple(lines),
        levels=(*levels, *twins),
        low=low,
        high=high,
        log=True,
        notes=tuple(notes_of(experiment, chosen, high)),
    )


def _curve(experiment: Experiment, curve: Measured, look: Look) -> ChartLine:
    low, high = band(experiment, curve)
    along = curve.along(experiment.axis)
    mean = np.where(np.isfinite(curve.mean()), curve.mean(), np.nan)
    marks = tuple(crossing_points(experiment, curve))
    points = _points(along, mean, low, high)
    return ChartLine(curve.label, points, look.colour, look.marker, marks=marks)


def _points(*columns: Any) -> tuple[tuple[float, float, float, float], ...]:
    return tuple(
        (float(x), float(y), float(low), float(high)) for x, y, low, high in zip(*columns, strict=True)
    )


def _swept(
    experiment: Experiment, parameter: str, quantity: str, swept: Sequence[SweptLine], note: str
) -> Chart:
    lines = tuple(
        ChartLine(each.name, tuple(sorted(each.points)), each.look.colour, each.look.marker, each.dash)
        for each in swept
        if each.look is not None and not each.level
    )
    levels = tuple(Level(each.name, each.points[0][1], each.dash, each.look) for each in swept if each.level)
    low, high = limits(lines, levels)
    return Chart(
        key=_key(experiment, parameter, quantity),
        title=f"{quantity} over {parameter}",
        x_name=parameter,
        y_name=quantity,
        lines=lines,
        levels=levels,
        low=low,
        high=high,
        notes=(note,),
    )


def _error_cdf(experiment: Experiment) -> Chart:
    limits_of = experiment.curves[0].limits
    nothing = np.full(len(limits_of), np.nan)
    lines = [
        ChartLine(
            line.name,
            _points(limits_of, line.fractions, nothing, nothing),
            line.colour,
            line.marker,
            line.dash,
        )
        for line in error_cdf_lines(experiment)
    ]
    low, high = limits(lines, ())
    return Chart(
        key=_key(experiment, "errors"),
        title="Distribution of errors",
        x_name=X_NAME,
        y_name=Y_NAME,
        lines=tuple(lines),
        levels=(),
        low=max(low, 0.0),
        high=min(high, 1.03),
        notes=("Mean over folds and runs.",),
    )


def _growth(experiment: Experiment) -> Chart:
    stages = experiment.growth.stages if experiment.growth else ()
    grown = growth_lines(experiment)
    lines = []
    for line, look in zip(grown, looks(range(len(grown))), strict=True):
        counts = [float(stages[at].portion.ratings) for at in line.stages]
        points = _points(counts, line.loss, line.low, line.high)
        lines.append(ChartLine(line.label, points, look.colour, look.marker))
    low, high = limits(lines, (Level("", 0.0),))
    return Chart(
        key=_key(experiment, "growth"),
        title="Loss as ratings accumulate",
        x_name="ratings so far",
        y_name="RMSE − RMSE without noise",
        lines=tuple(lines),
        levels=(),
        low=low,
        high=high,
        notes=(
            BANDS_NOTE,
            *meaning_of(experiment.curves, experiment.axis),
        ),
    )

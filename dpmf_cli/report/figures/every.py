"""All figures of an experiment: the names of their files, their drawing, and the charts of its page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.privacy.protection import GUARANTEES
from dpmf_cli.report.figures.chart import Chart
from dpmf_cli.report.figures.charts import (
    curves_chart,
    error_chart,
    growth_chart,
    growth_lines,
    has_error_cdf,
    sweep_charts,
    swept_error_charts,
    swept_parameters,
    unswept,
)
from dpmf_cli.report.figures.layouts import curves_figure, error_figure, growth_figure, sweep_figure
from dpmf_cli.report.figures.shown import changed, is_drawable, legible, parts_of, title_of
from dpmf_cli.report.figures.style import file_of

Draw = Callable[[str], bytes]
"""From a format, one of `style.FORMATS`, to the bytes of the file."""


@dataclass(frozen=True)
class Shown:
    """One figure: its charts, and how they are drawn together. Nothing is computed before it is asked for."""

    charts: Callable[[], Sequence[Chart]]
    figure: Callable[..., Figure]

    def draw(self, form: str) -> bytes:
        return file_of(lambda: self.figure(*self.charts()), form)


def drawings(experiment: Experiment) -> dict[str, Draw]:
    """Returns every figure by its file's name without the suffix; none if no curve is complete.

    If the experiment has several guarantees, each guarantee has figures of its own: `curves_value`,
    `curves_value_joint`, `curves_user`, …
    """
    parts = parts_of(experiment)
    if len(parts) <= 1:
        return {name: shown.draw for name, shown in _figures(legible(experiment)).items()}
    return {
        f"{name}_{guarantee.key}": shown.draw
        for guarantee, part in parts.items()
        for name, shown in _figures(legible(part)).items()
    }


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


def never_drawn(experiment: Experiment) -> Iterator[str]:
    """Yields names of figures that are out of date and will be deleted: an older version or older config drew them.

    They mix kinds of guarantee, do not name their kind, or name a kind that no curve has. A figure that only waits
    for results is not among them.
    """
    complete = changed(experiment, lambda found: map(_filled, found))
    drawn = drawings(complete)
    for name in _figures(legible(complete)):
        names = (name, *(f"{name}_{guarantee.key}" for guarantee in GUARANTEES))
        yield from (each for each in names if each not in drawn)


def _filled(measured: Measured) -> Measured:
    """Returns a measurement with made-up results where results are missing; use it only for names of figures."""
    if is_complete(measured):
        return measured
    ones = np.ones_like(measured.rmse)
    twin = None if measured.twin is None else np.ones_like(measured.twin)
    return replace(measured, rmse=ones, twin=twin, ranked=dict.fromkeys(measured.ranked, ones), missing=0)


def _figures(experiment: Experiment) -> dict[str, Shown]:
    found: dict[str, Shown] = {}
    level = unswept(experiment)
    drawable, with_errors = any(map(is_drawable, level)), has_error_cdf(experiment)
    title = title_of(experiment, level)
    if drawable:
        found["curves"] = Shown(lambda: [curves_chart(experiment)], partial(curves_figure, title))
    if drawable and with_errors:
        found["error_cdf"] = Shown(lambda: [error_chart(experiment)], partial(error_figure, title))
    above = title_of(experiment, [each for each in experiment.curves if each.swept])
    for parameter in swept_parameters(experiment):
        draw = partial(sweep_figure, above)
        found[f"sweep-{parameter}"] = Shown(partial(sweep_charts, experiment, parameter), draw)
        if with_errors:
            charts = partial(swept_error_charts, experiment, parameter)
            found[f"error_cdf-{parameter}"] = Shown(charts, draw)
    if growth_lines(experiment):
        found["growth"] = Shown(lambda: [growth_chart(experiment)], partial(growth_figure, title, experiment))
    return found


def _charts(whole: Experiment) -> list[Chart]:
    experiment = legible(whole)
    figures = _figures(experiment)
    # A single ε is a point, not a curve: the table has it, and charts of sweeps show it as a level.
    if all(len(curve.epsilons) == 1 for curve in unswept(experiment)):
        figures.pop("curves", None)
    figures |= {name: figures.pop(name) for name in ("error_cdf", "growth") if name in figures}
    charts = [chart for shown in figures.values() for chart in shown.charts()]
    if experiment is whole:
        return charts
    note = f"Shown: {experiment.title.removeprefix(whole.title + ', ')}; all are in curves.csv."
    return [replace(chart, notes=(note, *chart.notes)) for chart in charts]

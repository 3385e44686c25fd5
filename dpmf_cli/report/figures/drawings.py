"""All figures of an experiment: their files and how matplotlib draws them, and the charts of its page."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.privacy.protection import GUARANTEES
from dpmf_cli.report.figures.chart import Chart, Level, Line, epsilon_ticks, spread
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
from dpmf_cli.report.figures.shown import is_drawable, legible, parts_of, title_of
from dpmf_cli.report.figures.style import DASHES, GREY, GREY_LEVEL, MARKER_SIZE, MARKERS, file_of, new_figure

# Points, and how many characters of that size fill a line of the figure.
_TITLE_SIZE, _TITLE_CHARACTERS = 10.8, 72
_NOTE_SIZE, _NOTE_CHARACTERS = 7.0, 120
_TEXT_SIZE = 9.0
_OFFSET = 0.18
"""The distance of labels from the axes, in inches."""

_COUNT = FuncFormatter(lambda tick, _: f"{tick / 1e6:g} M" if abs(tick) >= 1e6 else f"{tick:,.0f}")


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
    complete = experiment.changed(lambda found: map(_filled, found))
    drawn = drawings(complete)
    for name in _figures(legible(complete)):
        names = (name, *(f"{name}_{guarantee.key}" for guarantee in GUARANTEES))
        yield from (each for each in names if each not in drawn)


def _filled(measured: Measured) -> Measured:
    """Returns a measurement with made-up results where results are missing; use it only for names of figures."""
    if is_complete(measured):
        return measured
    return replace(measured.changed(np.ones_like), missing=0)


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


@dataclass(frozen=True)
class End:
    """The end of a drawn line, to be labelled there; `x` and `y` are data coordinates; `y` is NaN if diverged."""

    text: str
    colour: str
    x: float
    y: float


def draw_chart(axes: Axes, chart: Chart) -> list[End]:
    """Draws the lines and levels of a chart into axes, and returns their ends, to be labelled.

    Over ε or θ the axes have the limits of the chart, and labels say how high levels are, and which lines end above.
    Other axes have the limits that matplotlib chooses.
    """
    if chart.log:
        set_scale(axes, chart)
    ends = []
    for each in chart.series:
        if isinstance(each, Line):
            draw_line(axes, each)
            above = chart.log and not each.y[-1] <= chart.limits[1]
            ends.append(End(each.name + " ↑" * above, each.look.hue, float(each.x[-1]), float(each.y[-1])))
        elif each.labelled:
            ends.append(draw_level(axes, each, over_epsilon=chart.log))
        else:
            draw_level(axes, each, over_epsilon=chart.log)
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)
    axes.spines[["top", "right"]].set_visible(False)
    edge = axes.get_xlim()[1]
    axes.set_ylim(axes.get_ylim())  # later drawing, such as labels, must not move the lines
    return [End(end.text, end.colour, edge if np.isnan(end.x) else end.x, end.y) for end in ends]


def set_scale(axes: Axes, chart: Chart) -> None:
    """Sets the limits of both axes, and the ticks of ε or θ."""
    smallest = min(float(line.x[0]) for line in chart.lines)
    largest = max(float(line.x[-1]) for line in chart.lines)
    pad = (largest / smallest) ** 0.02 if largest > smallest else 2.0
    axes.set_xscale("log")
    axes.set_xlim(smallest / pad, largest * pad)
    axes.xaxis.set_major_locator(FixedLocator(epsilon_ticks(smallest / pad, largest * pad)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(*chart.limits)


def draw_level(axes: Axes, level: Level, *, over_epsilon: bool) -> End:
    """Draws a level, with its marker at both ends if it has one; returns its end, whose x is NaN."""
    width = 0.7 if over_epsilon and level.look == GREY_LEVEL else 0.8
    axes.axhline(level.y, color=level.look.hue, linewidth=width, linestyle=DASHES[level.dash], zorder=1)
    if level.labelled and level.look.marker is not None:
        axes.plot(
            [0, 1], [level.y] * 2, MARKERS[level.look.marker], color=level.look.hue, clip_on=False,
            markersize=MARKER_SIZE, transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    return End(f"{level.name} {level.y:.3f}" if over_epsilon else level.name, level.look.hue, np.nan, level.y)


def draw_line(axes: Axes, line: Line, *, marked_every: int | None = None) -> Line2D:
    """Draws a line with its band and its crossings."""
    colour = line.look.hue
    if line.low is not None and line.high is not None:
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    (drawn,) = axes.plot(
        line.x, line.y, color=colour, linestyle=DASHES[line.dash], linewidth=1.0 if colour == GREY else 1.6,
        marker=MARKERS[line.look.marker or 0], markersize=MARKER_SIZE, markevery=marked_every,
    )  # fmt: skip
    for x, y in line.marks:
        axes.plot([x], [y], "o", markersize=6, markerfacecolor="white", markeredgecolor=colour, zorder=4)
    return drawn


def set_title(axes: Axes, title: str) -> None:
    """Writes a title above the axes; a long one gets smaller letters."""
    size = min(_TITLE_SIZE, _TITLE_SIZE * _TITLE_CHARACTERS / len(title))
    axes.set_title(title, loc="left", fontsize=size, parse_math=False)


def label_width(figure: Figure, ends: Sequence[End], size: float = _TEXT_SIZE) -> float:
    """Returns the width of the widest label, in inches."""
    texts = [figure.text(0, 0, end.text, parse_math=False) for end in ends]
    width = max(float(text.get_window_extent().width) for text in texts) / figure.dpi
    for text in texts:
        text.remove()
    return size / _TEXT_SIZE * width


def place(
    axes: Axes, ends: Sequence[End], left: float, bottom: float, width: float, height: float,
    *, gap: float, offset: float = _OFFSET, size: float = _TEXT_SIZE,
) -> None:  # fmt: skip
    """Puts axes at a place, and the labels in a column to their right, tied to their lines.

    All lengths are in inches; labels are at least `gap` apart.
    """
    whole_width, whole_height = axes.figure.get_size_inches()  # type: ignore[union-attr]
    axes.set_position((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))
    to_axes = axes.transData + axes.transAxes.inverted()
    points = np.array([to_axes.transform((end.x, end.y)) for end in ends])
    heights = [min(float(y), 1.0) if np.isfinite(y) else 1.0 for y in points[:, 1]]
    edge = offset / width
    for end, x, y, label in zip(
        ends, points[:, 0], heights, spread(heights, gap / height, 0.0, 1.0), strict=True
    ):
        axes.plot(
            [x, 1 + edge * 0.8], [y, label], transform=axes.transAxes, color=end.colour, linewidth=0.7,
            alpha=0.7, clip_on=False, zorder=0,
        )  # fmt: skip
        axes.text(
            1 + edge, label, end.text, transform=axes.transAxes, va="center", color=end.colour,
            fontsize=size, parse_math=False,
        )  # fmt: skip


def curves_figure(title: str, chart: Chart) -> Figure:
    """Draws a chart over ε or θ with its notes. The figure is as tall as its labels and notes need."""
    across, left, top, gap = 7.0, 0.65, 0.4, 0.16
    figure = new_figure(across, 4.6)
    axes = figure.add_axes((0.1, 0.2, 0.7, 0.7))
    ends = draw_chart(axes, chart)
    set_title(axes, title)
    own = [note for note in chart.notes[:1] if note.startswith("Bands")]  # on a line of its own
    notes = [*own, *textwrap.wrap(" ".join(chart.notes[len(own) :]), _NOTE_CHARACTERS)]
    bottom = 0.6 + 0.145 * len(notes)
    figure.text(
        0.012, 0.012, "\n".join(notes), fontsize=_NOTE_SIZE, color=GREY, va="bottom", parse_math=False
    )
    width = across - left - _OFFSET - label_width(figure, ends) - 0.1
    height = max(4.6 - top - bottom, gap * (len(ends) - 1))
    figure.set_size_inches(across, height + top + bottom)
    place(axes, ends, left, bottom, width, height, gap=gap)
    return figure


def sweep_figure(title: str, *charts: Chart) -> Figure:
    """Draws charts over a swept parameter, one above the other."""
    across, tall, left, top, bottom = 7.6, 3.3, 0.75, 0.4, 0.7
    whole = top + len(charts) * (tall + bottom)
    figure = new_figure(across, whole)
    panels = [figure.add_axes((0.1, 0.1, 0.5, 0.5)) for _ in charts]
    ends = [draw_chart(axes, chart) for axes, chart in zip(panels, charts, strict=True)]
    width = across - left - _OFFSET - max(label_width(figure, each) for each in ends) - 0.1
    for rank, axes in enumerate(panels):
        below = whole - top - tall - rank * (tall + bottom)
        place(axes, ends[rank], left, below, width, tall, gap=0.155)
    set_title(panels[0], title)
    figure.text(0.012, 0.012, charts[0].notes[0], fontsize=_NOTE_SIZE, color=GREY)
    return figure


def error_figure(title: str, chart: Chart) -> Figure:
    """Draws a distribution of errors, with a legend that has the lines from top to bottom."""
    figure = new_figure(7.6, 4.6)
    axes = figure.add_axes((0.09, 0.15, 0.5, 0.75))
    every = max(1, len(chart.lines[0].x) // 8)
    drawn = [draw_line(axes, line, marked_every=every) for line in chart.lines]
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)
    axes.spines[["top", "right"]].set_visible(False)
    taken = _legend(figure, drawn, [line.name for line in chart.lines], size=8)
    axes.set_position((0.09, 0.15, max(0.89 - taken, 0.3), 0.75))
    set_title(axes, title)
    note = "The legend lists the lines from top to bottom, by their average over x."
    figure.text(0.012, 0.012, note, fontsize=_NOTE_SIZE, color=GREY)
    return figure


def growth_figure(title: str, experiment: Experiment, chart: Chart) -> Figure:
    """Draws loss over the number of ratings.

    If ratings come by time, it draws loss over days, with the number of ratings on the right.
    """
    left, bottom, tall = 0.1, 0.16, 0.74
    figure = new_figure(7.0, 4.2)
    axes = figure.add_axes((left, bottom, 0.5, tall))
    portions = [stage.portion for stage in experiment.growth.stages] if experiment.growth else []
    days = np.array([np.nan if portion.days is None else portion.days for portion in portions])
    by_time = bool(np.isfinite(days).all())
    lines = growth_lines(experiment, days) if by_time else chart.lines
    drawn = [draw_line(axes, line) for line in lines]
    axes.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)
    axes.set_ylabel("loss: RMSE − RMSE without noise")
    axes.set_xlabel("days since the first rating" if by_time else "ratings")
    axes.xaxis.set_major_formatter(_COUNT)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(by_time)
    if by_time:
        right = axes.twinx()
        counts = [portion.ratings for portion in portions]
        right.plot(days, counts, color=GREY, linewidth=0.7, zorder=1)
        right.set_ylim(0, 1.05 * max(counts))
        right.set_ylabel("ratings so far (thin, grey)", color=GREY)
        right.tick_params(axis="y", colors=GREY)
        right.yaxis.set_major_formatter(_COUNT)
        right.spines["top"].set_visible(False)
    set_title(axes, title)
    # The legend follows the right ends of the lines from top to bottom, so that the eye finds them.
    falling = sorted(range(len(lines)), key=lambda rank: -lines[rank].y[-1])
    taken = _legend(figure, [drawn[rank] for rank in falling], [lines[rank].name for rank in falling])
    # Room for the scale on the right, or a gap without one; beside a long legend the axes stay wide enough to read.
    width = max(1 - left - taken - (0.14 if by_time else 0.02), 0.3)
    for each in figure.axes:
        each.set_position((left, bottom, width, tall))
    notes = chart.notes if experiment.folds > 1 else chart.notes[1:]  # without folds there are no bands
    below = "\n".join(textwrap.wrap(" ".join(notes), _NOTE_CHARACTERS))
    figure.text(0.012, 0.012, below, fontsize=_NOTE_SIZE, color=GREY)
    return figure


def _legend(figure: Figure, drawn: Sequence[Artist], names: Sequence[str], size: float = _TEXT_SIZE) -> float:
    """Writes the names of lines at the right edge, and returns their share of the figure's width."""
    legend = figure.legend(
        drawn, names, loc="center right", bbox_to_anchor=(1.0, 0.53), frameon=False, labelcolor="linecolor",
        fontsize=size,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return float(legend.get_window_extent().width / figure.dpi / figure.get_figwidth())

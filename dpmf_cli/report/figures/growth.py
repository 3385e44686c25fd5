"""What privacy costs while ratings accumulate: McSherry and Mironov 2009, figure 2."""

import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.figures.growth_csv import loss_of
from dpmf_cli.report.figures.looks import Look, looks
from dpmf_cli.report.figures.notes import meaning_of
from dpmf_cli.report.figures.shown import set_title
from dpmf_cli.report.figures.style import COLOURS, GREY, MARKER_SIZE, MARKERS, drawing, file_of

BANDS_NOTE = "Bands: 95 % bootstrap interval of the mean, paired by fold."
_NOTE_CHARACTERS = 120
# The size in inches. Then, as fractions of the figure: the margins left of the axes and below them, the height of the
# axes, the room for a scale on the right, the gap without one, and the least width of the axes beside a long legend.
_WIDTH, _HEIGHT = 7.0, 4.2
_LEFT, _BOTTOM, _TALL, _SCALE, _GAP, _NARROWEST = 0.1, 0.16, 0.74, 0.14, 0.02, 0.3


_COUNT = FuncFormatter(lambda tick, _: f"{tick / 1e6:g} M" if abs(tick) >= 1e6 else f"{tick:,.0f}")


@dataclass(frozen=True)
class GrowthLine:
    """One line of the figure: the loss of one curve at one ε, over the portions at which it is known.

    stages   (n,) numbers of the portions
    loss, low, high   (n,) rating units
    """

    label: str
    stages: NDArray[np.intp]
    loss: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def growth_lines(experiment: Experiment) -> list[GrowthLine]:
    """Returns the lines of a figure of the growth. Swept curves are left out, as in the figure of the curves."""
    stages = experiment.growth.stages if experiment.growth else ()
    sign = "θ" if experiment.axis == "theta" else "ε"
    lines = []
    for rank, curve in enumerate(experiment.curves):
        if curve.swept is not None or not stages:
            continue
        losses = [loss_of(experiment, stage.curves[rank]) for stage in stages]
        table = np.array([[loss.mean, loss.low, loss.high] for loss in losses])  # (stages, 3, E)
        grid = curve.along(experiment.axis)
        for at, place in enumerate(grid):
            known = np.flatnonzero(np.isfinite(table[:, 0, at]))
            if len(known):
                label = curve.label if len(grid) == 1 else f"{curve.label}, {sign} = {place:g}"
                lines.append(GrowthLine(label, known, *table[known, :, at].T))
    return lines


def growth_bytes(experiment: Experiment, form: str) -> bytes:
    """Draws the figure as PNG, SVG or PDF; the experiment must have `growth_lines`."""
    with drawing():
        return file_of(draw(experiment), form)


def draw(experiment: Experiment) -> Figure:
    """Draws loss over the number of ratings.

    If ratings come by time, it draws loss over days, with the number of ratings on the right.
    """
    figure = Figure(figsize=(_WIDTH, _HEIGHT))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((_LEFT, _BOTTOM, 0.5, _TALL))
    portions = [stage.portion for stage in experiment.growth.stages] if experiment.growth else []
    counts = np.array([portion.ratings for portion in portions], dtype=np.float64)
    days = np.array([np.nan if portion.days is None else portion.days for portion in portions])
    by_time = bool(np.isfinite(days).all())
    place = days if by_time else counts
    lines = growth_lines(experiment)
    drawn = [
        _draw_line(axes, line, place[line.stages], look)
        for line, look in zip(lines, looks(range(len(lines))), strict=True)
    ]
    axes.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)
    axes.set_ylabel("loss: RMSE − RMSE without noise")
    axes.set_xlabel("days since the first rating" if by_time else "ratings")
    axes.xaxis.set_major_formatter(_COUNT)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(by_time)
    if by_time:
        _draw_ratings(axes, days, counts)
    set_title(axes, experiment, [curve for curve in experiment.curves if curve.swept is None])
    # The legend follows the right ends of the lines from top to bottom, so that the eye finds them.
    falling = sorted(range(len(lines)), key=lambda rank: -lines[rank].loss[-1])
    legend = figure.legend(
        [drawn[rank] for rank in falling],
        [lines[rank].label for rank in falling],
        loc="center right",
        bbox_to_anchor=(1.0, 0.53),
        frameon=False,
        labelcolor="linecolor",
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    taken = legend.get_window_extent().width / figure.dpi / _WIDTH
    width = max(1 - _LEFT - taken - (_SCALE if by_time else _GAP), _NARROWEST)
    for each in figure.axes:
        each.set_position((_LEFT, _BOTTOM, width, _TALL))
    bands = [BANDS_NOTE] if experiment.folds > 1 else []
    notes = [*bands, *meaning_of(experiment.curves, experiment.axis)]
    lines_below = "\n".join(textwrap.wrap(" ".join(notes), _NOTE_CHARACTERS))
    figure.text(0.012, 0.012, lines_below, fontsize=7, color=GREY)
    return figure


def _draw_line(axes: Axes, line: GrowthLine, x: NDArray[np.float64], look: Look) -> Line2D:
    colour = COLOURS[look.colour]
    axes.fill_between(x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    (drawn,) = axes.plot(
        x, line.loss, color=colour, linewidth=1.6, marker=MARKERS[look.marker], markersize=MARKER_SIZE
    )
    return drawn


def _draw_ratings(axes: Axes, days: NDArray[np.float64], counts: NDArray[np.float64]) -> None:
    """Draws the number of ratings so far on an axis of its own, on the right, thin and grey."""
    right = axes.twinx()
    right.plot(days, counts, color=GREY, linewidth=0.7, zorder=1)
    right.set_ylim(0, 1.05 * counts.max())
    right.set_ylabel("ratings so far (thin, grey)", color=GREY)
    right.tick_params(axis="y", colors=GREY)
    right.yaxis.set_major_formatter(_COUNT)
    right.spines["top"].set_visible(False)

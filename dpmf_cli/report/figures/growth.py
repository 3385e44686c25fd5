"""What privacy costs while ratings accumulate: McSherry and Mironov 2009, figure 2, as a figure and as CSV.

The loss is the RMSE of an algorithm minus that of its twin without noise, on the same fold of the same ratings.
"""

import csv
import io
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from dpmf_cli.evaluation.crossings import curve_stream, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured, Stage
from dpmf_cli.evaluation.statistics import percentile_interval, replicate_means, sd_over_folds
from dpmf_cli.report.figures.curves_csv import exact
from dpmf_cli.report.figures.meaning import meaning_of
from dpmf_cli.report.figures.rmse_curves import COLOURS, METADATA, drawing, set_title

COLUMNS = (
    "label",
    "joint",
    "portion",
    "ratings",
    "users",
    "days",
    "epsilon",
    "theta",
    "delta",
    "rmse",
    "sd_folds",
    "twin_rmse",
    "loss",
    "loss_sd",
    "loss_low",
    "loss_high",
)

_GREY = "#666666"
_NOTE_CHARACTERS = 120
# Inches; the rest in parts of the figure: what is left of the axes, below them, their height, the room for the scale
# on the right, or for none, and what is left of the axes beside a long legend.
_WIDTH, _HEIGHT = 7.0, 4.2
_LEFT, _BOTTOM, _TALL, _SCALE, _GAP, _NARROWEST = 0.1, 0.16, 0.74, 0.14, 0.02, 0.3


_COUNT = FuncFormatter(lambda tick, _: f"{tick / 1e6:g} M" if abs(tick) >= 1e6 else f"{tick:,.0f}")


@dataclass(frozen=True)
class Loss:
    """What the noise of a curve costs at each ε: (E,) each, in rating units, NaN where it is not known.

    sd          over folds and runs
    low, high   95 % interval of the mean, as that of a curve
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


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


def loss_of(experiment: Experiment, curve: Measured) -> Loss:
    """The loss of a curve, paired by fold with its twin."""
    twin = curve.without_noise()
    if twin is None or not is_complete(curve):
        return Loss(*np.full((4, len(curve.epsilons)), np.nan))
    loss = curve.rmse - twin.rmse
    loss[:, :, ~np.isfinite(loss).all(axis=(0, 1))] = np.nan
    drawn = replicate_means(loss, rng=curve_stream(experiment, curve), partition=experiment.partition)
    ends = percentile_interval(drawn.curves) if drawn.over != "none" else np.full((2, loss.shape[2]), np.nan)
    cells = loss.shape[0] * loss.shape[1]
    sd = loss.std(axis=(0, 1), ddof=1) if cells > 1 else np.full(loss.shape[2], np.nan)
    return Loss(loss.mean(axis=(0, 1)), sd, *ends)


def growth_csv(experiment: Experiment) -> str:
    """A row per portion, curve and ε, then the baselines of that portion; columns `COLUMNS`, lines end in \\n.

    `rmse` is the mean over folds and runs, `sd_folds` its standard deviation over folds; `twin_rmse` that of the
    algorithm without noise; the loss is as in `Loss`. What is not known is empty.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for stage in experiment.growth.stages if experiment.growth else ():
        for measured in (*stage.curves, *stage.baselines):
            writer.writerows(_rows(experiment, stage, measured))
    return stream.getvalue()


def _rows(experiment: Experiment, stage: Stage, measured: Measured) -> Iterator[list[str]]:
    portion, points = stage.portion, len(measured.epsilons)
    rmse, sd = np.full((2, points), np.nan)
    if is_complete(measured):
        with np.errstate(invalid="ignore"):
            rmse, sd = measured.mean(), sd_over_folds(measured.rmse)
    twin = np.nan if measured.twin is None else float(measured.twin.mean())
    thetas = np.full(points, np.nan) if measured.thetas is None else measured.thetas
    loss = loss_of(experiment, measured)
    days = "" if portion.days is None else exact(portion.days)
    head = [
        measured.label,
        str(measured.joint).lower(),
        exact(portion.share),
        str(portion.ratings),
        str(portion.users),
        days,
    ]
    for at in range(points):
        numbers = [measured.epsilons[at], thetas[at], measured.delta, rmse[at], sd[at], twin]
        yield [*head, *map(exact, [*numbers, loss.mean[at], loss.sd[at], loss.low[at], loss.high[at]])]


def growth_lines(experiment: Experiment) -> list[GrowthLine]:
    """What a figure of the growth can show; swept curves are left out, as in the figure of the curves."""
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
    """The figure as PNG, SVG or PDF; the experiment has `growth_lines`."""
    buffer = io.BytesIO()
    with drawing():
        draw(experiment).savefig(buffer, format=form, dpi=150, metadata=METADATA[form])
    return buffer.getvalue()


def draw(experiment: Experiment) -> Figure:
    """Loss over the number of ratings; where they come by time, over days, and their number on the right."""
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
        _draw_line(axes, line, place[line.stages], COLOURS[rank % len(COLOURS)])
        for rank, line in enumerate(lines)
    ]
    axes.axhline(0.0, color=_GREY, linewidth=0.7, zorder=1)
    axes.set_ylabel("loss: RMSE − RMSE without noise")
    axes.set_xlabel("days since the first rating" if by_time else "ratings")
    axes.xaxis.set_major_formatter(_COUNT)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(by_time)
    if by_time:
        _draw_ratings(axes, days, counts)
    set_title(axes, experiment, [curve for curve in experiment.curves if curve.swept is None])
    # In the order of the lines' ends, from above, so that the eye finds them.
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
    bands = ["Bands: 95 % bootstrap interval of the mean, paired by fold."] if experiment.folds > 1 else []
    notes = [*bands, *meaning_of(experiment.curves, experiment.axis)]
    lines_below = "\n".join(textwrap.wrap(" ".join(notes), _NOTE_CHARACTERS))
    figure.text(0.012, 0.012, lines_below, fontsize=7, color=_GREY)
    return figure


def _draw_line(axes: Axes, line: GrowthLine, x: NDArray[np.float64], colour: str) -> Line2D:
    axes.fill_between(x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    (drawn,) = axes.plot(x, line.loss, color=colour, linewidth=1.6, marker="o", markersize=3)
    return drawn


def _draw_ratings(axes: Axes, days: NDArray[np.float64], counts: NDArray[np.float64]) -> None:
    """The number of ratings so far on an axis of its own, on the right, dotted and grey."""
    right = axes.twinx()
    right.plot(days, counts, ":", color=_GREY, linewidth=1.2, zorder=1)
    right.set_ylim(0, 1.05 * counts.max())
    right.set_ylabel("ratings so far (dotted)", color=_GREY)
    right.tick_params(axis="y", colors=_GREY)
    right.yaxis.set_major_formatter(_COUNT)
    right.spines["top"].set_visible(False)

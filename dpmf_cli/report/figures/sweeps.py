"""Figures of sweeps: RMSE over another parameter than ε, as in Friedman et al. 2016, figure 6, and Zhang et al. 2018,
figures 2 and 4. Entries without a sweep are level lines."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.levels import band
from dpmf_cli.report.figures.labels import End, label_ends, label_width
from dpmf_cli.report.figures.legible import MOST_LINES
from dpmf_cli.report.figures.looks import Look, looks
from dpmf_cli.report.figures.shown import is_drawable, level_names, set_title
from dpmf_cli.report.figures.style import COLOURS, DASHES, GREY, MARKER_SIZE, MARKERS, Dash, drawing, file_of

Band = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""(E,) each: the mean, and the lower and the upper end of its band."""
Quantity = Callable[[Measured], Band]

SWEPT_NOTE = "Bands: 95 % bootstrap interval of the mean. Level: not swept."

# Inches.
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 7.6, 4.4, 0.75, 0.4, 0.7
_LABEL_GAP, _LABEL_OFFSET = 0.155, 0.18
_MOST_LEVELS = 3
"""If a curve without a sweep has more ε than this, only its largest ε is drawn."""


@dataclass
class SweptLine:
    """One line of the figure. `points` are (value, mean, low, high); a level has one point, with NaN as its value.

    look   None for a baseline without a sweep: it is grey, with its name beside it
    dash   says whether the line is without noise
    """

    name: str
    look: Look | None
    dash: Dash
    level: bool
    points: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def colour(self) -> str:
        return GREY if self.look is None else COLOURS[self.look.colour]


def swept_parameters(experiment: Experiment) -> list[str]:
    """Returns the parameters that sweeps of the experiment vary; each is the axis of a figure."""
    return list(dict.fromkeys(each.swept[0] for each in _drawable(experiment) if each.swept))


def sweep_bytes(experiment: Experiment, parameter: str, form: str) -> bytes:
    """Draws RMSE, or the metric that is shown, over a swept parameter, as PNG, SVG or PDF.

    Each entry has a line for each ε (or θ) of its grid that is shown.
    """
    lines = swept_means(experiment, parameter)
    return panels_bytes(experiment, parameter, [(experiment.metric.title, lines)], SWEPT_NOTE, form)


def swept_means(experiment: Experiment, parameter: str) -> list[SweptLine]:
    """Returns the lines of the figure of RMSE, or of the metric that is shown, over a swept parameter."""
    return swept_lines(experiment, parameter, lambda each: (each.mean(), *band(experiment, each)))


def swept_lines(experiment: Experiment, parameter: str, quantity: Quantity) -> list[SweptLine]:
    """Returns the lines of a figure of a quantity over `parameter`, swept lines first. No two lines share a look."""
    drawable = [each for each in _drawable(experiment) if each.swept is None or each.swept[0] == parameter]
    swept = [each for each in drawable if each.swept]
    level = [each for each in drawable if not each.swept]
    shown = _shown_places(experiment, swept)
    sign = "θ" if experiment.axis == "theta" else "ε"
    called = level_names(experiment)
    lines: dict[tuple[str, str, float], SweptLine] = {}
    told_apart: dict[tuple[str, str, float], None] = {}
    for measured in (*swept, *level):
        mean, low, high = quantity(measured)
        grid = measured.along(experiment.axis).tolist()
        grey = not measured.swept and measured.is_baseline
        dash = Dash.MEASURED if measured.is_baseline or np.isfinite(grid[0]) else Dash.NO_NOISE
        name = called[measured.label] if grey else _key(measured)[1]
        for at, place in enumerate(grid):
            cut = place not in shown if measured.swept else len(grid) > _MOST_LEVELS and at < len(grid) - 1
            if np.isfinite(place) and cut:
                continue
            ending = f", {sign} = {place:g}" if np.isfinite(place) else ", no noise" * (dash == Dash.NO_NOISE)
            key = (*_key(measured), place)
            line = lines.setdefault(key, SweptLine(name + ending, None, dash, not measured.swept))
            if not grey:
                told_apart[key] = None
            value = measured.swept[1] if measured.swept else np.nan
            line.points.append((value, float(mean[at]), float(low[at]), float(high[at])))
    # A single entry has a colour for each ε; of several entries, each has one colour.
    alone = len({_key(each) for each in swept}) == 1
    for key, look in zip(
        told_apart, looks([key[2] if alone else key[:2] for key in told_apart]), strict=True
    ):
        lines[key].look = look
    return list(lines.values())


def _shown_places(experiment: Experiment, swept: Sequence[Measured]) -> set[float]:
    """Returns the ε (or θ) at which swept entries are drawn: from end to end, as many as `MOST_LINES` allows.

    Each is one that every value of an entry has; other ε were added where only one value crosses a baseline.
    """
    values = Counter(_key(each) for each in swept)
    points = Counter((_key(each), float(place)) for each in swept for place in each.along(experiment.axis))
    places = sorted({place for (key, place), n in points.items() if n == values[key] and np.isfinite(place)})
    room = max(MOST_LINES // max(len({_key(each) for each in swept}), 1), 1)
    chosen = np.linspace(len(places) - 1, 0, min(room, len(places))).round().astype(int)
    return {places[at] for at in chosen}


def panels_bytes(
    experiment: Experiment,
    parameter: str,
    panels: Sequence[tuple[str, Sequence[SweptLine]]],
    note: str,
    form: str,
) -> bytes:
    """Draws panels one above the other over a swept parameter, as PNG, SVG or PDF; each is (y axis name, lines)."""
    tall = _HEIGHT - _TOP - _BOTTOM
    whole = _TOP + len(panels) * (tall + _BOTTOM)
    figure = Figure(figsize=(_WIDTH, whole))
    FigureCanvasAgg(figure)
    with drawing():
        drawn = []
        for rank, (name, lines) in enumerate(panels):
            axes = figure.add_axes((0.1, 0.1, 0.5, 0.5))
            drawn.append((axes, draw_lines(axes, lines), whole - _TOP - tall - rank * (tall + _BOTTOM)))
            axes.set_xlabel(parameter)
            axes.set_ylabel(name)
        width = _WIDTH - _LEFT - _LABEL_OFFSET - max(label_width(figure, ends) for _, ends, _ in drawn) - 0.1
        for axes, ends, bottom in drawn:
            axes.set_position((_LEFT / _WIDTH, bottom / whole, width / _WIDTH, tall / whole))
            label_ends(axes, ends, gap=_LABEL_GAP / tall, offset=_LABEL_OFFSET / width)
        set_title(drawn[0][0], experiment, [each for each in experiment.curves if each.swept])
        figure.text(0.012, 0.012, note, fontsize=7, color=GREY)
        return file_of(figure, form)


def draw_lines(axes: Axes, lines: Sequence[SweptLine]) -> list[End]:
    """Draws swept lines with their bands, and levels across the axes; returns the ends, to be labelled."""
    ends = []
    for line in lines:
        value, mean, low, high = np.array(sorted(line.points)).T
        if line.level:
            axes.axhline(mean[0], color=line.colour, linewidth=0.8, linestyle=DASHES[line.dash], zorder=1)
            if line.look is not None:
                axes.plot(
                    [0, 1], [mean[0]] * 2, MARKERS[line.look.marker], color=line.colour, clip_on=False,
                    markersize=MARKER_SIZE, transform=axes.get_yaxis_transform(),
                )  # fmt: skip
        else:
            axes.fill_between(value, low, high, color=line.colour, alpha=0.18, linewidth=0)
            marker = None if line.look is None else MARKERS[line.look.marker]
            axes.plot(
                value, mean, color=line.colour, linestyle=DASHES[line.dash], linewidth=1.6, marker=marker,
                markersize=MARKER_SIZE,
            )  # fmt: skip
        ends.append(End(line.name, line.colour, np.nan if line.level else float(value[-1]), float(mean[-1])))
    axes.spines[["top", "right"]].set_visible(False)
    edge = axes.get_xlim()[1]
    axes.set_ylim(axes.get_ylim())  # later drawing, such as labels, must not move the lines
    return [End(end.text, end.colour, edge if np.isnan(end.x) else end.x, end.y) for end in ends]


def _key(measured: Measured) -> tuple[str, str]:
    return measured.algorithm, measured.line or measured.algorithm.upper()


def _drawable(experiment: Experiment) -> list[Measured]:
    """Returns all complete measurements, twins without noise included."""
    found = []
    for each in (*experiment.curves, *experiment.baselines):
        twin = each.without_noise()
        found += [measured for measured in (each, twin) if measured is not None and is_drawable(measured)]
    return found

"""Figures of sweeps: RMSE over another parameter than ε, as Friedman et al. 2016, figure 6, and Zhang et al. 2018,
figures 2 and 4. What is not swept stands beside it as level lines."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.report.figures.curves_csv import band
from dpmf_cli.report.figures.labels import End, label_ends, label_width
from dpmf_cli.report.figures.shown import is_drawable, level_names, set_title
from dpmf_cli.report.figures.style import COLOURS, DASHES, GREY, drawing, file_of

Band = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""(E,) each: mean, and the lower and upper end of the band around it."""
Quantity = Callable[[Measured], Band]

SWEPT_NOTE = "Bands: 95 % bootstrap interval of the mean. Level: not swept."

# Inches.
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 7.6, 4.4, 0.75, 0.4, 0.7
_LABEL_GAP, _LABEL_OFFSET = 0.155, 0.18
_MOST_LEVELS = 3
"""A curve that is not swept is drawn at its largest ε alone, where its grid has more ε than this."""


@dataclass
class SweptLine:
    """One line of the figure. `points` are (value, mean, low, high); of a level the one point has no value (NaN)."""

    name: str
    colour: str
    dashes: str
    level: bool
    points: list[tuple[float, float, float, float]] = field(default_factory=list)


def swept_parameters(experiment: Experiment) -> list[str]:
    """The parameters that sweeps of the experiment vary, each of them the axis of a figure."""
    return list(dict.fromkeys(each.swept[0] for each in _drawable(experiment) if each.swept))


def sweep_bytes(experiment: Experiment, parameter: str, form: str) -> bytes:
    """RMSE over a swept parameter, as PNG, SVG or PDF: a line for each entry and each ε (or θ) of its grid."""
    lines = swept_rmse(experiment, parameter)
    return panels_bytes(experiment, parameter, [("RMSE", lines)], SWEPT_NOTE, form)


def swept_rmse(experiment: Experiment, parameter: str) -> list[SweptLine]:
    """The lines of the figure of RMSE over a swept parameter."""
    return swept_lines(experiment, parameter, lambda each: (each.mean(), *band(experiment, each)))


def swept_lines(experiment: Experiment, parameter: str, quantity: Quantity) -> list[SweptLine]:
    """What a figure over `parameter` shows of each thing measured, swept lines first."""
    lines: dict[tuple[str, str, float], SweptLine] = {}
    drawable = [each for each in _drawable(experiment) if each.swept is None or each.swept[0] == parameter]
    swept = [each for each in drawable if each.swept]
    level = [each for each in drawable if not each.swept]
    names = dict.fromkeys(_key(each) for each in (*swept, *level) if each.swept or not each.is_baseline)
    turns = {name: turn for turn, name in enumerate(names)}
    of_swept = {_key(each) for each in swept}
    places = sorted({p for each in drawable for p in each.along(experiment.axis).tolist()}, reverse=True)
    ranks = {place: rank for rank, place in enumerate(place for place in places if np.isfinite(place))}
    called = level_names(experiment)
    points = Counter((_key(each), place) for each in swept for place in each.along(experiment.axis).tolist())
    values = Counter(key for key, _ in {(_key(each), each.swept) for each in swept})
    for measured in (*swept, *level):
        mean, low, high = quantity(measured)
        grid = measured.along(experiment.axis).tolist()
        for at, place in enumerate(grid):
            if measured.swept and points[_key(measured), place] < values[_key(measured)]:
                continue  # added where this value alone crosses a baseline
            if not measured.swept and len(grid) > _MOST_LEVELS and at < len(grid) - 1:
                continue
            rank = ranks.get(place, 0)
            if not measured.swept and measured.is_baseline:
                colour, dashes, name = GREY, DASHES[0], called[measured.label]
            else:
                name, dashes = _key(measured)[1], DASHES[rank % len(DASHES)]
                # One line alone has a colour for each ε; several have one each, and the ε are dashes.
                turn, dashes = (rank, DASHES[0]) if len(of_swept) == 1 else (turns[_key(measured)], dashes)
                colour = COLOURS[turn % len(COLOURS)]
                if np.isfinite(place):
                    name += f", {'θ' if experiment.axis == 'theta' else 'ε'} = {place:g}"
                elif not measured.is_baseline:
                    name += ", no noise"
            line = lines.setdefault(
                (*_key(measured), place), SweptLine(name, colour, dashes, not measured.swept)
            )
            value = measured.swept[1] if measured.swept else np.nan
            line.points.append((value, float(mean[at]), float(low[at]), float(high[at])))
    return list(lines.values())


def panels_bytes(
    experiment: Experiment,
    parameter: str,
    panels: Sequence[tuple[str, Sequence[SweptLine]]],
    note: str,
    form: str,
) -> bytes:
    """Panels one above the other, each (name of its y axis, lines), over one swept parameter, as PNG, SVG or PDF."""
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
    """Draws swept lines with their bands, and levels across the axes; the ends are to be labelled."""
    ends = []
    for line in lines:
        value, mean, low, high = np.array(sorted(line.points)).T
        if line.level:
            axes.axhline(mean[0], color=line.colour, linewidth=0.8, linestyle=line.dashes, zorder=1)
        else:
            axes.fill_between(value, low, high, color=line.colour, alpha=0.18, linewidth=0)
            axes.plot(value, mean, line.dashes, color=line.colour, linewidth=1.6, marker="o", markersize=3)
        ends.append(End(line.name, line.colour, np.nan if line.level else float(value[-1]), float(mean[-1])))
    axes.spines[["top", "right"]].set_visible(False)
    edge = axes.get_xlim()[1]
    return [End(end.text, end.colour, edge if np.isnan(end.x) else end.x, end.y) for end in ends]


def _key(measured: Measured) -> tuple[str, str]:
    return measured.algorithm, measured.line or measured.algorithm.upper()


def _drawable(experiment: Experiment) -> list[Measured]:
    """All complete measurements, those without noise among them."""
    found = []
    for each in (*experiment.curves, *experiment.baselines):
        twin = each.without_noise()
        found += [measured for measured in (each, twin) if measured is not None and is_drawable(measured)]
    return found

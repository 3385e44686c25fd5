"""The figure of an experiment: RMSE, or another metric, over ε as in Friedman et al.'s figures 2 and 4, or over θ as
in McSherry and Mironov's figure 1.

Each algorithm is a line with its 95 % band and a label at its end. Baselines and printed references are thin
horizontal lines, crossings are open markers, and fits without noise are dashed lines in their algorithm's colour.
"""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from dpmf_cli.evaluation.levels import band
from dpmf_cli.report.figures.axes import scale_axes
from dpmf_cli.report.figures.labels import End, label_ends, label_width
from dpmf_cli.report.figures.looks import Look
from dpmf_cli.report.figures.notes import notes_of
from dpmf_cli.report.figures.panels import refuse_mixed
from dpmf_cli.report.figures.shown import (
    crossing_points,
    is_drawable,
    level_names,
    level_of,
    set_title,
    with_looks,
)
from dpmf_cli.report.figures.style import (
    COLOURS,
    DASHES,
    GREY,
    MARKER_SIZE,
    MARKERS,
    Dash,
    check_form,
    drawing,
    file_of,
)

# Inches.
_WIDTH, _HEIGHT, _LEFT, _TOP = 7.0, 4.6, 0.65, 0.4
_LABEL_GAP, _LABEL_OFFSET = 0.16, 0.18
_NOTE_LINE = 0.145
# Points, and how many characters of that size fill a line of the figure.
_NOTE_SIZE, _NOTE_CHARACTERS = 7.0, 120


def rmse_curves_bytes(
    experiment: Experiment,
    form: str = "png",
    *,
    neighbours: str | None = None,
    mode: str | None = None,
    dpi: int = 150,
) -> bytes:
    """Draws all curves, or those with the given neighbours and mode, as PNG, SVG or PDF.

    Incomplete curves and baselines are named below the figure and not drawn. Raises `DpmfError` for an
    unknown format, for curves with different guarantees, and if there is no complete curve to draw.
    """
    check_form(form)
    chosen = [
        curve
        for curve in experiment.curves
        if curve.swept is None and neighbours in (None, curve.neighbours) and mode in (None, curve.mode)
    ]
    if not any(is_drawable(curve) for curve in chosen):
        raise DpmfError(f"{experiment.name}: no complete curve to plot; finish it with `dpmf run`")
    with drawing():
        return file_of(draw(experiment, chosen), form, dpi=dpi)


def draw(experiment: Experiment, chosen: Sequence[Measured]) -> Figure:
    """Draws the `chosen` curves of `experiment`, at least one of them complete, in whatever style is set.

    Raises `DpmfError` for curves with different guarantees.
    """
    refuse_mixed(chosen)
    figure = Figure(figsize=(_WIDTH, _HEIGHT))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.2, 0.7, 0.7))
    complete = [curve for curve in chosen if is_complete(curve)]
    baselines = [each for each in experiment.baselines if is_drawable(each) and each.swept is None]
    targets: list[Measured | Reference] = [*baselines, *experiment.references]
    scale_axes(axes, complete, [level_of(target) for target in targets], experiment.axis)

    names = level_names(experiment)
    ends = [draw_level(axes, target, names) for target in targets]
    for curve, look in with_looks(chosen):
        ends.append(draw_curve(axes, experiment, curve, look))
    set_title(axes, experiment, chosen)

    notes = _wrapped(notes_of(experiment, chosen, axes.get_ylim()[1]))
    bottom = 0.6 + _NOTE_LINE * len(notes)
    figure.text(
        0.012, 0.012, "\n".join(notes), fontsize=_NOTE_SIZE, color=GREY, va="bottom", parse_math=False
    )
    width = _WIDTH - _LEFT - _LABEL_OFFSET - label_width(figure, ends) - 0.1
    height = max(_HEIGHT - _TOP - bottom, _LABEL_GAP * (len(ends) - 1))  # taller where labels need it
    whole = height + _TOP + bottom
    figure.set_size_inches(_WIDTH, whole)
    axes.set_position((_LEFT / _WIDTH, bottom / whole, width / _WIDTH, height / whole))
    label_ends(axes, ends, gap=_LABEL_GAP / height, offset=_LABEL_OFFSET / width)
    return figure


def draw_level(axes: Axes, target: Measured | Reference, names: dict[str, str]) -> End:
    """Draws a baseline, by its name in `names`, or a printed reference as a thin level line."""
    level = level_of(target)
    if isinstance(target, Reference):
        axes.axhline(level, color=GREY, linewidth=0.7, linestyle=DASHES[Dash.PRINTED], zorder=1)
        name = target.name
    else:
        axes.axhline(level, color=GREY, linewidth=0.7, zorder=1)
        name = names[target.label]
    return End(f"{name} {level:.3f}", GREY, axes.get_xlim()[1], level)


def draw_curve(axes: Axes, experiment: Experiment, curve: Measured, look: Look, *, bands: bool = True) -> End:
    """Draws a complete curve with its crossings, its twin without noise if there is one, and its band if `bands`."""
    points, colour = curve.along(experiment.axis), COLOURS[look.colour]
    mean = np.where(np.isfinite(curve.mean()), curve.mean(), np.nan)
    if bands:
        axes.fill_between(points, *band(experiment, curve), color=colour, alpha=0.18, linewidth=0)
    axes.plot(points, mean, color=colour, linewidth=1.6, marker=MARKERS[look.marker], markersize=MARKER_SIZE)
    twin = curve.without_noise()
    if twin is not None:
        axes.axhline(level_of(twin), color=colour, linewidth=0.8, linestyle=DASHES[Dash.NO_NOISE], zorder=1)
    for x, y in crossing_points(experiment, curve):
        axes.plot([x], [y], "o", markersize=6, markerfacecolor="white", markeredgecolor=colour, zorder=4)
    above = not mean[-1] <= axes.get_ylim()[1]
    return End(f"{curve.label} ↑" if above else curve.label, colour, float(points[-1]), float(mean[-1]))


def _wrapped(notes: Sequence[str]) -> list[str]:
    """Returns the lines below the figure: the note on bands on its own line, the other notes filled."""
    own = [note for note in notes[:1] if note.startswith("Bands")]
    return [*own, *textwrap.wrap(" ".join(notes[len(own) :]), _NOTE_CHARACTERS)]

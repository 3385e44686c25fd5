"""The figure of an experiment: RMSE over ε, as Friedman et al.'s figures 2 and 4, or over θ, as McSherry and
Mironov's figure 1.

One line per algorithm with its 95 % band, baselines and printed references as thin horizontal lines, crossings as
open markers, and every line labelled at its end; fits without noise as dashed lines in their algorithm's colour.
Drawn with matplotlib's objects: no pyplot, no window, no global state but the style for the time of drawing. Equal
results give equal bytes.
"""

import io
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.evaluation.crossings import crossing_targets, is_complete, measure_crossing, target_name
from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from dpmf_cli.report.figures.axes import scale_axes
from dpmf_cli.report.figures.curves_csv import band
from dpmf_cli.report.figures.labels import spread
from dpmf_cli.report.figures.meaning import meaning_of
from dpmf_cli.report.figures.panels import refuse_mixed
from dpmf_cli.report.tables.crossings import NAMES

FORMATS = ("png", "svg", "pdf")

#: Okabe & Ito's palette, safe for colour-blind readers, without the yellow that fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: One per kind of neighbours and mode, and on again where the colours run out.
DASHES = ("-", "--", ":", "-.")
#: What the papers call the factorisations without noise.
CLEAN = {"als": "clean MF", **NAMES}
TWIN_DASHES = (0, (6, 4))
GREY = "#666666"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "svg.hashsalt": "dpmf",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}
#: Without matplotlib's version and the date, which would change the bytes.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}

# Inches.
_WIDTH, _HEIGHT, _LEFT, _TOP = 7.0, 4.6, 0.65, 0.4
_LABEL_GAP, _LABEL_OFFSET = 0.16, 0.18
_NOTE_LINE = 0.145
# Points, and how many characters of that size fill a line of the figure.
_TITLE_SIZE, _TITLE_CHARACTERS = 10.8, 72
_NOTE_SIZE, _NOTE_CHARACTERS = 7.0, 120


@dataclass(frozen=True)
class End:
    """The end of a drawn line, to be labelled there; `x` and `y` are data coordinates, `y` NaN if diverged."""

    text: str
    colour: str
    x: float
    y: float


@contextmanager
def drawing() -> Iterator[None]:
    """The style of all figures, for the time of drawing one."""
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a label may have letters that the font has not
        yield


def is_drawable(curve: Measured) -> bool:
    """Whether a figure can show what was measured: all its tasks have a result, and a model converged."""
    return is_complete(curve) and bool(np.isfinite(curve.mean()).any())


def figure_bytes(
    experiment: Experiment,
    form: str = "png",
    *,
    neighbours: str | None = None,
    mode: str | None = None,
    dpi: int = 150,
) -> bytes:
    """The figure as PNG, SVG or PDF, of all curves or of those with the given neighbours and mode.

    Incomplete curves and baselines are named below the figure and not drawn. Raises `DpmfError` for an
    unknown format, for curves whose ε protect different things, and where there is no complete curve to draw.
    """
    if form not in FORMATS:
        raise DpmfError(f'unknown figure format "{form}"{did_you_mean(form, FORMATS)}')
    chosen = [
        curve
        for curve in experiment.curves
        if curve.swept is None and neighbours in (None, curve.neighbours) and mode in (None, curve.mode)
    ]
    if not any(is_drawable(curve) for curve in chosen):
        raise DpmfError(f"{experiment.name}: no complete curve to plot; finish it with `dpmf run`")
    buffer = io.BytesIO()
    with drawing():
        draw(experiment, chosen).savefig(buffer, format=form, dpi=dpi, metadata=METADATA[form])
    return buffer.getvalue()


def draw(experiment: Experiment, chosen: Sequence[Measured]) -> Figure:
    """The figure of the `chosen` curves of `experiment`, one of them complete, in whatever style is set.

    Raises `DpmfError` for curves whose ε protect different things, or from different adversaries.
    """
    refuse_mixed(chosen)
    figure = Figure(figsize=(_WIDTH, _HEIGHT))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.2, 0.7, 0.7))
    complete = [curve for curve in chosen if is_complete(curve)]
    baselines = [each for each in experiment.baselines if is_drawable(each) and each.swept is None]
    targets: list[Measured | Reference] = [*baselines, *experiment.references]
    scale_axes(axes, complete, [level_of(target) for target in targets], experiment.axis)

    kinds = list(dict.fromkeys((curve.neighbours, curve.mode) for curve in chosen))
    names = level_names(experiment)
    ends = [draw_level(axes, target, names) for target in targets]
    for index, kind in enumerate(kinds):
        # Colours start anew with each kind: an algorithm run in both modes keeps its colour.
        for rank, curve in enumerate(curve for curve in chosen if (curve.neighbours, curve.mode) == kind):
            if is_complete(curve):
                turn, colour = divmod(rank, len(COLOURS))
                dashes = DASHES[(index + turn) % len(DASHES)]
                ends.append(draw_curve(axes, experiment, curve, COLOURS[colour], dashes))
    set_title(axes, experiment, chosen)

    notes = _wrapped(notes_of(experiment, chosen, axes.get_ylim()[1]))
    bottom = 0.6 + _NOTE_LINE * len(notes)
    figure.text(
        0.012, 0.012, "\n".join(notes), fontsize=_NOTE_SIZE, color=GREY, va="bottom", parse_math=False
    )
    width = _WIDTH - _LEFT - _LABEL_OFFSET - label_width(figure, ends) - 0.1
    height = _HEIGHT - _TOP - bottom
    axes.set_position((_LEFT / _WIDTH, bottom / _HEIGHT, width / _WIDTH, height / _HEIGHT))
    label_ends(axes, ends, gap=_LABEL_GAP / height, offset=_LABEL_OFFSET / width)
    return figure


def set_title(axes: Axes, experiment: Experiment, curves: Sequence[Measured]) -> None:
    """Say above the axes what was measured; a long title in smaller letters."""
    neighbours = dict.fromkeys(curve.neighbours for curve in curves)
    modes = dict.fromkeys(f"{curve.mode} mode" for curve in curves)
    folds = "1 fold" if experiment.folds == 1 else f"{experiment.folds} folds"
    runs = "1 run" if experiment.runs == 1 else f"{experiment.runs} runs"
    title = ", ".join([experiment.title, *neighbours, *modes, f"{folds} × {runs}"])
    size = min(_TITLE_SIZE, _TITLE_SIZE * _TITLE_CHARACTERS / len(title))
    axes.set_title(title, loc="left", fontsize=size, parse_math=False)


def level_of(target: Measured | Reference) -> float:
    """The RMSE of a baseline or of a printed reference."""
    return target.rmse if isinstance(target, Reference) else float(target.rmse[:, :, 0].mean())


def level_names(experiment: Experiment) -> dict[str, str]:
    """What figures call each baseline, by its label: as the papers do, and by its label where it has several."""
    keys = [baseline.algorithm for baseline in experiment.baselines]
    return {
        each.label: each.label
        if keys.count(each.algorithm) > 1
        else CLEAN.get(each.algorithm) or each.line or each.algorithm.upper()
        for each in experiment.baselines
    }


def draw_level(axes: Axes, target: Measured | Reference, names: dict[str, str]) -> End:
    """Draw a baseline or a printed reference as a thin level line, by its name in `names`."""
    level = level_of(target)
    if isinstance(target, Reference):
        axes.axhline(level, color=GREY, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        name = target.name
    else:
        axes.axhline(level, color=GREY, linewidth=0.7, zorder=1)
        name = names[target.label]
    return End(f"{name} {level:.3f}", GREY, axes.get_xlim()[1], level)


def draw_curve(
    axes: Axes, experiment: Experiment, curve: Measured, colour: str, dashes: str, *, bands: bool = True
) -> End:
    """Draw a complete curve with its band, unless it is to have no `bands`, its crossings, and its twin without noise
    where there is one."""
    points = curve.along(experiment.axis)
    mean = np.where(np.isfinite(curve.mean()), curve.mean(), np.nan)
    if bands:
        axes.fill_between(points, *band(experiment, curve), color=colour, alpha=0.18, linewidth=0)
    axes.plot(points, mean, dashes, color=colour, linewidth=1.6, marker="o", markersize=2.4)
    twin = curve.without_noise()
    if twin is not None:
        axes.axhline(level_of(twin), color=colour, linewidth=0.8, linestyle=TWIN_DASHES, zorder=1)
    for target in crossing_targets(experiment):
        crossing = measure_crossing(experiment, curve, target)
        x = crossing.theta if experiment.axis == "theta" else crossing.reproduced
        if x is not None:
            at = ([x], [level_of(target)])
            axes.plot(*at, "o", markersize=6, markerfacecolor="white", markeredgecolor=colour, zorder=4)
    above = not mean[-1] <= axes.get_ylim()[1]
    return End(f"{curve.label} ↑" if above else curve.label, colour, float(points[-1]), float(mean[-1]))


def notes_of(experiment: Experiment, chosen: Sequence[Measured], ceiling: float) -> list[str]:
    """What stands below the figure: what bands and markers mean, what is cut at `ceiling` and what is missing."""
    folds, runs, _ = chosen[0].rmse.shape
    if folds > 1:
        over = f"the {folds} folds, widened for their overlapping training sets"
    else:
        over = "the runs of the one fold"
    notes = [f"Bands: 95 % bootstrap interval of the mean over {over}."] if folds * runs > 1 else []
    if targets := crossing_targets(experiment):
        notes.append(f"Circles: crossings of {_and([target_name(target) for target in targets])}.")
    if experiment.references:
        notes.append("Dotted: printed errors, not measured.")
    if any(curve.twin is not None for curve in chosen):
        notes.append("Dashed and level: the algorithm of that colour without noise.")
    notes += meaning_of(chosen, experiment.axis)
    cut = [curve.label for curve in chosen if is_complete(curve) and not (curve.mean() <= ceiling).all()]
    if cut:
        notes.append(f"Cut at the top: {'; '.join(cut)}.")
    missing = [one.label for one in (*chosen, *experiment.baselines) if not is_complete(one)]
    if missing:
        notes.append(f"Incomplete and not drawn: {'; '.join(missing)}.")
    return notes


def _wrapped(notes: Sequence[str]) -> list[str]:
    """The lines below the figure: bands on one of their own, the rest filled."""
    own = [note for note in notes[:1] if note.startswith("Bands")]
    return [*own, *textwrap.wrap(" ".join(notes[len(own) :]), _NOTE_CHARACTERS)]


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]])


def label_width(figure: Figure, ends: Sequence[End]) -> float:
    """Width of the widest label, in inches."""
    texts = [figure.text(0, 0, end.text, parse_math=False) for end in ends]
    width = max(text.get_window_extent().width for text in texts) / figure.dpi
    for text in texts:
        text.remove()
    return float(width)


def label_ends(axes: Axes, ends: Sequence[End], *, gap: float, offset: float) -> None:
    """Write the labels in a column right of the axes, tied to their lines; `gap`, `offset` in axes units."""
    to_axes = axes.transData + axes.transAxes.inverted()
    points = np.array([to_axes.transform((end.x, end.y)) for end in ends])
    heights = [min(float(y), 1.0) if np.isfinite(y) else 1.0 for y in points[:, 1]]
    for end, x, y, label in zip(ends, points[:, 0], heights, spread(heights, gap, 0.0, 1.0), strict=True):
        axes.plot(
            [x, 1 + offset * 0.8],
            [y, label],
            transform=axes.transAxes,
            color=end.colour,
            linewidth=0.7,
            alpha=0.7,
            clip_on=False,
            zorder=0,
        )
        axes.text(
            1 + offset,
            label,
            end.text,
            transform=axes.transAxes,
            va="center",
            color=end.colour,
            parse_math=False,
        )

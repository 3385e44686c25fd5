"""Figures of several experiments: all methods by guarantee, and the frontier.

They have a column of panels for each data set and a row for each guarantee. No two panels share an axis, because
neither an ε nor its cost means the same in two panels.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import crossing_targets
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Frontier, Lead, Standing, by_guarantee, standings
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.figures.chart import (
    Chart,
    Level,
    Line,
    is_drawable,
    least_loss,
    level_names,
    level_of,
    limits_of,
    lowest,
)
from dpmf_cli.report.figures.charts import curve_series, is_whole
from dpmf_cli.report.figures.drawings import End, draw_chart, draw_level, label_width, place, set_scale
from dpmf_cli.report.figures.style import GREY, MARKER_SIZE, MARKERS, Look, file_of, looks, new_figure
from dpmf_cli.report.tables.layout import epsilon_cell, marks
from dpmf_cli.report.tables.ranked import found_in, kind, short_label, short_marked

_COMBINED_NOTES = (
    "Each panel has axes of its own: ε of different panels are statements about different things,",
    "and not comparable. A method has one colour, and each mode its marker. Circles: crossings with the levels.",
    "‡ joint DP; § (ε, δ)-DP; ∞ no ε can be proved; ↑ above the panel. Intervals: `dpmf combined`.",
)
_FRONTIER_NOTES = (
    "Strong: at each ε the lowest mean RMSE of all methods with at most that provable ε, with its 95 % interval.",
    "Faint: all methods that keep the guarantee. ‡ joint DP; § (ε, δ)-DP. Panels have axes of their own:",
    "their ε are not comparable. A benchmark on public ratings: ties by `dpmf frontier`.",
)
_FAINT = "#C4C4C4"
_MOST_LABELS = 22
"""The height of a panel of the frontier, in labels. The names of stretches are inside the panel."""

# Inches, and points.
_WIDTH, _LEFT, _TOP, _BOTTOM, _NOTES = 6.2, 0.65, 0.35, 0.5, 0.6
_LEAST_HEIGHT, _LABEL_GAP, _LABEL_OFFSET = 2.2, 0.115, 0.2
_NOTE_SIZE, _TITLE_SIZE, _LABEL_SIZE = 7.0, 9.0, 6.5

Row = TypeVar("Row", bound=Hashable)
"""The key of a row of the grid."""


@dataclass(frozen=True)
class Panel:
    """One panel: its chart, the number of labels for which it has room, and its drawing.

    draw   draws into axes, and returns the ends of lines, to be labelled beside the axes
    """

    chart: Chart
    labels: int
    draw: Callable[[Axes], Sequence[End]]


def draw_grid(panels: Mapping[tuple[str, Row], Panel], rows: Iterable[Row], notes: Sequence[str]) -> Figure:
    """Draws the panels, given by (column, row), and `notes` as lines below them.

    Columns are in order of first appearance. Rows are in the order of `rows`; a row without a panel is left out.
    """
    columns = list(dict.fromkeys(column for column, _ in panels))
    heights: dict[Row, float] = {}
    for row in rows:
        labels = [panel.labels for (_, of), panel in panels.items() if of == row]
        if labels:
            heights[row] = max(_LEAST_HEIGHT, _LABEL_GAP * max(labels)) + _TOP + _BOTTOM
    width, bottom = _WIDTH * len(columns), sum(heights.values()) + _NOTES
    figure = new_figure(width, bottom)
    figure.text(0.1 / width, 0.1 / bottom, "\n".join(notes), fontsize=_NOTE_SIZE, color=GREY, va="bottom")
    for row, tall in heights.items():
        bottom -= tall
        for rank, column in enumerate(columns):
            if panel := panels.get((column, row)):
                axes = figure.add_axes((0.1, 0.1, 0.5, 0.5))
                ends = panel.draw(axes)
                axes.set_title(panel.chart.title, loc="left", parse_math=False, fontsize=_TITLE_SIZE)
                wide = _WIDTH - _LEFT - _LABEL_OFFSET - label_width(figure, ends, _LABEL_SIZE) - 0.1
                place(
                    axes, ends, _WIDTH * rank + _LEFT, bottom + _BOTTOM, wide, tall - _TOP - _BOTTOM,
                    gap=_LABEL_GAP, offset=_LABEL_OFFSET, size=_LABEL_SIZE,
                )  # fmt: skip
    return figure


def combined_figure(experiments: Sequence[Experiment], form: str = "png") -> bytes:
    """Draws RMSE over ε of all methods, as PNG, SVG or PDF.

    Incomplete curves are not drawn. Raises `DpmfError` for an unknown format, and if there is nothing to draw.
    """
    found = [each for each in standings(*experiments) if is_drawable(each.curve)]
    if not found:
        raise DpmfError("no complete curve to plot; finish the experiments with `dpmf run`")
    return file_of(lambda: draw_combined(by_guarantee(found)), form)


def draw_combined(groups: Mapping[tuple[str, Guarantee], Sequence[Standing]]) -> Figure:
    """Draws the panels of groups of complete curves, in whatever style is set.

    Of a large group it draws the curves with the lowest RMSE, and the panel's title says how many.
    """
    panels = {key: _combined_panel(*key, group) for key, group in groups.items()}
    return draw_grid(panels, GUARANTEES, _COMBINED_NOTES)


def _combined_panel(title: str, guarantee: Guarantee, whole: Sequence[Standing]) -> Panel:
    group = lowest(whole, lambda each: least_loss(each.curve))
    cut = f", {len(group)} of {len(whole):,} curves (lowest RMSE)" if len(group) < len(whole) else ""
    levels = _levels_of(group)
    series: list[Line | Level] = [*levels]
    # An algorithm keeps its colour in both modes.
    for each, look in zip(group, looks([short_label(each) for each in group]), strict=True):
        over_epsilon = replace(each.experiment, axis="epsilon")
        series += curve_series(over_epsilon, each.curve, _name(each), look, bands=False)
    curves = [each.curve for each in group]
    chart = _chart(f"{title}: {guarantee}{cut}", f"ε, {guarantee}; as claimed", curves, series)
    return Panel(chart, len(group) + len(levels), partial(draw_chart, chart=chart))


def _chart(title: str, x_name: str, curves: Sequence[Measured], series: Sequence[Line | Level]) -> Chart:
    metric = curves[0].metric
    limits = limits_of(metric, series, whole=is_whole(curves))
    return Chart("", title, x_name, metric.title, series, limits, log=True)


def _name(standing: Standing) -> str:
    curve = standing.curve
    unproved = "" if standing.provable else " ∞"
    published = f", {curve.mode}" if curve.mode == Mode.PUBLISHED else ""
    return f"{short_label(standing)}{marks(joint=curve.joint, delta=curve.delta)}{published}{unproved}"


def _levels_of(group: Sequence[Standing]) -> list[Level]:
    """Returns the baselines that crossings are with. A baseline that several experiments share comes once."""
    found: dict[tuple[str, float], Level] = {}
    for each in group:
        for target in crossing_targets(each.experiment):
            if isinstance(target, Measured) and is_drawable(target):
                level = _level(each.experiment, target)
                found.setdefault((target.label, level.y), level)
    return list(found.values())


def _level(experiment: Experiment, baseline: Measured) -> Level:
    return Level(level_names(experiment)[baseline.label], level_of(baseline))


def frontier_figure(experiments: Sequence[Experiment], form: str = "png") -> bytes:
    """Draws RMSE over provable ε, with a strong line for the envelope; as PNG, SVG or PDF.

    A row is a guarantee with its δ. Raises `DpmfError` for an unknown format, and if no complete curve has a provable
    ε.
    """
    found = found_in(experiments)
    if not found:
        raise DpmfError("no complete curve with a provable ε to plot; finish the experiments with `dpmf run`")
    panels = {(each.title, each.guarantee): frontier_panel(each) for each in found}
    rows = sorted(
        {each.guarantee for each in found},
        key=lambda guarantee: (GUARANTEES.index(guarantee.at_any_delta), guarantee.delta),
    )
    return file_of(lambda: draw_grid(panels, rows, _FRONTIER_NOTES), form)


def frontier_panel(frontier: Frontier) -> Panel:
    """Returns a panel of all members over their provable ε, faint, with the envelope over them, and baselines."""
    levels = _levels_of(frontier.members)
    for key in ("ga", "als"):
        found = ((each.experiment, each.experiment.baseline(key)) for each in frontier.members)
        levels += [_level(experiment, each) for experiment, each in found if each and is_drawable(each)][:1]
    series: list[Line | Level] = [*levels]
    for curve in (each.curve for each in frontier.members):
        known, mean = np.isfinite(curve.provable), curve.mean()
        y = np.where(np.isfinite(mean), mean, np.nan)
        series.append(Line(curve.label, Look(None, None), curve.provable[known], y[known]))
    title, x_name = f"{frontier.title}: {frontier.guarantee}", f"provable ε, {kind(frontier.guarantee.delta)}"
    chart = _chart(title, x_name, [each.curve for each in frontier.members], series)
    return Panel(chart, _MOST_LABELS, partial(_draw_frontier, frontier, chart))


def _draw_frontier(frontier: Frontier, chart: Chart, axes: Axes) -> list[End]:
    set_scale(axes, chart)
    axes.set_xlim(axes.get_xlim()[0], min(axes.get_xlim()[1], 1.1 * frontier.leads[-1].epsilon))
    for line in chart.lines:
        axes.plot(line.x, line.y, color=_FAINT, linewidth=0.8, zorder=1)
    _draw_envelope(axes, frontier)
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)
    axes.spines[["top", "right"]].set_visible(False)
    ends = [draw_level(axes, level, over_epsilon=True) for level in chart.levels]
    return [replace(end, x=axes.get_xlim()[1]) for end in ends]


def _draw_envelope(axes: Axes, frontier: Frontier) -> None:
    """Draws each stretch in its method's colour and marker.

    The legend lists the stretches from left to right, each with the ε at which it leads.
    """
    stretches = frontier.stretches
    labels = list(dict.fromkeys(standing.curve.label for standing, _ in stretches))
    look_of = dict(zip(labels, looks(labels), strict=True))
    top = axes.get_ylim()[1]
    axes.plot(*_points(frontier.leads), color="black", linewidth=2.4, zorder=2)
    for standing, leads in stretches:
        look = look_of[standing.curve.label]
        for lead in leads:
            if lead.low is not None and lead.high is not None and lead.first.rmse <= top:
                axes.vlines(lead.epsilon, lead.low, lead.high, color=look.hue, linewidth=0.9, zorder=2)
        first, last = epsilon_cell(leads[0].epsilon), epsilon_cell(leads[-1].epsilon)
        at = first if len(leads) == 1 else f"{first} to {last}"
        axes.plot(
            *_points(leads), color=look.hue, linewidth=2.4, marker=MARKERS[look.marker or 0],
            markersize=1.4 * MARKER_SIZE, zorder=3, label=f"{at}: {short_marked(leads[0].first)}",
        )  # fmt: skip
    legend = axes.legend(
        loc="best", fontsize=_LABEL_SIZE, framealpha=0.85, edgecolor="none", title="leads at ε"
    )
    legend.get_title().set_fontsize(_LABEL_SIZE)


def _points(leads: Sequence[Lead]) -> tuple[list[float], list[float]]:
    return [lead.epsilon for lead in leads], [lead.first.rmse for lead in leads]

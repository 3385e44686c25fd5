"""How matplotlib draws charts: the figures of one experiment, and those of several with a panel for each guarantee.

The latter, all methods by guarantee and the frontier, have a column of panels for each data set and a row for each
guarantee. No two panels share an axis, because neither an ε nor its cost means the same in two panels.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import crossing_targets
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Frontier, Standing, by_guarantee, standings
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.figures import charts, style
from dpmf_cli.report.tables.layout import epsilon_cell, marks
from dpmf_cli.report.tables.ranked import found_in, kind, short_label, short_marked

# Points, and how many characters of that size fill a line of the figure.
_TITLE_SIZE, _TITLE_CHARACTERS = 10.8, 72
_NOTE_SIZE, _NOTE_CHARACTERS = 7.0, 120
_TEXT_SIZE = 9.0
_OFFSET = 0.18
"""The distance of labels from the axes, in inches."""

_COUNT = FuncFormatter(lambda tick, _: f"{tick / 1e6:g} M" if abs(tick) >= 1e6 else f"{tick:,.0f}")


def drawings(experiment: Experiment) -> dict[str, Callable[[str], bytes]]:
    """What makes the file of each of the `figures`, in one of `style.FORMATS`, by their names."""
    return {name: partial(style.file_of, make) for name, make in figures(experiment).items()}


def figures(experiment: Experiment) -> dict[str, Callable[[], Figure]]:
    """What draws every figure, in whatever style is set, by its file's name without the suffix.

    There is none if no curve is complete. If the experiment has several guarantees, each has figures of its own:
    `curves_value`, `curves_value_joint`, `curves_user`, …
    """
    return {
        f"{name}_{guarantee.key}" if guarantee else name: partial(_figure, shown, name, make)
        for guarantee, part in charts.parts_of(experiment).items()
        for shown in [charts.legible(part)]
        for name, make in charts.figures_of(shown).items()
    }


def _figure(experiment: Experiment, name: str, make: Callable[[], Sequence[charts.Chart]]) -> Figure:
    kinds: dict[str, Callable[..., Figure]] = {
        "curves": curves_figure,
        "error_cdf": error_figure,
        "growth": partial(growth_figure, experiment),
    }
    title = charts.title_of(
        experiment, [each for each in experiment.curves if bool(each.swept) == (name not in kinds)]
    )
    return kinds.get(name, sweep_figure)(title, *make())


class End(NamedTuple):
    """The end of a drawn line, to be labelled there; `x` and `y` are data coordinates; `y` is NaN if diverged."""

    text: str
    colour: str
    x: float
    y: float


def draw_chart(axes: Axes, chart: charts.Chart, *, marked_every: int | None = None) -> list[End]:
    """Draws the lines and levels of a chart into axes, and returns their ends, to be labelled.

    Over ε or θ the axes have the limits of the chart, and labels say how high levels are, and which lines end above.
    Other axes have the limits that matplotlib chooses.
    """
    if chart.log:
        set_scale(axes, chart)
    ends = []
    for each in chart.series:
        if isinstance(each, charts.Line):
            draw_line(axes, each, marked_every=marked_every)
            above = chart.log and not each.y[-1] <= chart.limits[1]
            ends.append(End(each.name + " ↑" * above, each.look.hue, float(each.x[-1]), float(each.y[-1])))
        else:
            ends += [draw_level(axes, each, over_epsilon=chart.log)] * each.labelled
    set_names(axes, chart)
    edge = axes.get_xlim()[1]
    axes.set_ylim(axes.get_ylim())  # later drawing, such as labels, must not move the lines
    return [end._replace(x=edge) if np.isnan(end.x) else end for end in ends]


def set_names(axes: Axes, chart: charts.Chart) -> None:
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)
    axes.spines[["top", "right"]].set_visible(False)


def set_scale(axes: Axes, chart: charts.Chart) -> None:
    """Sets the limits of both axes, and the ticks of ε or θ."""
    smallest = min(float(line.x[0]) for line in chart.lines)
    largest = max(float(line.x[-1]) for line in chart.lines)
    pad = (largest / smallest) ** 0.02 if largest > smallest else 2.0
    axes.set_xscale("log")
    axes.set_xlim(smallest / pad, largest * pad)
    axes.xaxis.set_major_locator(FixedLocator(charts.epsilon_ticks(smallest / pad, largest * pad)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(*chart.limits)


def draw_level(axes: Axes, level: charts.Level, *, over_epsilon: bool) -> End:
    """Draws a level, with its marker at both ends if it has one, and returns its end, whose x is NaN."""
    width = 0.7 if over_epsilon and level.look == style.GREY_LEVEL else 0.8
    axes.axhline(level.y, color=level.look.hue, linewidth=width, linestyle=style.DASHES[level.dash], zorder=1)
    if level.labelled and level.look.marker is not None:
        axes.plot(
            [0, 1], [level.y] * 2, style.MARKERS[level.look.marker], color=level.look.hue, clip_on=False,
            markersize=style.MARKER_SIZE, transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    return End(f"{level.name} {level.y:.3f}" if over_epsilon else level.name, level.look.hue, np.nan, level.y)


def draw_line(axes: Axes, line: charts.Line, *, marked_every: int | None = None) -> None:
    colour = line.look.hue
    if line.low is not None and line.high is not None:
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(
        line.x, line.y, color=colour, linestyle=style.DASHES[line.dash],
        linewidth=1.0 if colour == style.GREY else 1.6, marker=style.MARKERS[line.look.marker or 0],
        markersize=style.MARKER_SIZE, markevery=marked_every,
    )  # fmt: skip
    for x, y in line.marks:
        axes.plot([x], [y], "o", markersize=6, markerfacecolor="white", markeredgecolor=colour, zorder=4)


def set_title(axes: Axes, title: str) -> None:
    """Writes a title above the axes; a long one gets smaller letters."""
    size = min(_TITLE_SIZE, _TITLE_SIZE * _TITLE_CHARACTERS / len(title))
    axes.set_title(title, loc="left", fontsize=size, parse_math=False)


def label_width(figure: Figure, ends: Sequence[End], size: float = _TEXT_SIZE) -> float:
    """The width of the widest label, in inches."""
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
        ends, points[:, 0], heights, charts.spread(heights, gap / height, 0.0, 1.0), strict=True
    ):
        axes.plot(
            [x, 1 + edge * 0.8], [y, label], transform=axes.transAxes, color=end.colour, linewidth=0.7,
            alpha=0.7, clip_on=False, zorder=0,
        )  # fmt: skip
        axes.text(
            1 + edge, label, end.text, transform=axes.transAxes, va="center", color=end.colour,
            fontsize=size, parse_math=False,
        )  # fmt: skip


def curves_figure(title: str, chart: charts.Chart) -> Figure:
    """A chart over ε or θ with its notes, as tall as its labels and notes need."""
    across, left, top, gap = 7.0, 0.65, 0.4, 0.16
    figure = style.new_figure(across, 4.6)
    axes = figure.add_axes((0.1, 0.2, 0.7, 0.7))
    ends = draw_chart(axes, chart)
    set_title(axes, title)
    own = [note for note in chart.notes[:1] if note.startswith("Bands")]  # on a line of its own
    notes = [*own, *textwrap.wrap(" ".join(chart.notes[len(own) :]), _NOTE_CHARACTERS)]
    bottom = 0.6 + 0.145 * len(notes)
    figure.text(
        0.012, 0.012, "\n".join(notes), fontsize=_NOTE_SIZE, color=style.GREY, va="bottom", parse_math=False
    )
    width = across - left - _OFFSET - label_width(figure, ends) - 0.1
    height = max(4.6 - top - bottom, gap * (len(ends) - 1))
    figure.set_size_inches(across, height + top + bottom)
    place(axes, ends, left, bottom, width, height, gap=gap)
    return figure


def sweep_figure(title: str, *shown: charts.Chart) -> Figure:
    """Charts over a swept parameter, one above the other."""
    across, tall, left, top, bottom = 7.6, 3.3, 0.75, 0.4, 0.7
    whole = top + len(shown) * (tall + bottom)
    figure = style.new_figure(across, whole)
    panels = [figure.add_axes((0.1, 0.1, 0.5, 0.5)) for _ in shown]
    ends = [draw_chart(axes, chart) for axes, chart in zip(panels, shown, strict=True)]
    width = across - left - _OFFSET - max(label_width(figure, each) for each in ends) - 0.1
    for rank, axes in enumerate(panels):
        below = whole - top - tall - rank * (tall + bottom)
        place(axes, ends[rank], left, below, width, tall, gap=0.155)
    set_title(panels[0], title)
    figure.text(0.012, 0.012, shown[0].notes[0], fontsize=_NOTE_SIZE, color=style.GREY)
    return figure


def error_figure(title: str, chart: charts.Chart) -> Figure:
    """A distribution of errors, with a legend that has the lines from top to bottom."""
    figure = style.new_figure(7.6, 4.6)
    axes = figure.add_axes((0.09, 0.15, 0.5, 0.75))
    every = max(1, len(chart.lines[0].x) // 8)
    draw_chart(axes, chart, marked_every=every)
    taken = _legend(figure, axes.lines, [line.name for line in chart.lines], size=8)
    axes.set_position((0.09, 0.15, max(0.89 - taken, 0.3), 0.75))
    set_title(axes, title)
    note = "The legend lists the lines from top to bottom, by their average over x."
    figure.text(0.012, 0.012, note, fontsize=_NOTE_SIZE, color=style.GREY)
    return figure


def growth_figure(experiment: Experiment, title: str, chart: charts.Chart) -> Figure:
    """Loss over the number of ratings, or over days, with the number of ratings on the right, if ratings come by
    time."""
    left, bottom, tall = 0.1, 0.16, 0.74
    figure = style.new_figure(7.0, 4.2)
    axes = figure.add_axes((left, bottom, 0.5, tall))
    portions = [stage.portion for stage in experiment.growth]
    days = np.array([np.nan if portion.days is None else portion.days for portion in portions])
    by_time = bool(np.isfinite(days).all())
    lines = charts.growth_lines(experiment, days) if by_time else chart.lines
    for line in lines:
        draw_line(axes, line)
    axes.axhline(0.0, color=style.GREY, linewidth=0.7, zorder=1)
    axes.set_ylabel("loss: RMSE − RMSE without noise")
    axes.set_xlabel("days since the first rating" if by_time else "ratings")
    axes.xaxis.set_major_formatter(_COUNT)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(by_time)
    if by_time:
        right = axes.twinx()
        counts = [portion.ratings for portion in portions]
        right.plot(days, counts, color=style.GREY, linewidth=0.7, zorder=1)
        right.set_ylim(0, 1.05 * max(counts))
        right.set_ylabel("ratings so far (thin, grey)", color=style.GREY)
        right.tick_params(axis="y", colors=style.GREY)
        right.yaxis.set_major_formatter(_COUNT)
        right.spines["top"].set_visible(False)
    set_title(axes, title)
    # The legend follows the right ends of the lines from top to bottom, so that the eye finds them.
    falling = sorted(range(len(lines)), key=lambda rank: -lines[rank].y[-1])
    taken = _legend(figure, [axes.lines[rank] for rank in falling], [lines[rank].name for rank in falling])
    # Room for the scale on the right, or a gap without one; beside a long legend the axes stay wide enough to read.
    width = max(1 - left - taken - (0.14 if by_time else 0.02), 0.3)
    for each in figure.axes:
        each.set_position((left, bottom, width, tall))
    notes = chart.notes if experiment.folds > 1 else chart.notes[1:]  # without folds there are no bands
    below = "\n".join(textwrap.wrap(" ".join(notes), _NOTE_CHARACTERS))
    figure.text(0.012, 0.012, below, fontsize=_NOTE_SIZE, color=style.GREY)
    return figure


def _legend(figure: Figure, drawn: Sequence[Line2D], names: Sequence[str], size: float = _TEXT_SIZE) -> float:
    """Writes the names of lines at the right edge, and returns their share of the figure's width."""
    legend = figure.legend(
        drawn, names, loc="center right", bbox_to_anchor=(1.0, 0.53), frameon=False, labelcolor="linecolor",
        fontsize=size,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return float(legend.get_window_extent().width / figure.dpi / figure.get_figwidth())


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
_PANEL_TITLE_SIZE, _LABEL_SIZE = 9.0, 6.5

Panel = tuple[str, Callable[[Axes], Sequence[End]]]
"""A title, and what draws into axes and returns the ends of lines, to be labelled beside the axes."""


def draw_grid(panels: Mapping[tuple[str, Guarantee], Panel], notes: Sequence[str], labels: int = 0) -> Figure:
    """The panels, given by (column, row), and `notes` as lines below them.

    Columns are in order of first appearance, and rows in the order of tables. A row has room for that many `labels`,
    or for those that its panels have.
    """
    rows = {row for _, row in panels}
    columns = list(dict.fromkeys(column for column, _ in panels))
    figure = style.new_figure(_WIDTH * len(columns), 1.0)
    drawn: dict[tuple[str, Guarantee], tuple[Axes, Sequence[End]]] = {}
    heights: dict[Guarantee, float] = {}
    for row in sorted(rows, key=lambda row: (GUARANTEES.index(row.at_any_delta), row.delta)):
        for column in columns:
            if (column, row) in panels:
                title, draw = panels[column, row]
                axes = figure.add_axes((0.1, 0.1, 0.5, 0.5))
                axes.set_title(title, loc="left", parse_math=False, fontsize=_PANEL_TITLE_SIZE)
                drawn[column, row] = axes, (ends := draw(axes))
                tall = max(_LEAST_HEIGHT, _LABEL_GAP * (labels or len(ends))) + _TOP + _BOTTOM
                heights[row] = max(heights.get(row, 0.0), tall)
    width, bottom = _WIDTH * len(columns), sum(heights.values()) + _NOTES
    figure.set_size_inches(width, bottom)
    figure.text(
        0.1 / width, 0.1 / bottom, "\n".join(notes), fontsize=_NOTE_SIZE, color=style.GREY, va="bottom"
    )
    for row, tall in heights.items():
        bottom -= tall
        for rank, column in enumerate(columns):
            if (column, row) in drawn:
                axes, ends = drawn[column, row]
                wide = _WIDTH - _LEFT - _LABEL_OFFSET - label_width(figure, ends, _LABEL_SIZE) - 0.1
                place(
                    axes, ends, _WIDTH * rank + _LEFT, bottom + _BOTTOM, wide, tall - _TOP - _BOTTOM,
                    gap=_LABEL_GAP, offset=_LABEL_OFFSET, size=_LABEL_SIZE,
                )  # fmt: skip
    return figure


def combined_figure(experiments: Sequence[Experiment], form: str = "png") -> bytes:
    """RMSE over ε of all methods, as PNG, SVG or PDF. Raises `DpmfError` if there is nothing to draw."""
    return style.file_of(lambda: draw_combined(experiments), form)


def draw_combined(experiments: Sequence[Experiment]) -> Figure:
    """A panel for each data set and guarantee, without incomplete curves, in whatever style is set.

    Of a large group it draws the curves with the lowest RMSE, and the panel's title says how many.
    """
    found = [each for each in standings(*experiments) if charts.is_drawable(each.curve)]
    if not found:
        raise DpmfError("no complete curve to plot; finish the experiments with `dpmf run`")
    panels: dict[tuple[str, Guarantee], Panel] = {}
    for (title, guarantee), whole in by_guarantee(found).items():
        group = charts.lowest(whole, lambda each: charts.least_loss(each.curve))
        cut = f", {len(group)} of {len(whole):,} curves (lowest RMSE)" if len(group) < len(whole) else ""
        series: list[charts.Line | charts.Level] = [*_levels_of(group)]
        # An algorithm keeps its colour in both modes.
        for each, look in zip(group, style.looks([short_label(each) for each in group]), strict=True):
            curve, over_epsilon = each.curve, replace(each.experiment, axis="epsilon")
            published = f", {curve.mode}" if curve.mode == Mode.PUBLISHED else ""
            name = short_label(each) + marks(joint=curve.joint, delta=curve.delta) + published
            name += "" if each.provable else " ∞"
            series += charts.curve_series(over_epsilon, curve, name, look, bands=False)
        chart = _chart(f"{title}: {guarantee}{cut}", f"ε, {guarantee}; as claimed", group, series)
        panels[title, guarantee] = chart.title, partial(draw_chart, chart=chart)
    return draw_grid(panels, _COMBINED_NOTES)


def _chart(
    title: str, x_name: str, group: Sequence[Standing], series: Sequence[charts.Line | charts.Level]
) -> charts.Chart:
    curves = [each.curve for each in group]
    metric, whole = curves[0].metric, any(curve.neighbours == Neighbours.LOCAL for curve in curves)
    limits = charts.limits_of(metric, series, whole=whole)
    return charts.Chart("", title, x_name, metric.title, series, limits, log=True)


def _levels_of(group: Sequence[Standing]) -> list[charts.Level]:
    """The baselines that crossings are with; one that several experiments share comes once."""
    found: dict[tuple[str, float], charts.Level] = {}
    for each in group:
        for target in crossing_targets(each.experiment):
            if isinstance(target, Measured) and charts.is_drawable(target):
                level = charts.Level(
                    charts.level_names(each.experiment)[target.label], charts.level_of(target)
                )
                found.setdefault((target.label, level.y), level)
    return list(found.values())


def frontier_figure(experiments: Sequence[Experiment], form: str = "png") -> bytes:
    """RMSE over provable ε, with a strong line for the envelope; as PNG, SVG or PDF.

    A row is a guarantee with its δ. Raises `DpmfError` if no complete curve has a provable ε.
    """
    found = found_in(experiments)
    if not found:
        raise DpmfError("no complete curve with a provable ε to plot; finish the experiments with `dpmf run`")
    panels = {(each.title, each.guarantee): frontier_panel(each) for each in found}
    return style.file_of(lambda: draw_grid(panels, _FRONTIER_NOTES, _MOST_LABELS), form)


def frontier_panel(frontier: Frontier) -> Panel:
    """A panel of all members over their provable ε, faint, with the envelope over them, and baselines."""
    levels = _levels_of(frontier.members)
    for key in ("ga", "als"):
        for experiment in (each.experiment for each in frontier.members):
            baseline = experiment.baseline(key)
            if baseline and charts.is_drawable(baseline):
                levels.append(
                    charts.Level(charts.level_names(experiment)[baseline.label], charts.level_of(baseline))
                )
                break
    series: list[charts.Line | charts.Level] = [*levels]
    for curve in (each.curve for each in frontier.members):
        known, mean = np.isfinite(curve.provable), curve.mean()
        known[: curve.first] = False  # no axis can show ε → 0
        y = np.where(np.isfinite(mean), mean, np.nan)
        series.append(charts.Line(curve.label, style.Look(None, None), curve.provable[known], y[known]))
    leads = tuple(lead for lead in frontier.leads if lead.epsilon > LEAST_EPSILON) or frontier.leads
    frontier = replace(frontier, leads=leads)
    title, x_name = f"{frontier.title}: {frontier.guarantee}", f"provable ε, {kind(frontier.guarantee.delta)}"
    return title, partial(_draw_frontier, frontier, _chart(title, x_name, frontier.members, series))


def _draw_frontier(frontier: Frontier, chart: charts.Chart, axes: Axes) -> list[End]:
    """Draws the members and the envelope, each stretch of which has its method's colour and marker.

    The legend lists the stretches from left to right, each with the ε at which it leads.
    """
    set_scale(axes, chart)
    axes.set_xlim(axes.get_xlim()[0], min(axes.get_xlim()[1], 1.1 * frontier.leads[-1].epsilon))
    for line in chart.lines:
        axes.plot(line.x, line.y, color=_FAINT, linewidth=0.8, zorder=1)
    stretches = frontier.stretches
    labels = list(dict.fromkeys(standing.curve.label for standing, _ in stretches))
    look_of = dict(zip(labels, style.looks(labels), strict=True))
    top = axes.get_ylim()[1]
    at = [(lead.epsilon, lead.first.rmse) for lead in frontier.leads]
    axes.plot(*zip(*at, strict=True), color="black", linewidth=2.4, zorder=2)
    for standing, leads in stretches:
        look = look_of[standing.curve.label]
        for lead in leads:
            if lead.low is not None and lead.high is not None and lead.first.rmse <= top:
                axes.vlines(lead.epsilon, lead.low, lead.high, color=look.hue, linewidth=0.9, zorder=2)
        first, last = epsilon_cell(leads[0].epsilon), epsilon_cell(leads[-1].epsilon)
        where = first if len(leads) == 1 else f"{first} to {last}"
        at = [(lead.epsilon, lead.first.rmse) for lead in leads]
        axes.plot(
            *zip(*at, strict=True), color=look.hue, linewidth=2.4, marker=style.MARKERS[look.marker or 0],
            markersize=1.4 * style.MARKER_SIZE, zorder=3, label=f"{where}: {short_marked(leads[0].first)}",
        )  # fmt: skip
    legend = axes.legend(
        loc="best", fontsize=_LABEL_SIZE, framealpha=0.85, edgecolor="none", title="leads at ε"
    )
    legend.get_title().set_fontsize(_LABEL_SIZE)
    set_names(axes, chart)
    ends = [draw_level(axes, level, over_epsilon=True) for level in chart.levels]
    return [end._replace(x=axes.get_xlim()[1]) for end in ends]

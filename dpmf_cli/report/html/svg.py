"""Draws a chart as inline SVG. The style sheet sets colours, dashes and the size of letters, by class."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

from dpmf_cli.report.figures.axes import epsilon_ticks
from dpmf_cli.report.figures.labels import spread
from dpmf_cli.report.html.chart import Chart, ChartLine, Level

PLOT_RIGHT = 560.0
"""The x at which the axes end. Labels stand to the right of it; a narrow screen cuts them off."""
_WIDTH, _LEFT, _TOP, _BOTTOM = 836.0, 54.0, 30.0, 54.0
_HEIGHT, _LABEL_GAP = 380.0, 17.0
_NAME_GAP = 21.0
_STEPS = (1, 2, 5, 10)
_LABEL_X, _LONGEST = PLOT_RIGHT + 26, 30


@dataclass(frozen=True)
class _Scale:
    """Maps measured values to places in the picture."""

    chart: Chart
    height: float

    @property
    def bottom(self) -> float:
        return self.height - _BOTTOM

    def x(self, value: float) -> float:
        places = self.chart.places
        first, last = places[0], places[-1]
        if self.chart.log:
            value, first, last = math.log(value), math.log(first), math.log(last)
        part = (value - first) / (last - first) if last > first else 0.5
        return _LEFT + 10 + part * (PLOT_RIGHT - _LEFT - 20)

    def y(self, value: float) -> float:
        """Returns a place at most one axis height outside the axes, so that no browser draws a line to infinity."""
        part = (value - self.chart.low) / (self.chart.high - self.chart.low)
        return self.bottom - min(max(part, -1.0), 2.0) * (self.bottom - _TOP)


def height_of(chart: Chart) -> float:
    """Returns the height of the picture, which grows with the number of labels."""
    labels = len(chart.lines) + sum(level.labelled for level in chart.levels)
    return max(_HEIGHT, _TOP + _BOTTOM + _LABEL_GAP * labels)


def place_of(chart: Chart, x: float) -> float:
    """Returns the place of the value x on the picture's horizontal axis."""
    return round(_Scale(chart, height_of(chart)).x(x), 1)


def draw(chart: Chart) -> Markup:
    """Draws the picture. It names itself to a screen reader; the table beside it has its values."""
    scale = _Scale(chart, height_of(chart))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH:g} {scale.height:g}" role="img" aria-labelledby="{chart.key}-name">',
        f'<clipPath id="{chart.key}-clip"><rect x="{_LEFT:g}" y="{_TOP:g}" width="{PLOT_RIGHT - _LEFT:g}" '
        f'height="{scale.bottom - _TOP:g}"/></clipPath>',
        *_axes(chart, scale),
        *(part for level in chart.levels for part in _level(level, scale)),
        *(_line(chart, rank, line, scale) for rank, line in enumerate(chart.lines)),
        *_level_names(chart, scale),
        *_labels(chart, scale),
        f'<line class="cursor" y1="{_TOP:g}" y2="{scale.bottom:g}" x1="0" x2="0"/>',
        "</svg>",
    ]
    return Markup("\n".join(parts))


def _axes(chart: Chart, scale: _Scale) -> Iterator[str]:
    places = chart.places
    if chart.log:
        ticks: Sequence[float] = epsilon_ticks(places[0] * 0.999, places[-1] * 1.001)
    else:
        ticks = list(MaxNLocator(6, steps=_STEPS).tick_values(places[0], places[-1]))
        ticks = [tick for tick in ticks if places[0] - 1e-9 <= tick <= places[-1] + 1e-9]
    for tick in ticks or places:
        x = scale.x(tick)
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{scale.bottom:g}" y2="{scale.bottom + 5:g}"/>'
        yield f'<text class="number" text-anchor="middle" x="{x:.1f}" y="{scale.bottom + 19:g}">{tick:g}</text>'
    for tick in MaxNLocator(6, steps=_STEPS).tick_values(chart.low, chart.high):
        if chart.low <= tick <= chart.high:
            y = scale.y(float(tick))
            yield f'<line class="grid" x1="{_LEFT:g}" x2="{PLOT_RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="number" text-anchor="end" x="{_LEFT - 7:g}" y="{y + 4:.1f}">{tick:g}</text>'
    yield f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{scale.bottom:g}H{PLOT_RIGHT:g}"/>'
    middle = (_LEFT + PLOT_RIGHT) / 2
    yield f'<text text-anchor="middle" x="{middle:g}" y="{scale.height - 6:g}">{escape(chart.x_name)}</text>'
    yield f'<text x="4" y="15">{escape(chart.y_name)}</text>'


def _colour(colour: int | None) -> str:
    return "grey" if colour is None else f"c{colour}"


def _level(level: Level, scale: _Scale) -> Iterator[str]:
    y = scale.y(level.y)
    colour = _colour(level.colour)
    shown = f'class="level d{level.dash:d} {colour}"'
    yield f'<line {shown} x1="{_LEFT:g}" x2="{PLOT_RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
    if level.look is not None:
        for x in (_LEFT, PLOT_RIGHT):
            yield f'<use class="{colour}" href="#m{level.look.marker}" x="{x:g}" y="{y:.1f}"/>'


def _level_names(chart: Chart, scale: _Scale) -> Iterator[str]:
    """Names grey levels at their lines, for narrow screens, which cut off the labels on the right."""
    named = [level for level in chart.levels if level.look is None]
    placed = spread([scale.y(level.y) - 5 for level in named], _NAME_GAP, _TOP + _NAME_GAP, scale.bottom - 5)
    for level, y in zip(named, placed, strict=True):
        yield f'<text class="level-name" x="{_LEFT + 6:g}" y="{y:.1f}">{escape(level.name)}</text>'


def _line(chart: Chart, rank: int, line: ChartLine, scale: _Scale) -> str:
    points = [(scale.x(x), scale.y(y)) for x, y, _, _ in line.points if math.isfinite(y)]
    drawn = [f'<path class="curve d{line.dash:d}" d="{_path(points)}"/>']
    upper = [(scale.x(x), scale.y(high)) for x, _, _, high in line.points if math.isfinite(high)]
    lower = [(scale.x(x), scale.y(low)) for x, _, low, _ in line.points if math.isfinite(low)]
    if upper:
        drawn.insert(0, f'<path class="band" d="{_path([*upper, *reversed(lower)])}Z"/>')
    drawn += [f'<use href="#m{line.marker}" x="{x:.1f}" y="{y:.1f}"/>' for x, y in points]
    drawn += [
        f'<circle class="mark" r="5" cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}"/>' for x, y in line.marks
    ]
    clip = f'clip-path="url(#{chart.key}-clip)"'
    return f'<g class="{_colour(line.colour)}" data-line="{rank}" {clip}>{"".join(drawn)}</g>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _labels(chart: Chart, scale: _Scale) -> Iterator[str]:
    """Writes a column of names right of the axes, each tied to the end of its line."""
    ends: list[tuple[str, float, float, str, str]] = []
    for level in (level for level in chart.levels if level.labelled):
        text = f"{level.name} {level.y:.3f}"
        ends.append((text, PLOT_RIGHT, scale.y(level.y), _colour(level.colour), ""))
    for rank, line in enumerate(chart.lines):
        finite = [(x, y) for x, y, _, _ in line.points if math.isfinite(y)]
        at = (scale.x(finite[-1][0]), scale.y(finite[-1][1])) if finite else (PLOT_RIGHT, _TOP)
        text = line.name + (" ↑" if not finite or finite[-1][1] > chart.high else "")
        ends.append((text, *at, _colour(line.colour), f' data-line="{rank}"'))
    targets = [min(max(y, _TOP), scale.bottom) for _, _, y, _, _ in ends]
    placed = spread(targets, _LABEL_GAP, _TOP + 4, scale.bottom)
    for (text, x, _, colour, which), y, label in zip(ends, targets, placed, strict=True):
        short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        yield (
            f'<g class="label {colour}"{which}><path class="tie" d="M{x:.1f} {y:.1f}L{_LABEL_X - 6:g} '
            f'{label:.1f}"/><text x="{_LABEL_X:g}" y="{label + 4:.1f}">{escape(short)}</text></g>'
        )

"""Draws a chart as inline SVG, beside a table of its values. The style sheet sets colours, dashes and sizes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.figures.chart import Chart, Level, Line, epsilon_ticks, spread
from dpmf_cli.report.figures.style import GREY_LEVEL, Look

PLOT_RIGHT = 560.0
"""The x at which the axes end. Labels stand to the right of it; a narrow screen cuts them off."""
_WIDTH, _LEFT, _TOP, _BOTTOM = 836.0, 54.0, 30.0, 54.0
_HEIGHT, _LABEL_GAP, _NAME_GAP = 380.0, 17.0, 21.0
_LABEL_X, _LONGEST = PLOT_RIGHT + 26, 30


@dataclass(frozen=True)
class Values:
    """A chart's numbers as a table: a row for each x, with its place in the picture, and a column for each line."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, float, tuple[tuple[str, str], ...]], ...]
    levels: tuple[tuple[str, str], ...]


class Drawn:
    """A chart ready for the page: its picture, and its table of values."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        labels = len(chart.lines) + sum(level.labelled for level in chart.levels)
        self.height = max(_HEIGHT, _TOP + _BOTTOM + _LABEL_GAP * labels)
        self.bottom = self.height - _BOTTOM

    def x(self, value: float) -> float:
        """Returns the place of a value on the picture's horizontal axis."""
        first, last = self.chart.places[0], self.chart.places[-1]
        if self.chart.log:
            value, first, last = math.log(value), math.log(first), math.log(last)
        part = (value - first) / (last - first) if last > first else 0.5
        return _LEFT + 10 + part * (PLOT_RIGHT - _LEFT - 20)

    def y(self, value: float) -> float:
        """Returns a place at most one axis height outside the axes, so that no browser draws a line to infinity."""
        low, high = self.chart.limits
        part = (value - low) / (high - low)
        return self.bottom - min(max(part, -1.0), 2.0) * (self.bottom - _TOP)

    @cached_property
    def values(self) -> Values:
        columns = [dict(zip(line.x.tolist(), range(len(line.x)), strict=True)) for line in self.chart.lines]
        rows = tuple(
            (
                f"{x:g}",
                round(self.x(x), 1),
                tuple(_cell(line, at.get(x)) for line, at in zip(self.chart.lines, columns, strict=True)),
            )
            for x in self.chart.places
        )
        levels = tuple((level.name, f"{level.y:.4f}") for level in self.chart.levels)
        return Values(tuple(line.name for line in self.chart.lines), rows, levels)

    @property
    def svg(self) -> Markup:
        """The picture. It names itself to a screen reader; the table beside it has its values."""
        chart = self.chart
        parts = [
            f'<svg viewBox="0 0 {_WIDTH:g} {self.height:g}" role="img" aria-labelledby="{chart.key}-name">',
            f'<clipPath id="{chart.key}-clip"><rect x="{_LEFT:g}" y="{_TOP:g}" width="{PLOT_RIGHT - _LEFT:g}" '
            f'height="{self.bottom - _TOP:g}"/></clipPath>',
            *self._axes(),
            *(part for level in chart.levels for part in self._level(level)),
            *(self._line(rank, line) for rank, line in enumerate(chart.lines)),
            *self._level_names(),
            *self._labels(),
            f'<line class="cursor" y1="{_TOP:g}" y2="{self.bottom:g}" x1="0" x2="0"/>',
            "</svg>",
        ]
        return Markup("\n".join(parts))

    def _axes(self) -> Iterator[str]:
        chart, first, last = self.chart, self.chart.places[0], self.chart.places[-1]
        if chart.log:
            ticks = epsilon_ticks(first * 0.999, last * 1.001)
        else:
            ticks = [tick for tick in _round_ticks(first, last) if first - 1e-9 <= tick <= last + 1e-9]
        for tick in ticks or chart.places:
            x = self.x(tick)
            yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{self.bottom:g}" y2="{self.bottom + 5:g}"/>'
            yield f'<text class="number" text-anchor="middle" x="{x:.1f}" y="{self.bottom + 19:g}">{tick:g}</text>'
        low, high = chart.limits
        for tick in _round_ticks(low, high):
            if low <= tick <= high:
                y = self.y(tick)
                yield f'<line class="grid" x1="{_LEFT:g}" x2="{PLOT_RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
                yield f'<text class="number" text-anchor="end" x="{_LEFT - 7:g}" y="{y + 4:.1f}">{tick:g}</text>'
        yield f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{self.bottom:g}H{PLOT_RIGHT:g}"/>'
        middle = (_LEFT + PLOT_RIGHT) / 2
        yield f'<text text-anchor="middle" x="{middle:g}" y="{self.height - 6:g}">{escape(chart.x_name)}</text>'
        yield f'<text x="4" y="15">{escape(chart.y_name)}</text>'

    def _level(self, level: Level) -> Iterator[str]:
        y, colour = self.y(level.y), _colour(level.look)
        shown = f'class="level d{level.dash:d} {colour}"'
        yield f'<line {shown} x1="{_LEFT:g}" x2="{PLOT_RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        if level.look != GREY_LEVEL:
            for x in (_LEFT, PLOT_RIGHT):
                yield f'<use class="{colour}" href="#m{level.look.marker}" x="{x:g}" y="{y:.1f}"/>'

    def _level_names(self) -> Iterator[str]:
        """Names grey levels at their lines, for narrow screens, which cut off the labels on the right."""
        named = [level for level in self.chart.levels if level.look == GREY_LEVEL]
        heights = [self.y(level.y) - 5 for level in named]
        placed = spread(heights, _NAME_GAP, _TOP + _NAME_GAP, self.bottom - 5)
        for level, y in zip(named, placed, strict=True):
            yield f'<text class="level-name" x="{_LEFT + 6:g}" y="{y:.1f}">{escape(level.name)}</text>'

    def _line(self, rank: int, line: Line) -> str:
        points = self._points(line, line.y)
        drawn = [f'<path class="curve d{line.dash:d}" d="{_path(points)}"/>']
        if line.low is not None and line.high is not None and (upper := self._points(line, line.high)):
            lower = self._points(line, line.low)
            drawn.insert(0, f'<path class="band" d="{_path([*upper, *reversed(lower)])}Z"/>')
        drawn += [f'<use href="#m{line.look.marker}" x="{x:.1f}" y="{y:.1f}"/>' for x, y in points]
        drawn += [
            f'<circle class="mark" r="5" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}"/>' for x, y in line.marks
        ]
        clip = f'clip-path="url(#{self.chart.key}-clip)"'
        return f'<g class="{_colour(line.look)}" data-line="{rank}" {clip}>{"".join(drawn)}</g>'

    def _points(self, line: Line, of: NDArray[np.float64]) -> list[tuple[float, float]]:
        """Returns the places of the finite ones of a line's values."""
        return [
            (self.x(x), self.y(y))
            for x, y in zip(line.x.tolist(), of.tolist(), strict=True)
            if math.isfinite(y)
        ]

    def _labels(self) -> Iterator[str]:
        """Writes a column of names right of the axes, each tied to the end of its line."""
        ends: list[tuple[str, float, float, str, str]] = []
        for level in (level for level in self.chart.levels if level.labelled):
            text = f"{level.name} {level.y:.3f}"
            ends.append((text, PLOT_RIGHT, self.y(level.y), _colour(level.look), ""))
        for rank, line in enumerate(self.chart.lines):
            finite = line.y[np.isfinite(line.y)]
            at = self._points(line, line.y)[-1] if len(finite) else (PLOT_RIGHT, _TOP)
            text = line.name + " ↑" * bool(not len(finite) or finite[-1] > self.chart.limits[1])
            ends.append((text, *at, _colour(line.look), f' data-line="{rank}"'))
        targets = [min(max(y, _TOP), self.bottom) for _, _, y, _, _ in ends]
        placed = spread(targets, _LABEL_GAP, _TOP + 4, self.bottom)
        for (text, x, _, colour, which), y, label in zip(ends, targets, placed, strict=True):
            short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
            yield (
                f'<g class="label {colour}"{which}><path class="tie" d="M{x:.1f} {y:.1f}L{_LABEL_X - 6:g} '
                f'{label:.1f}"/><text x="{_LABEL_X:g}" y="{label + 4:.1f}">{escape(short)}</text></g>'
            )


def _round_ticks(low: float, high: float) -> list[float]:
    return [float(tick) for tick in MaxNLocator(6, steps=(1, 2, 5, 10)).tick_values(low, high)]


def _colour(look: Look) -> str:
    return "grey" if look.colour is None else f"c{look.colour}"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _cell(line: Line, at: int | None) -> tuple[str, str]:
    """Returns (mean, interval) of a point; "" for a part that is missing."""
    if at is None:
        return "", ""
    if np.isnan(line.y[at]):
        return "diverged", ""
    if (
        line.low is None
        or line.high is None
        or not np.isfinite(line.low[at])
        or line.low[at] == line.high[at]
    ):
        return _short(line.y[at]), ""
    return _short(line.y[at]), f"[{_short(line.low[at])}, {_short(line.high[at])}]"


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else significant(value, 5)

"""A chart in a page: the places of its parts in a picture, which `svg.html.j2` draws, and a table of its values."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.figures.chart import Chart, Line, epsilon_ticks, spread
from dpmf_cli.report.figures.style import GREY_LEVEL

_LABEL_GAP, _NAME_GAP = 17.0, 21.0


class Drawn:
    """A chart ready for the page. The axes end at `right`; a narrow screen cuts off the labels beyond it."""

    width, left, right, top, longest = 836, 54, 560, 30, 30

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        labels = len(chart.lines) + sum(level.labelled for level in chart.levels)
        self.height = max(380.0, self.top + 54 + _LABEL_GAP * labels)
        self.bottom = self.height - 54

    def x(self, value: float) -> float:
        """Returns the place of a value on the picture's horizontal axis."""
        first, last = self.chart.places[0], self.chart.places[-1]
        if self.chart.log:
            value, first, last = math.log(value), math.log(first), math.log(last)
        part = (value - first) / (last - first) if last > first else 0.5
        return self.left + 10 + part * (self.right - self.left - 20)

    def y(self, value: float) -> float:
        """Returns a place at most one axis height outside the axes, so that no browser draws a line to infinity."""
        low, high = self.chart.limits
        part = (value - low) / (high - low)
        return self.bottom - min(max(part, -1.0), 2.0) * (self.bottom - self.top)

    @property
    def rows(self) -> Iterator[tuple[str, float, list[tuple[str, str]]]]:
        """The table: each x, its place in the picture, and for each line (mean, interval) there."""
        columns = [(line, {x: at for at, x in enumerate(line.x.tolist())}) for line in self.chart.lines]
        for x in self.chart.places:
            yield f"{x:g}", round(self.x(x), 1), [_cell(line, at.get(x)) for line, at in columns]

    @property
    def x_ticks(self) -> Sequence[float]:
        first, last = self.chart.places[0], self.chart.places[-1]
        if self.chart.log:
            ticks = epsilon_ticks(first * 0.999, last * 1.001)
        else:
            ticks = [tick for tick in _round_ticks(first, last) if first - 1e-9 <= tick <= last + 1e-9]
        return ticks or self.chart.places

    @property
    def y_ticks(self) -> list[float]:
        low, high = self.chart.limits
        return [tick for tick in _round_ticks(low, high) if low <= tick <= high]

    def points(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> list[tuple[float, float]]:
        """Returns the places of the finite ones of a line's values."""
        return [
            (self.x(a), self.y(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True) if math.isfinite(b)
        ]

    @staticmethod
    def path(points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)

    @property
    def level_names(self) -> Iterator[tuple[str, float]]:
        named = [level for level in self.chart.levels if level.look == GREY_LEVEL]
        heights = [self.y(level.y) - 5 for level in named]
        placed = spread(heights, _NAME_GAP, self.top + _NAME_GAP, self.bottom - 5)
        return zip([level.name for level in named], placed, strict=True)

    @property
    def labels(self) -> list[dict[str, Any]]:
        """The name of each level and line: the end to which it is tied, (x, y), and its height, `at`."""
        found: list[dict[str, Any]] = [
            {
                "name": f"{each.name} {each.y:.3f}",
                "x": self.right,
                "y": self.y(each.y),
                "look": each.look,
                "line": None,
            }
            for each in self.chart.levels
            if each.labelled
        ]
        for rank, line in enumerate(self.chart.lines):
            finite = line.y[np.isfinite(line.y)]
            x, y = self.points(line.x, line.y)[-1] if len(finite) else (self.right, self.top)
            above = not len(finite) or finite[-1] > self.chart.limits[1]
            found.append(
                {"name": line.name + " ↑" * bool(above), "x": x, "y": y, "look": line.look, "line": rank}
            )
        targets = [min(max(each["y"], self.top), self.bottom) for each in found]
        placed = spread(targets, _LABEL_GAP, self.top + 4, self.bottom)
        return [{**each, "y": y, "at": at} for each, y, at in zip(found, targets, placed, strict=True)]


def _round_ticks(low: float, high: float) -> list[float]:
    return [float(tick) for tick in MaxNLocator(6, steps=(1, 2, 5, 10)).tick_values(low, high)]


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

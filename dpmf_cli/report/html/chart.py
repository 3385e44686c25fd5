"""A chart as data: lines over a common axis, and levels across it. `svg.py` draws it; the page lists its values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmf_cli.report.figures.looks import Look
from dpmf_cli.report.figures.style import Dash

Point = tuple[float, float, float, float]
"""x, y, and the ends of the band around y; NaN where there is no band."""


@dataclass(frozen=True)
class ChartLine:
    """One curve. `colour` and `marker` are numbers in the page's palette and markers; None is a baseline's grey.

    `marks` are (x, y) of its crossings.
    """

    name: str
    points: tuple[Point, ...]
    colour: int | None
    marker: int
    dash: Dash = Dash.MEASURED
    marks: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Level:
    """A line across the chart. `look` is that of its curve; None is a baseline's grey, with the name at the line.

    A level whose look says enough may have no label in the picture (`labelled`).
    """

    name: str
    y: float
    dash: Dash = Dash.MEASURED
    look: Look | None = None
    labelled: bool = True

    @property
    def colour(self) -> int | None:
        return None if self.look is None else self.look.colour


@dataclass(frozen=True)
class Chart:
    """What a chart shows. `low` and `high` are the ends of its y axis: lines are cut there.

    key       a word without spaces, unique in a page
    notes     sentences below the chart: what bands and circles mean, which curves are not drawn
    heading   heading above this chart and the charts after it; "" if an earlier chart has the heading
    """

    key: str
    title: str
    x_name: str
    y_name: str
    lines: tuple[ChartLine, ...]
    levels: tuple[Level, ...]
    low: float
    high: float
    log: bool = False
    notes: tuple[str, ...] = ()
    heading: str = ""

    @cached_property
    def places(self) -> list[float]:
        """All x at which some line has a point, ascending."""
        return sorted({point[0] for line in self.lines for point in line.points})


def limits(lines: Sequence[ChartLine], levels: Sequence[Level]) -> tuple[float, float]:
    """Returns the ends of a y axis that shows all lines and levels, bands included."""
    ends = [end for line in lines for point in line.points for end in point[1:] if np.isfinite(end)]
    ends += [level.y for level in levels if np.isfinite(level.y)]
    lowest, highest = min(ends), max(ends)
    margin = 0.06 * (highest - lowest) or 0.05 * abs(highest) or 1.0
    return lowest - margin, highest + margin

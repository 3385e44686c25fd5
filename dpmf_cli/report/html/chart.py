"""A chart as data: lines over a common axis, and levels across it. `svg.py` draws it, the page lists its values."""

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
    """One curve. `colour` and `marker` are numbers of the page's palette and marker shapes; a baseline is grey, None.

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
    """A line across the whole chart. `look` is that of the curve that it belongs to, None for the grey of baselines,
    whose names stand at their lines; it may go without a label in the picture where its look says enough."""

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
    """What a chart shows. `low` and `high` are the ends of its y axis: what lies beyond is cut.

    key       unique in a page, a word without spaces
    notes     sentences below it: what bands and circles mean, what is not drawn
    heading   what stands above it and the charts after it; "" where it belongs to those before it
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
    """Ends of a y axis on which all of it is in sight, bands included."""
    ends = [end for line in lines for point in line.points for end in point[1:] if np.isfinite(end)]
    ends += [level.y for level in levels if np.isfinite(level.y)]
    lowest, highest = min(ends), max(ends)
    margin = 0.06 * (highest - lowest) or 0.05 * abs(highest) or 1.0
    return lowest - margin, highest + margin

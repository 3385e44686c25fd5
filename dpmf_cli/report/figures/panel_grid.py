"""Draws panels in a grid: a column for each data set, a row for each guarantee, each panel on axes of its own.

No two panels share an axis, because neither an ε nor its cost means the same in two panels.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmf_cli.report.figures.labels import End, label_ends, label_width
from dpmf_cli.report.figures.style import GREY

# Inches, and points.
_WIDTH, _LEFT, _TOP, _BOTTOM, _NOTES = 6.2, 0.65, 0.35, 0.5, 0.6
_LEAST_HEIGHT, _LABEL_GAP, _LABEL_OFFSET = 2.2, 0.115, 0.2
_NOTE_SIZE, _TITLE_SIZE = 7.0, 9.0
LABEL_SIZE = 6.5
"""The size of the names beside and in a panel, in points."""

Row = TypeVar("Row", bound=Hashable)
"""The key of a row of the grid."""


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the name of its x axis, the number of labels for which it has room, and its drawing.

    draw   draws into axes, and returns the ends of lines, to be labelled beside the axes
    """

    title: str
    x_name: str
    labels: int
    draw: Callable[[Axes], Sequence[End]]


def draw_grid(panels: Mapping[tuple[str, Row], Panel], rows: Iterable[Row], notes: Sequence[str]) -> Figure:
    """Draws the panels, given by (column, row), and `notes` as lines below them.

    Columns are in order of first appearance. Rows are in the order of `rows`; a row without a panel is left out.
    """
    columns, used = list(dict.fromkeys(column for column, _ in panels)), {row for _, row in panels}
    heights = {
        row: max(_height(panels.get((column, row))) for column in columns) for row in rows if row in used
    }
    width, height = _WIDTH * len(columns), sum(heights.values()) + _NOTES
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.text(0.1 / width, 0.1 / height, "\n".join(notes), fontsize=_NOTE_SIZE, color=GREY, va="bottom")
    top = height
    for row, tall in heights.items():
        top -= tall
        for place, column in enumerate(columns):
            if panel := panels.get((column, row)):
                axes = figure.add_axes((0.1, 0.1, 0.5, 0.5))
                ends = panel.draw(axes)
                axes.set_title(panel.title, loc="left", parse_math=False, fontsize=_TITLE_SIZE)
                axes.set_xlabel(panel.x_name)
                _place(figure, axes, ends, left=_WIDTH * place, bottom=top, height=tall)
    return figure


def _height(panel: Panel | None) -> float:
    return max(_LEAST_HEIGHT, _LABEL_GAP * (panel.labels if panel else 0)) + _TOP + _BOTTOM


def _place(
    figure: Figure, axes: Axes, ends: Sequence[End], *, left: float, bottom: float, height: float
) -> None:
    """Puts a panel at its place, given in inches, and its labels beside it."""
    whole_width, whole_height = figure.get_size_inches()
    inner = height - _TOP - _BOTTOM
    shrunk = LABEL_SIZE / 9.0  # label_width measures at the style's own size
    width = _WIDTH - _LEFT - _LABEL_OFFSET - shrunk * label_width(figure, ends) - 0.1
    axes.set_position(
        (
            (left + _LEFT) / whole_width,
            (bottom + _BOTTOM) / whole_height,
            width / whole_width,
            inner / whole_height,
        )
    )
    before = len(axes.texts)
    label_ends(axes, ends, gap=_LABEL_GAP / inner, offset=_LABEL_OFFSET / width)
    for text in axes.texts[before:]:
        text.set_fontsize(LABEL_SIZE)

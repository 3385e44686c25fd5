"""Places labels at the ends of lines: they keep a distance from each other, and move as little as possible."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure


@dataclass(frozen=True)
class End:
    """The end of a drawn line, to be labelled there; `x` and `y` are data coordinates; `y` is NaN if diverged."""

    text: str
    colour: str
    x: float
    y: float


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Returns positions in [low, high], at least `gap` apart, nearest to `targets` in least squares; in input order.

    With positions sorted and y_i = x_i − i·gap, "at least `gap` apart" means that y never falls, so y is the
    isotonic regression of the targets, found by pooling adjacent violators (Barlow et al., Statistical
    Inference under Order Restrictions, 1972), clipped to the range. If the labels do not fit, they are
    spaced evenly.
    """
    count = len(targets)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = sorted(range(count), key=lambda index: targets[index])
    blocks: list[tuple[float, int]] = []  # mean and size of runs of equal y
    for rank, index in enumerate(order):
        mean, size = targets[index] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, width = blocks.pop()
            mean, size = (before * width + mean * size) / (width + size), width + size
        blocks.append((mean, size))
    top = high - (count - 1) * gap
    placed = [min(max(mean, low), top) for mean, size in blocks for _ in range(size)]
    positions = [0.0] * count
    for rank, index in enumerate(order):
        positions[index] = placed[rank] + rank * gap
    return positions


def label_width(figure: Figure, ends: Sequence[End]) -> float:
    """Returns the width of the widest label, in inches."""
    texts = [figure.text(0, 0, end.text, parse_math=False) for end in ends]
    width = max(text.get_window_extent().width for text in texts) / figure.dpi
    for text in texts:
        text.remove()
    return float(width)


def label_ends(axes: Axes, ends: Sequence[End], *, gap: float, offset: float) -> None:
    """Writes the labels in a column right of the axes, tied to their lines; `gap`, `offset` in axes units."""
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

"""The points of a drawn line."""

from typing import Any

import numpy as np
from matplotlib.lines import Line2D


def xs(line: Line2D) -> list[Any]:
    points: list[Any] = np.asarray(line.get_xdata()).tolist()
    return points


def ys(line: Line2D) -> list[Any]:
    points: list[Any] = np.asarray(line.get_ydata()).tolist()
    return points

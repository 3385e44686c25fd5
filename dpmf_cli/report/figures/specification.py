"""The specification curve of an exploration: settings ordered by distance from print, with their choices below.

After Simonsohn, Simmons and Nelson, Specification curve analysis, Nature Human Behaviour 4, 2020.
"""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.papers.record import Explored
from dpmf_cli.papers.verdicts import FAR, deviation, shares_held
from dpmf_cli.report.figures.style import COLOURS, GREY, file_of, new_figure

_WIDTH, _TOP_HEIGHT, _ROW = 9.0, 2.8, 0.15


def specification_bytes(explored: Explored, form: str) -> bytes:
    """Draws the curve as PNG, SVG or PDF.

    The upper axes show for each setting how far each printed cell is off, in tolerances (the dots), and their median.
    For a paper without printed cells they show which fractions of its claims hold, and their mean. The lower axes
    have a mark for each choice that a setting takes. Settings are in ascending order of the line in the upper axes.
    """
    return file_of(lambda: _draw(explored), form)


def _draw(explored: Explored) -> Figure:
    score, dots, name = _scores(explored)
    order = np.argsort(score, kind="stable")
    rows = sum(map(len, explored.open.values())) + len(explored.open)
    height = _TOP_HEIGHT + _ROW * rows + 0.5
    figure = new_figure(_WIDTH, height)
    left, right = 0.38, 0.60
    above = figure.add_axes((left, 1 - (_TOP_HEIGHT - 0.3) / height, right, (_TOP_HEIGHT - 0.6) / height))
    below = figure.add_axes((left, 0.3 / height, right, 1 - (_TOP_HEIGHT + 0.4) / height))
    places = np.arange(len(order))
    above.plot(
        np.repeat(places, dots.shape[1]),
        dots[order].ravel(),
        ".",
        color=COLOURS[4],
        markersize=2.5,
        alpha=0.6,
    )
    above.plot(places, score[order], color=COLOURS[0], linewidth=1.6)
    above.axhline(0, color=GREY, linewidth=0.6)
    above.set_ylabel(name)
    above.set_xlim(-1, len(order))
    above.set_xticks([])
    above.spines[["top", "right"]].set_visible(False)
    for at, tried in enumerate(explored.tried):
        if not any(tried.setting):
            place = float(np.flatnonzero(order == at)[0])
            above.axvline(place, color=GREY, linewidth=0.6, linestyle=":")
            above.text(place, above.get_ylim()[1], "shipped", fontsize=7, ha="center", color=GREY)
    above.set_title(f"{explored.title}: {len(order)} settings", loc="left", fontsize=9)
    _draw_choices(below, explored, order)
    return figure


def _scores(explored: Explored) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Returns (S,) the scores by which settings are ordered, (S, K) their dots, and the name of the axis."""
    dots: list[list[float]]
    if explored.printed:
        dots = [
            [
                float(np.clip(deviation(cell, tried.cells[name][1]), -FAR, FAR))
                if name in tried.cells
                else np.nan
                for name, cell in explored.printed.items()
            ]
            for tried in explored.tried
        ]
        return *_over(np.median, dots), "cells: tolerances off print\n(line: their median)"
    claims = sorted({claim for tried in explored.tried for claim in tried.claims})
    held = [dict(shares_held(explored, claim)) for claim in claims]
    dots = [[each.get(tried.setting, np.nan) for each in held] for tried in explored.tried]
    return *_over(np.mean, dots), "parts of claims that hold\n(line: their mean)"


def _over(
    score: Callable[[NDArray[np.float64]], np.float64], dots: list[list[float]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (S,) the score of each row's numbers, NaN if it has none, and the rows."""
    rows = np.array(dots)
    known = np.isfinite(rows)
    return np.array(
        [score(row[at]) if at.any() else np.nan for row, at in zip(rows, known, strict=True)]
    ), rows


def _draw_choices(axes: Axes, explored: Explored, order: NDArray[np.intp]) -> None:
    """Draws a row for each value, with the values of a choice together, and a mark for each setting that takes it."""
    chosen = np.array([each.setting for each in explored.tried])[order]
    height, ticks, names = 0, [], []
    for at, (choice, values) in enumerate(explored.open.items()):
        for rank, value in enumerate(values):
            places = np.flatnonzero(chosen[:, at] == rank)
            colour = COLOURS[at % len(COLOURS)]
            axes.plot(places, np.full(len(places), -height), "|", color=colour, markersize=5)
            ticks.append(-height)
            names.append(f"{choice}: {value}" if not rank else value)
            height += 1
        height += 1
    axes.set_yticks(ticks, names, fontsize=6.5)
    axes.set_xlim(-1, len(order))
    axes.set_ylim(-height + 1, 1)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)

"""Figures that are not of an experiment: an exploration's specification curve, and the noise of the local model.

The specification curve has settings ordered by distance from print, with their choices below, after Simonsohn,
Simmons and Nelson, Specification curve analysis, Nature Human Behaviour 4, 2020. The noise is figure 2 of Neera et
al. 2020: what Laplace and bounded Laplace add to the same ratings.
"""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.papers.record import Explored
from dpmf_cli.papers.verdicts import FAR, deviation, shares_held
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace
from dpmf_cli.report.figures.style import COLOURS, GREY, file_of, new_figure

_WIDTH, _TOP_HEIGHT, _ROW = 9.0, 2.8, 0.15


def specification_bytes(explored: Explored, form: str) -> bytes:
    """Draws the curve as PNG, SVG or PDF.

    The upper axes show for each setting how far each printed cell is off, in tolerances (the dots), and their median.
    For a paper without printed cells they show which fractions of its claims hold, and their mean. The lower axes
    have a mark for each choice that a setting takes. Settings are in ascending order of the line in the upper axes.
    """

    def draw() -> Figure:
        score, dots, name = _scores(explored)
        order = np.argsort(score, kind="stable")
        rows = sum(map(len, explored.open.values())) + len(explored.open)
        height = _TOP_HEIGHT + _ROW * rows + 0.5
        figure = new_figure(_WIDTH, height)
        left, right = 0.38, 0.60
        above = figure.add_axes((left, 1 - (_TOP_HEIGHT - 0.3) / height, right, (_TOP_HEIGHT - 0.6) / height))
        below = figure.add_axes((left, 0.3 / height, right, 1 - (_TOP_HEIGHT + 0.4) / height))
        places, points = np.arange(len(order)), dots[order].ravel()
        above.plot(np.repeat(places, dots.shape[1]), points, ".", color=COLOURS[4], markersize=2.5, alpha=0.6)
        above.plot(places, score[order], color=COLOURS[0], linewidth=1.6)
        above.axhline(0, color=GREY, linewidth=0.6)
        above.set_ylabel(name)
        above.spines[["top", "right"]].set_visible(False)
        for at, tried in enumerate(explored.tried):
            if not any(tried.setting):
                place = float(np.flatnonzero(order == at)[0])
                above.axvline(place, color=GREY, linewidth=0.6, linestyle=":")
                above.text(place, above.get_ylim()[1], "shipped", fontsize=7, ha="center", color=GREY)
        above.set_title(f"{explored.title}: {len(order)} settings", loc="left", fontsize=9)
        # A row for each value, with the values of a choice together, and a mark for each setting that takes it.
        chosen = np.array([each.setting for each in explored.tried])[order]
        row, ticks, names = 0, [], []
        for at, (choice, values) in enumerate(explored.open.items()):
            for rank, value in enumerate(values):
                taken = np.flatnonzero(chosen[:, at] == rank)
                colour = COLOURS[at % len(COLOURS)]
                below.plot(taken, np.full(len(taken), -row), "|", color=colour, markersize=5)
                ticks.append(-row)
                names.append(f"{choice}: {value}" if not rank else value)
                row += 1
            row += 1
        below.set_yticks(ticks, names, fontsize=6.5)
        below.set_ylim(-row + 1, 1)
        below.tick_params(length=0)
        below.spines[:].set_visible(False)
        for axes in (above, below):
            axes.set_xlim(-1, len(order))
            axes.set_xticks([])
        return figure

    return file_of(draw, form)


def _scores(explored: Explored) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Returns (S,) the scores by which settings are ordered, (S, K) their dots, and the name of the axis.

    A score is NaN if its setting has no dot.
    """
    if explored.printed:
        name = "cells: tolerances off print\n(line: their median)"
        dots = [
            [
                np.clip(deviation(cell, tried.cells[key][1]), -FAR, FAR) if key in tried.cells else np.nan
                for key, cell in explored.printed.items()
            ]
            for tried in explored.tried
        ]
    else:
        name = "parts of claims that hold\n(line: their mean)"
        claims = sorted({claim for tried in explored.tried for claim in tried.claims})
        held = [dict(shares_held(explored, claim)) for claim in claims]
        dots = [[each.get(tried.setting, np.nan) for each in held] for tried in explored.tried]
    rows = np.array(dots, dtype=np.float64)
    known, score = np.isfinite(rows), np.median if explored.printed else np.mean
    scores = [score(row[at]) if at.any() else np.nan for row, at in zip(rows, known, strict=True)]
    return np.array(scores), rows, name


EPSILONS = (0.1, 1.0)
SAMPLES = 100_000


def noise_samples(
    ratings: Ratings, epsilon: float, *, seed: int, samples: int = SAMPLES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (samples,) Laplace(1/ε) and (samples,) r* − r of bounded Laplace, on [0, 1], for random ratings.

    Both mechanisms invert their CDF at the same uniforms.
    """
    rng = named_generator(seed, "noise histograms", repr(epsilon))
    drawn = ratings.values[rng.integers(len(ratings), size=samples)].astype(np.float64)
    values = (drawn - ratings.scale.minimum) / ratings.scale.width
    uniforms = np.maximum(rng.random((samples, 1)), 2.0**-54)
    bounded = BoundedLaplace().decoded(values, uniforms, np.array([epsilon]))[:, 0] - values
    centred = uniforms[:, 0] - 0.5
    return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / epsilon, bounded


def noise_figure(ratings: Ratings, title: str, form: str = "png", *, seed: int = 2020) -> bytes:
    """Draws the four histograms as PNG, SVG or PDF; equal arguments give equal bytes."""

    def draw() -> Figure:
        figure = new_figure(7.0, 4.6)
        figure.set_layout_engine("constrained")
        for row, epsilon in zip(figure.subplots(len(EPSILONS), 2), EPSILONS, strict=True):
            both = noise_samples(ratings, epsilon, seed=seed)
            names = ("Laplace", "bounded Laplace")
            for panel, name, noise, colour in zip(row, names, both, COLOURS[:2], strict=True):
                panel.hist(noise, bins=80, density=True, color=colour)
                panel.set_title(f"{name}, ε = {epsilon:g}", loc="left", fontsize=9)
                panel.set_xlabel(f"noise on [0, 1]; mean {noise.mean():.3f}, deviation {noise.std():.3f}")
                panel.spines[["top", "right"]].set_visible(False)
            row[0].set_ylabel("density")
        figure.suptitle(f"{title}: {SAMPLES:,} draws each", fontsize=10, x=0.01, ha="left")
        return figure

    return file_of(draw, form)

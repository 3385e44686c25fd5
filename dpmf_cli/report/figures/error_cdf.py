"""The distribution of errors as CSV and figures: over x as in Zhang et al. 2018, figure 3, and over a swept parameter
as in figure 5."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.report.figures.curves_csv import exact
from dpmf_cli.report.figures.looks import looks
from dpmf_cli.report.figures.shown import is_drawable, level_names, set_title
from dpmf_cli.report.figures.style import COLOURS, DASHES, GREY, MARKER_SIZE, MARKERS, Dash, drawing, file_of
from dpmf_cli.report.figures.sweeps import Band, SweptLine, panels_bytes, swept_lines
from dpmf_cli.terminal import csv_text

FRACTION_NOTE = "Bands: ± one standard deviation over folds and runs. Level: not swept."
X_NAME, Y_NAME = "x, rating units", "fraction of errors that are at most x"
_MOST_EPSILONS = 3
"""If a grid has more ε than this, a figure over x shows only the largest."""
_MOST_PANELS = 4


def has_error_cdf(experiment: Experiment) -> bool:
    """Whether the distribution of errors was asked for."""
    return any(curve.error_cdf is not None for curve in experiment.curves)


def error_cdf_csv(experiment: Experiment) -> str:
    """Returns one row per curve or baseline, ε and x: the fraction of absolute errors that are at most x.

    The fraction has its mean and standard deviation over folds × runs. They are empty if a task has no result; the
    deviation of a single number is empty too.
    """
    rows = [[measured.label, *row] for measured in _all(experiment) for row in _rows(measured)]
    return csv_text([("label", "epsilon", "x", "mean", "sd"), *rows])


def swept_error_cdf_csv(experiment: Experiment, parameter: str) -> str:
    """Returns the rows of `error_cdf_csv` for entries that sweep the parameter, each with the parameter's value."""
    rows = [
        [measured.line, exact(measured.swept[1]), *row]
        for measured in _all(experiment)
        if measured.swept and measured.swept[0] == parameter
        for row in _rows(measured)
    ]
    return csv_text([("line", parameter, "epsilon", "x", "mean", "sd"), *rows])


def swept_error_cdf_bytes(experiment: Experiment, parameter: str, form: str) -> bytes:
    """Draws the fraction of errors that are at most x over a swept parameter: a panel for each x, or for some."""
    panels = swept_error_cdfs(experiment, parameter)
    return panels_bytes(experiment, parameter, panels, FRACTION_NOTE, form)


def swept_error_cdfs(experiment: Experiment, parameter: str) -> list[tuple[str, list[SweptLine]]]:
    """Returns for each x, or for some of many, the name of its y axis and the lines over the swept parameter."""
    limits = experiment.curves[0].limits
    shown = np.unique(np.linspace(0, len(limits) - 1, min(len(limits), _MOST_PANELS)).round().astype(int))

    def of(at: int) -> list[SweptLine]:
        def fraction(measured: Measured) -> Band:
            mean, sd = _moments(measured)
            spread = np.nan_to_num(sd[:, at])
            return mean[:, at], mean[:, at] - spread, mean[:, at] + spread

        return swept_lines(experiment, parameter, fraction)

    return [(f"errors at most {limits[at]:g}", of(int(at))) for at in shown]


def error_cdf_bytes(experiment: Experiment, form: str) -> bytes:
    """Draws the distribution of errors of all entries without a sweep, as PNG, SVG or PDF.

    At least one curve must be complete.
    """
    figure = Figure(figsize=(7.6, 4.6))
    FigureCanvasAgg(figure)
    with drawing():
        axes = figure.add_axes((0.09, 0.15, 0.5, 0.75))
        _draw(axes, experiment)
        handles, names = axes.get_legend_handles_labels()
        legend = figure.legend(
            handles, names, loc="center right", bbox_to_anchor=(1.0, 0.53), frameon=False,
            labelcolor="linecolor", fontsize=8,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
        taken = legend.get_window_extent().width / figure.dpi / 7.6
        axes.set_position((0.09, 0.15, max(0.89 - taken, 0.3), 0.75))
        set_title(axes, experiment, [each for each in experiment.curves if each.swept is None])
        note = "The legend lists the lines from top to bottom, by their average over x."
        figure.text(0.012, 0.012, note, fontsize=7, color=GREY)
        return file_of(figure, form)


@dataclass(frozen=True)
class ErrorCdfLine:
    """One line: `fractions` (X,) of the errors that are at most x.

    `colour` is a number in `COLOURS`, or None for the grey of baselines; `marker` is a number in `MARKERS`.
    """

    name: str
    fractions: NDArray[np.float64]
    colour: int | None
    marker: int
    dash: Dash = Dash.MEASURED


def error_cdf_lines(experiment: Experiment) -> list[ErrorCdfLine]:
    """Returns a line for each ε of each curve without a sweep, and for each baseline, the highest mean first."""
    curves = [each for each in experiment.curves if each.swept is None and is_drawable(each)]
    called = level_names(experiment)
    found: list[tuple[Measured, str, NDArray[np.float64], Dash]] = []
    for curve in curves:
        mean, _ = _moments(curve)
        grid = curve.along(experiment.axis)
        first = 0 if len(grid) <= _MOST_EPSILONS else len(grid) - 1
        for at in range(len(grid) - 1, first - 1, -1):
            name = f"{curve.label}, {'θ' if experiment.axis == 'theta' else 'ε'} = {grid[at]:g}"
            found.append((curve, name, mean[at], Dash.MEASURED))
        twin = curve.without_noise()
        if twin is not None and is_complete(twin):
            found.append((curve, f"{curve.label}, no noise", _moments(twin)[0][0], Dash.NO_NOISE))
    drawn = [
        ErrorCdfLine(name, fractions, look.colour, look.marker, dash)
        for (_, name, fractions, dash), look in zip(
            found, looks([curve.label for curve, *_ in found]), strict=True
        )
    ]
    levels = [each for each in experiment.baselines if each.swept is None and is_drawable(each)]
    for rank, baseline in enumerate(levels):
        fractions = _moments(baseline)[0][0]
        drawn.append(ErrorCdfLine(called[baseline.label], fractions, None, rank % len(MARKERS)))
    return sorted(drawn, key=lambda line: -float(line.fractions.mean()))


def _draw(axes: Axes, experiment: Experiment) -> None:
    limits = np.array(experiment.curves[0].limits)
    for line in error_cdf_lines(experiment):
        axes.plot(
            limits, line.fractions, linestyle=DASHES[line.dash], label=line.name,
            color=GREY if line.colour is None else COLOURS[line.colour],
            linewidth=1.0 if line.colour is None else 1.6,
            marker=MARKERS[line.marker], markersize=MARKER_SIZE, markevery=max(1, len(limits) // 8),
        )  # fmt: skip
    axes.set_xlabel(X_NAME)
    axes.set_ylabel(Y_NAME)
    axes.spines[["top", "right"]].set_visible(False)


def _all(experiment: Experiment) -> Iterator[Measured]:
    """Yields curves and baselines, each followed by its twin without noise if that was measured."""
    for measured in (*experiment.curves, *experiment.baselines):
        yield measured
        twin = measured.without_noise()
        if twin is not None:
            yield twin


def _moments(measured: Measured) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (E, X) mean and (E, X) standard deviation over folds × runs; NaN where there is none."""
    assert measured.error_cdf is not None
    folds, runs, *shape = measured.error_cdf.shape
    flat = measured.error_cdf.reshape(folds * runs, *shape)
    sd = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(tuple(shape), np.nan)
    return flat.mean(axis=0), sd


def _rows(measured: Measured) -> Iterator[list[str]]:
    """Yields epsilon, x, mean and sd as text."""
    mean, sd = _moments(measured)
    for at, epsilon in enumerate(measured.epsilons):
        for x, *moments in zip(measured.limits, mean[at], sd[at], strict=True):
            yield [exact(value) for value in (epsilon, x, *moments)]

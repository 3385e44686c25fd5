"""Figures of sweeps: RMSE over another parameter than ε, as Friedman et al. 2016, figure 6."""

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.report.curves import band
from dpmf_cli.report.figures import COLOURS, METADATA, drawing, is_drawable
from dpmf_cli.report.labels import spread

_GAP = 0.045
"""Least distance of two labels, in heights of the axes."""


def swept_parameters(experiment: Experiment) -> list[str]:
    """The parameters that sweeps of the experiment vary, each of them the axis of a figure."""
    return list(
        dict.fromkeys(name for each in _drawable(experiment) if each.swept for name in each.swept[:1])
    )


def sweep_bytes(experiment: Experiment, parameter: str, form: str) -> bytes:
    """RMSE over a swept parameter, as PNG or SVG: a line for each algorithm and each ε (or θ) of its grid."""
    figure = Figure(figsize=(7.0, 4.2))
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    with drawing():
        axes = figure.add_axes((0.1, 0.16, 0.66, 0.73))
        _draw(axes, experiment, parameter)
        title = f"{experiment.title}, {experiment.folds} folds × {experiment.runs} runs"
        axes.set_title(title, loc="left", parse_math=False)
        figure.text(0.012, 0.012, "Bands: 95 % bootstrap interval of the mean.", fontsize=7, color="#666666")
        figure.savefig(buffer, format=form, dpi=150, metadata=METADATA[form])
    return buffer.getvalue()


def _drawable(experiment: Experiment) -> list[Measured]:
    return [each for each in (*experiment.baselines, *experiment.curves) if each.swept and is_drawable(each)]


def _draw(axes: Axes, experiment: Experiment, parameter: str) -> None:
    lines: dict[tuple[str, float], list[tuple[float, float, float, float]]] = {}
    for measured in _drawable(experiment):
        if measured.swept and measured.swept[0] == parameter and is_complete(measured):
            low, high = band(experiment, measured)
            for at, place in enumerate(measured.along(experiment.axis)):
                key = (measured.algorithm.upper(), float(place))
                point = (measured.swept[1], float(measured.mean()[at]), float(low[at]), float(high[at]))
                lines.setdefault(key, []).append(point)
    ends = []
    sign = "θ" if experiment.axis == "theta" else "ε"
    for index, ((algorithm, place), points) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        value, mean, low, high = np.array(sorted(points)).T
        axes.fill_between(value, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(value, mean, color=colour, linewidth=1.6, marker="o", markersize=3)
        name = f"{algorithm}, no noise" if np.isinf(place) else f"{algorithm}, {sign} = {place:g}"
        ends.append((name, colour, float(mean[-1])))
    axes.set_xlabel(parameter)
    axes.set_ylabel("RMSE")
    axes.spines[["top", "right"]].set_visible(False)
    bottom, top = axes.get_ylim()
    heights = [(level - bottom) / (top - bottom) for *_, level in ends]
    for (name, colour, _), height in zip(ends, spread(heights, _GAP, 0.0, 1.0), strict=True):
        axes.text(1.02, height, name, transform=axes.transAxes, va="center", color=colour)

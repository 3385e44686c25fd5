"""What figures and charts can show of an experiment, with which looks, and under which names."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes

from dpmf_cli.evaluation.crossings import crossing_targets, is_complete, measure_crossing
from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from dpmf_cli.report.figures.looks import Look, looks
from dpmf_cli.report.tables.baselines import NAMES

# Points, and how many characters of that size fill a line of the figure.
_TITLE_SIZE, _TITLE_CHARACTERS = 10.8, 72


def is_drawable(curve: Measured) -> bool:
    """Whether a figure can show a curve: all its tasks have a result, and at least one model converged."""
    return is_complete(curve) and bool(np.isfinite(curve.mean()).any())


def with_looks(curves: Sequence[Measured]) -> Iterator[tuple[Measured, Look]]:
    """Yields the complete ones of `curves`, each with its look.

    Colours start anew with each pair of neighbours and mode: an algorithm run in both modes keeps its colour.
    """
    of_pair = Counter[tuple[str, str]]()
    ranks = []
    for curve in curves:
        pair = curve.neighbours, curve.mode
        ranks.append(of_pair[pair])
        of_pair[pair] += 1
    yield from (pair for pair in zip(curves, looks(ranks), strict=True) if is_complete(pair[0]))


def crossing_points(experiment: Experiment, curve: Measured) -> Iterator[tuple[float, float]]:
    """Yields (ε or θ, value) of each crossing of a complete curve that lies on the grid."""
    for target in crossing_targets(experiment):
        crossing = measure_crossing(experiment, curve, target)
        x = crossing.theta if experiment.axis == "theta" else crossing.reproduced
        if x is not None:
            yield x, level_of(target)


def level_of(target: Measured | Reference) -> float:
    """Returns the level of a baseline in the metric that is shown, or the RMSE of a printed reference."""
    return target.rmse if isinstance(target, Reference) else float(target.values[:, :, 0].mean())


def level_names(experiment: Experiment) -> dict[str, str]:
    """Returns the name of each baseline in figures, by its label.

    It is the papers' name, or the label if several baselines have the same algorithm.
    """
    of_key = Counter(baseline.algorithm for baseline in experiment.baselines)
    return {
        each.label: each.label
        if of_key[each.algorithm] > 1
        else NAMES.get(each.algorithm) or each.line or each.algorithm.upper()
        for each in experiment.baselines
    }


def set_title(axes: Axes, experiment: Experiment, curves: Sequence[Measured]) -> None:
    """Writes above the axes what was measured; a long title gets smaller letters."""
    neighbours = dict.fromkeys(curve.neighbours for curve in curves)
    modes = dict.fromkeys(f"{curve.mode} mode" for curve in curves)
    folds = "1 fold" if experiment.folds == 1 else f"{experiment.folds} folds"
    runs = "1 run" if experiment.runs == 1 else f"{experiment.runs} runs"
    title = ", ".join([experiment.title, *neighbours, *modes, f"{folds} × {runs}"])
    size = min(_TITLE_SIZE, _TITLE_SIZE * _TITLE_CHARACTERS / len(title))
    axes.set_title(title, loc="left", fontsize=size, parse_math=False)

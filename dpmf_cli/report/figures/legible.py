"""Limits a figure to lines that can be told apart: of more lines it keeps the best, by RMSE the lowest."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured

T = TypeVar("T")

_Line = tuple[str, str, str]
"""The swept parameter ("" without a sweep), the algorithm and the name of a line."""

MOST_LINES = 50
"""The most lines of a kind in one figure. More names do not fit beside it, and the looks of lines would repeat."""


def legible(experiment: Experiment) -> Experiment:
    """Returns the experiment with only the curves and baselines for which a figure has room.

    These are the `MOST_LINES` best of each kind by the metric that is shown, in their order. The title says how many
    there are in all. All values of one entry's sweep are one line, and the lines over one swept parameter are one
    kind. Baselines that crossings are measured against are kept before others.
    """
    curves = _lines_kept(experiment.curves)
    baselines = _lines_kept(experiment.baselines, before=experiment.targets)
    cut = [
        f"{len(kept):,} of {len(lines):,} {name}"
        for name, kept, all_of_it in (
            ("curves", curves, experiment.curves),
            ("baselines", baselines, experiment.baselines),
        )
        if len(kept) < len(lines := {_line(each) for each in all_of_it})
    ]
    if not cut:
        return experiment

    def of(found: Iterable[Measured], kept: set[_Line]) -> tuple[Measured, ...]:
        return tuple(each for each in found if _line(each) in kept)

    growth, metric = experiment.growth, experiment.metric
    if growth is not None:
        stages = (
            replace(stage, curves=of(stage.curves, curves), baselines=of(stage.baselines, baselines))
            for stage in growth.stages
        )
        growth = Growth(growth.order, tuple(stages))
    best = "highest" if metric.larger_is_better else "lowest"
    return replace(
        experiment,
        title=f"{experiment.title}, {' and '.join(cut)} ({best} {metric.title})",
        curves=of(experiment.curves, curves),
        baselines=of(experiment.baselines, baselines),
        growth=growth,
    )


def lowest(found: Sequence[T], error: Callable[[T], float]) -> list[T]:
    """Returns the `MOST_LINES` of `found` with the lowest errors, in their order; of equal ones the first."""
    ranks = sorted(range(len(found)), key=lambda rank: error(found[rank]))
    return [found[rank] for rank in sorted(ranks[:MOST_LINES])]


def least_loss(measured: Measured) -> float:
    """Returns the lowest RMSE over all ε; ∞ if tasks have no result or all models diverged.

    For a metric of which more is better, it is minus the highest value.
    """
    mean = measured.metric.sign * measured.mean()
    return float(mean[np.isfinite(mean)].min(initial=math.inf)) if is_complete(measured) else math.inf


def _line(measured: Measured) -> _Line:
    if measured.swept is None:
        return "", measured.algorithm, measured.label
    return measured.swept[0], measured.algorithm, measured.line


def _lines_kept(found: Iterable[Measured], before: Sequence[str] = ()) -> set[_Line]:
    """Returns the lines for which a figure has room; lines of the algorithms `before` come first."""
    kinds: dict[str, dict[_Line, float]] = {}
    for each in found:
        lines, line = kinds.setdefault(_line(each)[0], {}), _line(each)
        error = -math.inf if each.algorithm in before else least_loss(each)
        lines[line] = min(lines.get(line, math.inf), error)
    return {line for lines in kinds.values() for line in lowest(list(lines), lines.__getitem__)}

"""What one figure has room for: of more lines than can be told apart, those that are best, by RMSE the lowest."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured

T = TypeVar("T")

_Line = tuple[str, str, str]
"""The swept parameter ("" of none), the algorithm and the name of a line."""

MOST_LINES = 50
"""Of a kind in one figure. The names of more do not fit beside it, and colours and dashes have come around before."""


def legible(experiment: Experiment) -> Experiment:
    """The experiment with those curves alone that a figure has room for, and those baselines: of each kind the
    `MOST_LINES` best by the metric that is shown, in their order. The title says of how many.

    All values of one entry's sweep are one line, and the lines over each swept parameter a kind. The baselines that
    crossings are measured against stand before others.
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
    """Those `MOST_LINES` of `found` with the lowest errors, in their order; of equal ones the first."""
    ranks = sorted(range(len(found)), key=lambda rank: error(found[rank]))
    return [found[rank] for rank in sorted(ranks[:MOST_LINES])]


def least_loss(measured: Measured) -> float:
    """The lowest RMSE of what was measured, at whichever ε; ∞ where tasks have no result or all models diverged. Of a
    metric of which more is better the highest, with a minus."""
    mean = measured.metric.sign * measured.mean()
    return float(mean[np.isfinite(mean)].min(initial=math.inf)) if is_complete(measured) else math.inf


def _line(measured: Measured) -> _Line:
    if measured.swept is None:
        return "", measured.algorithm, measured.label
    return measured.swept[0], measured.algorithm, measured.line


def _lines_kept(found: Iterable[Measured], before: Sequence[str] = ()) -> set[_Line]:
    """The lines that a figure has room for; those of the algorithms `before` first."""
    kinds: dict[str, dict[_Line, float]] = {}
    for each in found:
        lines, line = kinds.setdefault(_line(each)[0], {}), _line(each)
        error = -math.inf if each.algorithm in before else least_loss(each)
        lines[line] = min(lines.get(line, math.inf), error)
    return {line for lines in kinds.values() for line in lowest(list(lines), lines.__getitem__)}

"""What figures show of an experiment: its parts by guarantee, the lines for which there is room, names and notes."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import crossing_targets, is_complete, target_name
from dpmf_cli.evaluation.curves import Axis, Experiment, Measured, Reference
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.tables.baselines import NAMES
from dpmf_cli.report.words import lines

T = TypeVar("T")

MOST_LINES = 50
"""The most lines of a kind in one figure. More names do not fit beside it, and the looks of lines would repeat."""


def is_drawable(curve: Measured) -> bool:
    """Whether a figure can show a curve: all its tasks have a result, and at least one model converged."""
    return is_complete(curve) and bool(np.isfinite(curve.mean()).any())


def with_twins(found: Iterable[Measured]) -> Iterator[Measured]:
    """Yields each measurement, followed by its twin without noise if that was measured."""
    for measured in found:
        yield measured
        if (twin := measured.without_noise()) is not None:
            yield twin


def guarantees_of(curves: Iterable[Measured]) -> list[Guarantee]:
    """Returns the guarantees of curves, at any δ, in the order of tables."""
    found = {curve.guarantee.at_any_delta for curve in curves}
    return [guarantee for guarantee in GUARANTEES if guarantee in found]


def parts_of(experiment: Experiment) -> dict[Guarantee, Experiment]:
    """Returns a part of the experiment for each guarantee: its curves, all baselines, and the guarantee in the title.

    An ε that protects one thing says nothing about another thing, and a joint ε does not bound what everybody learns.
    Side by side on an axis such ε would look comparable, and they are not. So no figure has ε of two guarantees. An
    experiment with one guarantee has itself as its only part.
    """
    guarantees = guarantees_of(experiment.curves)
    if len(guarantees) == 1:
        return {guarantees[0]: experiment}

    def part(guarantee: Guarantee) -> Experiment:
        return experiment.changed(
            lambda found: [
                each for each in found if each.is_baseline or each.guarantee.at_any_delta == guarantee
            ],
            title=f"{experiment.title}: {guarantee}",
        )

    return {guarantee: part(guarantee) for guarantee in guarantees}


def refuse_mixed(curves: Iterable[Measured]) -> None:
    """Raises `DpmfError` if one figure may not show the curves together, because they have different guarantees."""
    guarantees = guarantees_of(curves)
    if len(guarantees) > 1:
        raise DpmfError(
            f"one figure cannot show several guarantees ({'; '.join(map(str, guarantees))}): their ε are not "
            "comparable; draw one figure for each (docs/privacy.md)"
        )


def legible(experiment: Experiment) -> Experiment:
    """Returns the experiment with only the curves and baselines for which a figure has room.

    These are the `MOST_LINES` best of each kind by the metric that is shown, in their order. The title says how many
    there are in all. All values of one entry's sweep are one line, and the lines over one swept parameter are one
    kind. Baselines that crossings are measured against are kept before others.
    """
    kept, cut = set(), []
    for name, found in (("curves", experiment.curves), ("baselines", experiment.baselines)):
        best: dict[tuple[str, str, str], float] = {}
        for each in found:
            error = (
                -math.inf if each.is_baseline and each.algorithm in experiment.targets else least_loss(each)
            )
            best[_line(each)] = min(best.get(_line(each), math.inf), error)
        of_these = {
            line
            for kind in {kind for kind, _, _ in best}
            for line in lowest([line for line in best if line[0] == kind], best.__getitem__)
        }
        if len(of_these) < len(best):
            cut.append(f"{len(of_these):,} of {len(best):,} {name}")
        kept |= of_these
    if not cut:
        return experiment
    order = "highest" if experiment.metric.larger_is_better else "lowest"
    title = f"{experiment.title}, {' and '.join(cut)} ({order} {experiment.metric.title})"
    return experiment.changed(lambda found: [each for each in found if _line(each) in kept], title=title)


def _line(measured: Measured) -> tuple[str, str, str]:
    """Returns the swept parameter ("" without a sweep), the algorithm and the name of a line."""
    if measured.swept is None:
        return "", measured.algorithm, measured.label
    return measured.swept[0], measured.algorithm, measured.line


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


def sign_of(axis: Axis) -> str:
    return "θ" if axis == "theta" else "ε"


def at_place(name: str, axis: Axis, place: float) -> str:
    """Returns the name of a line at one ε or θ."""
    return f"{name}, {sign_of(axis)} = {place:g}"


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


def title_of(experiment: Experiment, curves: Sequence[Measured]) -> str:
    """Says what was measured: the title of a figure."""
    neighbours = dict.fromkeys(curve.neighbours for curve in curves)
    modes = dict.fromkeys(f"{curve.mode} mode" for curve in curves)
    folds = "1 fold" if experiment.folds == 1 else f"{experiment.folds} folds"
    runs = "1 run" if experiment.runs == 1 else f"{experiment.runs} runs"
    return ", ".join([experiment.title, *neighbours, *modes, f"{folds} × {runs}"])


def meaning_of(curves: Sequence[Measured], axis: Axis) -> list[str]:
    """Says which δ belong to which curves, which ε the largest θ stands for, and which curves are joint DP."""
    return lines(
        "notes/figures", curves=curves, experiment=None, ends=_ends(curves, axis), cut=(), missing=()
    )


def _ends(curves: Sequence[Measured], axis: Axis) -> list[tuple[float, dict[str, list[str]]]]:
    """Returns each largest θ of a grid, and for which curves it is which ε."""
    ends: dict[float, dict[str, list[str]]] = {}
    for curve in curves if axis == "theta" else ():
        epsilon = significant(float(curve.epsilons[-1]))
        ends.setdefault(float(curve.along(axis)[-1]), {}).setdefault(epsilon, []).append(curve.label)
    return sorted(ends.items())


def notes_of(experiment: Experiment, chosen: Sequence[Measured], ceiling: float) -> list[str]:
    """Returns the notes below curves; `ceiling` is the upper end of the y axis."""
    folds, runs, _ = chosen[0].rmse.shape
    return lines(
        "notes/figures",
        curves=chosen,
        experiment=experiment,
        folds=folds,
        runs=runs,
        targets=[target_name(target) for target in crossing_targets(experiment)],
        ends=_ends(chosen, experiment.axis),
        cut=[each.label for each in chosen if is_complete(each) and not (each.mean() <= ceiling).all()],
        missing=[each.label for each in (*chosen, *experiment.baselines) if not is_complete(each)],
    )

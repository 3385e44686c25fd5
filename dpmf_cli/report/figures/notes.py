"""The notes below a figure: what its bands, markers and ε mean, and which curves are cut or missing."""

from collections.abc import Sequence

from dpmf_cli.evaluation.crossings import crossing_targets, is_complete, target_name
from dpmf_cli.evaluation.curves import Axis, Experiment, Measured
from dpmf_cli.evaluation.numbers import significant


def meaning_of(curves: Sequence[Measured], axis: Axis) -> list[str]:
    """Says which δ belong to which curves, which ε the largest θ stands for, and which curves are joint DP."""
    notes = []
    for delta in sorted({curve.delta for curve in curves if curve.delta}):
        labels = [curve.label for curve in curves if curve.delta == delta]
        whose = "all curves" if len(labels) == len(curves) else "; ".join(labels)
        notes.append(f"(ε, δ) with δ = {delta:g}: {whose}.")
    if axis == "theta":
        for largest in sorted({float(curve.along(axis)[-1]) for curve in curves}):
            found: dict[str, list[str]] = {}
            for curve in curves:
                if float(curve.along(axis)[-1]) == largest:
                    found.setdefault(significant(float(curve.epsilons[-1])), []).append(curve.label)
            claimed = "; ".join(f"{epsilon} for {', '.join(labels)}" for epsilon, labels in found.items())
            notes.append(f"ε at θ = {significant(largest)}: {claimed}.")
    joint = [curve.label for curve in curves if curve.joint]
    if joint:
        whose = "all curves" if len(joint) == len(curves) else "; ".join(joint)
        notes.append(f"Joint DP, predicting from the user's own clean ratings: {whose}.")
    return notes


def notes_of(experiment: Experiment, chosen: Sequence[Measured], ceiling: float) -> list[str]:
    """Returns the notes below the figure: what bands and markers mean, and which curves are cut or missing.

    `ceiling` is the upper end of the y axis.
    """
    folds, runs, _ = chosen[0].rmse.shape
    if folds > 1:
        over = f"the {folds} folds, widened for their overlapping training sets"
    else:
        over = "the runs of the one fold"
    notes = [f"Bands: 95 % bootstrap interval of the mean over {over}."] if folds * runs > 1 else []
    if targets := crossing_targets(experiment):
        notes.append(f"Circles: crossings of {_and([target_name(target) for target in targets])}.")
    if experiment.references:
        notes.append("Dotted: printed errors, not measured.")
    if any(curve.twin is not None for curve in chosen):
        notes.append("Dashed and level: the algorithm of that colour without noise.")
    notes += meaning_of(chosen, experiment.axis)
    cut = [curve.label for curve in chosen if is_complete(curve) and not (curve.mean() <= ceiling).all()]
    if cut:
        notes.append(f"Cut at the top: {'; '.join(cut)}.")
    missing = [one.label for one in (*chosen, *experiment.baselines) if not is_complete(one)]
    if missing:
        notes.append(f"Incomplete and not drawn: {'; '.join(missing)}.")
    return notes


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]])

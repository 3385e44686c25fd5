"""Makes the block `popularity of NAME …` of a page: where nothing beats private popularity, then tables.

A method beats it at an ε if the 95 % interval of the difference, paired by fold and run, is above 0. Of several
entries of private popularity, that with the largest mean at the ε counts.
"""

from pathlib import Path

import numpy as np

from dpmf_cli.core.terminal import signed
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Difference, differences
from dpmf_cli.experiment.results.folders import results_of
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.report.tables.layout import Group, TextTable, markdown, marked

POPULARITY = "private_popularity"

Beside = dict[float, dict[str, Difference]]
"""Each method's metric minus that of private popularity, by ε and label."""


def ranking_text(names: list[str], results: Path) -> str | None:
    """Returns the block for the experiments of these names; None if one has no results in that folder."""
    folders = [results / name for name in names]
    if not all(folder.is_dir() for folder in folders):
        return None
    every = [each.experiment for _, each in results_of(folders, results)]
    shown = [(one := each.showing(metric.key), beside(one)) for each in every for metric in each.metrics[1:]]
    said = (f"- **{each.title}, {each.metric.title}**: {beaten(of)}{unknown(each)}.\n" for each, of in shown)
    return "".join(said) + "\n" + "\n".join(markdown(table(each, of)) for each, of in shown)


def unknown(experiment: Experiment) -> str:
    """Names the methods that have no result on some fold, so that nothing is said of them."""
    missing = [each.label for each in experiment.curves if each.missing]
    return f" (not measured yet: {'; '.join(missing)})" if missing else ""


def beside(experiment: Experiment) -> Beside:
    """Compares every method with the best private popularity at each ε."""
    measured = [each for each in experiment.curves if not each.missing]
    ours = [each for each in measured if each.algorithm == POPULARITY]
    others = [each for each in measured if each.algorithm != POPULARITY]
    between = {
        (own.label, each.label): {one.epsilon: one for one in differences(own, each, experiment)}
        for own in ours
        for each in others
    }
    found: Beside = {}
    for at, epsilon in enumerate(ours[0].epsilons):
        best = ours[int(np.argmax([each.mean()[at] for each in ours]))].label
        found[epsilon] = {each.label: between[best, each.label][epsilon] for each in others}
    return found


def beats(of: Difference) -> bool:
    """Whether a method is better than private popularity, by the 95 % interval of this one difference."""
    return of.low is not None and of.low > 0


def beaten(found: Beside) -> str:
    """Says at which ε nothing beats private popularity, and which method does, or may do, at others."""
    best = {at: max(each.values(), key=lambda one: (beats(one), one.b)) for at, each in found.items()}
    unbeaten = [cell(at) for at, each in best.items() if not beats(each)]
    where = "any ε" if len(unbeaten) == len(best) else ", ".join(unbeaten)
    said = [f"nothing beats private popularity at {where}"] if unbeaten else []
    for at, each in best.items():
        if each.b > each.a:
            by = f"{signed(each.b - each.a, 4)} [{signed(each.low or 0, 4)}, {signed(each.high or 0, 4)}]"
            does = "does" if beats(each) else "has a larger mean, but its interval holds 0"
            said.append(f"at {cell(at)} {each.label_b} {does}: {by}")
    return "; ".join(said)


def cell(epsilon: float) -> str:
    """Writes an ε."""
    return "ε → 0" if epsilon <= LEAST_EPSILON else f"ε = {epsilon:g}"


def table(experiment: Experiment, found: Beside) -> TextTable:
    """Returns a metric of every method at each ε, private popularity first, and without privacy last."""

    def row(curve: Measured) -> tuple[str, ...]:
        stars = ["*" * (curve.label in each and beats(each[curve.label])) for each in found.values()]
        means = np.broadcast_to(curve.mean(), len(stars))
        return marked(curve), *(f"{mean:.4f}{star}" for mean, star in zip(means, stars, strict=True))

    order = sorted(experiment.curves, key=lambda each: each.algorithm != POPULARITY)
    every = (*order, *experiment.baselines)
    rows = tuple(row(each) for each in every if not each.missing)
    title = (
        f"{experiment.title}, {experiment.metric.title}, {experiment.folds} of {experiment.partition} folds"
    )
    notes = (
        "*: above private popularity, by a 95 % interval; ‡: joint DP; §: (ε, δ)-DP; the last rows have no privacy",
    )
    return TextTable(("method", *map(cell, found)), "l" + "r" * len(found), (Group(title, rows),), notes)

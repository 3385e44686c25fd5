"""Advice in plain words: which methods become as good as a baseline, at which ε, and what that ε protects.

The advice uses results only. It compares only methods that protect the same. It recommends a method only if its ε can
be proved for what was run.
"""

import math
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.evaluation.crossings import Crossing, End, Status, crossing_targets, target_name
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.evaluation.paired_difference import differences
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import PROMISES, Guarantee, protection_of

WIDTH = 92

MOST_NAMED = 10
"""How many methods one sentence names; of the others it gives the number."""

CALLED = {"IA": "the item average (IA)", "GE": "item and user averages together (GE)"}
"""What advice calls the baselines."""


@dataclass(frozen=True)
class Attempt:
    """How one method met one baseline, or did not: the crossing, and the claimed and the provable ε at its point.

    Both ε are NaN if the crossing has no point.
    """

    crossing: Crossing
    claimed: float
    provable: float

    @property
    def reaches(self) -> bool:
        return self.crossing.status in (Status.CROSSED, Status.BELOW_GRID)

    @property
    def proved(self) -> bool:
        """Whether the ε that the method claims can be proved."""
        return self.provable <= self.claimed * (1 + 1e-6)

    @property
    def range(self) -> tuple[float, float]:
        """The interval of the crossing, in provable ε.

        A lower end that is not a number counts as 0. An upper end that is not a number counts as ∞, or as the
        provable ε if it lies below the grid.
        """
        low, high = self.crossing.low, self.crossing.high
        at = self.crossing.reproduced
        part = self.provable / at if at else 1.0
        return (
            low * part if isinstance(low, float) else 0.0,
            high * part
            if isinstance(high, float)
            else self.provable
            if high == Status.BELOW_GRID
            else math.inf,
        )


def advice(experiments: Sequence[Experiment], crossings: Sequence[Crossing]) -> str:
    """Says what `crossings` of `experiments` show, in lines for a terminal."""
    if not experiments:
        return "There are no results to draw advice from.\n"
    return "".join(map(wrapped, paragraphs(experiments, crossings))).lstrip("\n")


def paragraphs(experiments: Sequence[Experiment], crossings: Sequence[Crossing]) -> list[str]:
    """Returns the same advice as paragraphs: a part for each experiment, then what was not tried on each dataset.

    An item of a list begins with "- ".
    """
    found: list[str] = []
    for experiment in experiments:
        of_it = [crossing for crossing in crossings if crossing.experiment == experiment.name]
        found += _experiment(experiment, [cell for cell in of_it if not cell.reference])
    for dataset in dict.fromkeys(experiment.dataset for experiment in experiments):
        on_it = [experiment for experiment in experiments if experiment.dataset == dataset]
        found += [f"Not tried on {on_it[0].title}", *(f"- {line}" for line in untried(on_it))]
    return found


def wrapped(paragraph: str) -> str:
    """Breaks a paragraph or a list item into lines, but never inside `ε = 1`."""
    bullet = paragraph.startswith("- ")
    whole = paragraph.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    filled = textwrap.fill(whole, WIDTH, subsequent_indent="  " * bullet, break_on_hyphens=False)
    return ("" if bullet else "\n") + filled.replace("\N{NO-BREAK SPACE}", " ") + "\n"


def _experiment(experiment: Experiment, crossings: list[Crossing]) -> Iterator[str]:
    curves = {curve.label: curve for curve in experiment.curves}
    targets: dict[str, Measured] = {}
    for target in crossing_targets(experiment):
        if isinstance(target, Measured):
            targets.setdefault(target_name(target), target)
    yield f"{experiment.title} ({experiment.name})"
    levels = [
        f"{CALLED.get(target_name(target), target_name(target))} {target.mean()[0]:.4f}"
        for target in crossing_targets(experiment)
        if isinstance(target, Measured) and target.missing == 0
    ]
    if levels:
        yield f"The error (RMSE) to reach: {', '.join(levels)}. {_spread(experiment)}"
    yield from _weak_targets(experiment, targets)
    groups: dict[Guarantee, list[Attempt]] = {}
    for crossing in crossings:
        attempt = attempt_of(crossing, curves.get(crossing.label))
        groups.setdefault(guarantee_of(crossing, curves.get(crossing.label)), []).append(attempt)
    if not groups:
        yield "No private method was compared with these."
    for guarantee, attempts in groups.items():
        yield f"To hide {guarantee.in_words}:"
        for attempt in attempts:
            cell = attempt.crossing
            yield f"- {_reached(attempt)}{_without_noise(cell, curves.get(cell.label), targets.get(cell.baseline))}"
        for name in dict.fromkeys(attempt.crossing.baseline for attempt in attempts):
            yield f"- {_recommended(name, [each for each in attempts if each.crossing.baseline == name])}"
    if len(groups) > 1:
        yield between(groups)


SIMPLER = {"ge": ("ia", "ua", "ga"), "ia": ("ga",)}
"""For each baseline, the baselines that know less and should not have a smaller error."""


def _weak_targets(experiment: Experiment, targets: dict[str, Measured]) -> Iterator[str]:
    """Yields a warning of the baselines that a simpler one surely beats: a method that meets them may still be bad.

    Each is named with the best of those that beat it. Surely means outside the interval of the difference, paired by
    fold.
    """
    weak: dict[str, list[str]] = {}
    for name, target in targets.items():
        simpler = map(experiment.baseline, SIMPLER.get(target.algorithm, ()))
        better = [
            each
            for each in simpler
            if each and not (each.missing or target.missing)
            if next(differences(each, target, experiment)).verdict == "worse"
        ]
        if better:
            best = min(better, key=lambda each: float(each.mean()[0]))
            found = f"{best.label} knows less and has an error of {best.mean()[0]:.4f}"
            weak.setdefault(found, []).append(name)
    for found, names in weak.items():
        yield (
            f"Beware: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} weak here. {found}. A method that "
            "is as good need not be good. On your own ratings, leave out the parameters of baselines: the baselines "
            "then choose them."
        )


def _spread(experiment: Experiment) -> str:
    """Says over which folds and runs the means and intervals are taken."""
    runs = f"{experiment.runs} run{'s' if experiment.runs > 1 else ''}"
    if experiment.folds == 1:
        over = "over runs only" if experiment.runs > 1 else "not possible"
        return f"Measured on one fold, {runs}: intervals are {over}."
    part = "" if experiment.folds == experiment.partition else f" of {experiment.partition}"
    return f"Measured on {experiment.folds}{part} folds, {runs} each; intervals are 95 %."


def attempt_of(crossing: Crossing, curve: Measured | None) -> Attempt:
    if crossing.status == Status.BELOW_GRID and curve is not None:
        return Attempt(crossing, float(curve.claimed[0]), float(curve.provable[0]))
    return Attempt(crossing, crossing.claimed or math.nan, crossing.provable or math.nan)


def _reached(attempt: Attempt) -> str:
    """Describes one method and one baseline in a sentence or two."""
    cell = attempt.crossing
    # A label that a config gives may name the mode already: "PGE, corrected".
    named = cell.mode == "published" or cell.mode in re.findall(r"\w+", cell.label.lower())
    name = cell.label if named else f"{cell.label} ({cell.mode})"
    grid_low, grid_high = (f"{end:g}" if end else "?" for end in (cell.grid_low, cell.grid_high))
    match cell.status:
        case Status.CROSSED:
            point = f"ε = {significant(cell.reproduced or 0)}"
            again = ", but is worse again at a larger ε" if cell.recrosses else ""
            from_on = f"first at {point}" if again else f"from {point} on"
            return (
                f"{name} is as good as {cell.baseline} {from_on}{_interval(cell)}{again}. {_proof(attempt)}"
            )
        case Status.BELOW_GRID:
            return (
                f"{name} is as good as {cell.baseline} already at ε = {grid_low}, the smallest that was tried"
                f"{_other_end(cell.high)}. {_proof(attempt)}"
            )
        case Status.NOT_REACHED:
            return (
                f"{name} is worse than {cell.baseline} at every ε up to {grid_high}, the largest that was tried"
                f"{_other_end(cell.low)}."
            )
        case _:
            return f"{name} lacks results for {cell.baseline}: run its config to the end."


def _proof(attempt: Attempt) -> str:
    if attempt.proved:
        less = attempt.provable < attempt.claimed * (1 - 1e-6)
        return (
            f"A smaller ε can be proved: ε = {significant(attempt.provable)}."
            if less
            else "This ε can be proved."
        )
    if math.isfinite(attempt.provable):
        return f"This ε is only claimed: the provable one is ε = {significant(attempt.provable)}."
    return "This ε is only claimed: no ε can be proved for what was run."


def _interval(cell: Crossing) -> str:
    if cell.over == "none":
        return " (no interval)"
    return f" ({end_in_words(cell.low, cell)} to {end_in_words(cell.high, cell)})"


def _other_end(end: End) -> str:
    """Describes an interval that reaches into the grid although its crossing lies outside."""
    return f" (but the interval reaches to ε = {significant(end)})" if isinstance(end, float) else ""


def end_in_words(end: End, cell: Crossing) -> str:
    """Describes an end of a crossing's interval: an ε, or the side of the grid on which the end lies."""
    if end == Status.BELOW_GRID:
        return f"below {cell.grid_low:g}"
    if end == Status.NOT_REACHED:
        return f"beyond {cell.grid_high:g}"
    return significant(end) if isinstance(end, float) else "?"


def _without_noise(cell: Crossing, curve: Measured | None, baseline: Measured | None) -> str:
    """Says whether a larger ε could help a method that did not get there, if it was run without noise too."""
    twin = curve.without_noise() if curve is not None else None
    if cell.status != Status.NOT_REACHED or baseline is None or twin is None or twin.missing:
        return ""
    level, clean = float(baseline.mean()[0]), float(twin.mean()[0])
    if math.isclose(level, clean, rel_tol=1e-6):
        return f" Without noise it is {cell.baseline} itself: with noise it can come near, but not below."
    so = "with these parameters no ε is enough" if clean > level else "a larger ε can be enough"
    return f" Without noise its error is {clean:.4f}: {so}."


def _recommended(baseline: str, attempts: list[Attempt]) -> str:
    """Says which of the methods that protect the same thing to take for one baseline, if any."""
    ready = sorted(
        (each for each in attempts if each.reaches and each.proved), key=lambda each: each.provable
    )
    if not ready:
        return f"For {baseline}, no method can be recommended: none gets there with an ε both claimed and proved."
    best, others = ready[0], ready[1:]
    bound = "at most " if best.crossing.status == Status.BELOW_GRID else ""
    text = f"For {baseline}, take {best.crossing.label}: a provable ε of {bound}{significant(best.provable)}."
    if not others:
        return f"{text} No other gets there with an ε both claimed and proved."
    unsure = [each for each in others if "none" in (best.crossing.over, each.crossing.over)]
    close = [each for each in others if each not in unsure and each.range[0] <= best.range[1]]
    if unsure:
        text += f" Without intervals nobody can tell whether it is better than {_labels(unsure, 'or')}."
    if close:
        text += f" It is not surely better than {_labels(close, 'or')}: the intervals overlap."
    return text if unsure or close else f"{text} The intervals of {_labels(others, 'and')} lie above its own."


def _labels(attempts: list[Attempt], word: str) -> str:
    more = len(attempts) - MOST_NAMED
    names = [each.crossing.label for each in attempts[:MOST_NAMED]]
    return f" {word} ".join([*names, f"{more:,} more"] if more > 0 else names)


def guarantee_of(crossing: Crossing, curve: Measured | None) -> Guarantee:
    """Returns what the ε of a crossing guarantees. `curve` is the curve that crosses; None if it is not at hand."""
    protects = (curve.protects if curve else None) or protection_of(Neighbours(crossing.neighbours))
    return Guarantee(protects, crossing.joint, crossing.delta)


def between(guarantees: Collection[Guarantee]) -> str:
    """Says what an ε of one of several guarantees implies for the others."""
    text = "Each heading above makes a different promise. "
    protections = {guarantee.protects for guarantee in guarantees}
    if len(protections) == len(guarantees):
        return text + "An ε under one heading cannot be compared with an ε under another."
    text += "An ε under one heading is not ranked against an ε under another"
    text += (
        ", and cannot even be compared with it if they hide different things."
        if len(protections) > 1
        else "."
    )
    implied = [(a, b) for a, b in permutations(guarantees, 2) if a.implies(b)]
    if any(a.delta < b.delta for a, b in implied):
        text += " Pure ε implies (ε, δ) at the same ε. A δ implies every larger δ. The converses are false."
    if any(a.joint < b.joint for a, b in implied):
        text += " Protection towards everybody implies joint protection at the same ε; the converse is false."
    return text


FEW_FOLDS = 5
"""With fewer folds, Student's t alone makes an interval more than a third wider than with many."""


def untried(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yields sentences on what the experiments of one dataset leave open."""
    curves = [curve for experiment in experiments for curve in experiment.curves]
    run = {curve.algorithm for curve in curves}
    left = [key for key in PRIVATE if key not in run]
    if left:
        yield f"{len(left)} of the {len(PRIVATE)} private methods of dpmf: {', '.join(left)}."
    yield from _neighbours(curves)
    yield from _provable(curves)
    grids = [curve.epsilons for curve in curves if curve.swept is None]
    if grids:
        low, high = min(float(grid[0]) for grid in grids), max(float(grid[-1]) for grid in grids)
        yield f"ε below {low:g} or above {high:g}."
    for key in ("ia", "ge"):
        if all(experiment.baseline(key) is None for experiment in experiments):
            yield f"The baseline {key.upper()}: add `{key}` to `baselines`."
    folds = max(experiment.folds for experiment in experiments)
    if folds < FEW_FOLDS:
        yield f"More than {folds} fold{'s' if folds > 1 else ''}: with 5 or 10 the intervals are narrower."
    if max(experiment.runs for experiment in experiments) == 1:
        yield "More than one run: each fold has had a single noise draw."
    if any(curve.swept is not None for curve in curves):
        yield "The points of a sweep as candidates: they are in the sweep's figure, but not in this advice."
    yield "Other parameters. Choosing among them by these errors costs ε that is counted nowhere."


def _neighbours(curves: Sequence[Measured]) -> Iterator[str]:
    """Yields the kinds of neighbours that no curve has, with the methods that offer them."""
    seen = {curve.neighbours for curve in curves}
    for kind in Neighbours:
        if kind.value not in seen:
            able = [key for key, entry in PRIVATE.items() if kind in {n for n, _ in entry.variants}]
            yield f"`neighbours: {kind.value}`, to hide {PROMISES[protection_of(kind)].hides} ({', '.join(able)})."


def _provable(curves: Sequence[Measured]) -> Iterator[str]:
    """Names methods run as published whose claimed ε cannot be proved, and whose corrected mode was not run."""
    seen = {(curve.algorithm, curve.neighbours, curve.mode) for curve in curves}
    able = [
        curve.label
        for curve in curves
        if curve.mode == Mode.PUBLISHED.value
        and np.any(curve.provable > curve.claimed * (1 + 1e-6))
        and _has_corrected(PRIVATE.get(curve.algorithm), curve)
        and (curve.algorithm, curve.neighbours, Mode.CORRECTED.value) not in seen
    ]
    if able:
        yield f"`mode: corrected`, in which every ε of {', '.join(dict.fromkeys(able))} is provable."


def _has_corrected(entry: type[PrivateAlgorithm] | None, curve: Measured) -> bool:
    return entry is not None and (Neighbours(curve.neighbours), Mode.CORRECTED) in entry.variants

"""Advice in plain words: which methods become as good as a baseline, at which ε, and what that ε protects.

The advice uses results only, compares only methods that protect the same, and recommends a method only if its ε can
be proved for what was run. `answer` says on one page which method to take at one ε.
"""

import math
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from operator import attrgetter
from typing import Any

import numpy as np

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.evaluation.crossings import (
    Crossing,
    LevelAt,
    Status,
    crossing_targets,
    find_crossings,
    levels_at,
    target_name,
)
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import differences
from dpmf_cli.privacy.neighbours import HIDE_IDS, Mode, Neighbours
from dpmf_cli.privacy.protection import PROMISES, Guarantee, protection_of
from dpmf_cli.report.words import lines, wrapped

MOST_NAMED = 10
"""How many methods one sentence names; of the others it gives the number."""

CALLED = {"IA": "the item average (IA)", "GE": "item and user averages together (GE)"}
"""What advice calls the baselines."""

SIMPLER = {"ge": ("ia", "ua", "ga"), "ia": ("ga",)}
"""For each baseline, the baselines that know less and should not have a smaller error."""


MET_AT_ONCE = (Status.BELOW_GRID, Status.NO_EPSILON)
"""What is known of a curve that is as good as its baseline at its smallest ε already."""


@dataclass(frozen=True)
class Attempt:
    """How one method met one baseline, or did not.

    claimed, provable   ε at the crossing; NaN if it has no point
    clean   the error without noise, and the baseline's: whether a larger ε could help; None if it is not known
    """

    crossing: Crossing
    claimed: float
    provable: float
    clean: tuple[float, float] | None

    @property
    def proved(self) -> bool:
        """Whether the ε that the method claims can be proved."""
        return self.provable <= self.claimed * (1 + 1e-6)

    @property
    def name(self) -> str:
        """The label, with the mode unless it says so itself: "PGE, corrected"."""
        label, mode = self.crossing.label, self.crossing.mode
        named = mode == "published" or mode in re.findall(r"\w+", label.lower())
        return label if named else f"{label} ({mode})"

    @property
    def range(self) -> tuple[float, float]:
        """The interval of the crossing, in provable ε.

        A lower end that is not a number counts as 0, an upper one as ∞, or as the provable ε if it lies below the
        grid.
        """
        low, high, at = self.crossing.low, self.crossing.high, self.crossing.reproduced
        part = self.provable / at if at else 1.0
        least = low * part if isinstance(low, float) else 0.0
        above = self.provable if high in MET_AT_ONCE else math.inf
        return least, high * part if isinstance(high, float) else above


def advice(experiments: Sequence[Experiment], crossings: Sequence[Crossing]) -> str:
    """What `crossings` of `experiments` show, in lines for a terminal."""
    if not experiments:
        return "There are no results to draw advice from.\n"
    return "".join(map(wrapped, paragraphs(experiments, crossings))).lstrip("\n")


def paragraphs(experiments: Sequence[Experiment], crossings: Sequence[Crossing]) -> list[str]:
    """The same advice as paragraphs: a part for each experiment, then what was not tried on each dataset.

    An item of a list begins with "- ".
    """
    found: list[str] = []
    for experiment in experiments:
        curves = {curve.label: curve for curve in experiment.curves}
        measured = [each for each in crossing_targets(experiment) if isinstance(each, Measured)]
        targets = {target_name(target): target for target in reversed(measured)}
        groups: dict[Guarantee, list[Attempt]] = {}
        for crossing in crossings:
            if crossing.experiment != experiment.name or crossing.reference:
                continue
            curve = curves.get(crossing.label)
            protects = (curve.protects if curve else None) or protection_of(Neighbours(crossing.neighbours))
            guarantee = Guarantee(protects, crossing.joint, crossing.delta)
            of = curve if crossing.status in MET_AT_ONCE else None
            at = of.first if of and crossing.status == Status.BELOW_GRID else 0
            claimed, provable = (
                float(getattr(of, kind)[at]) if of is not None else getattr(crossing, kind) or math.nan
                for kind in ("claimed", "provable")
            )
            noise_free, target = curve and curve.without_noise(), targets.get(crossing.baseline)
            clean = None
            if noise_free and target and not noise_free.missing:
                clean = float(noise_free.mean()[0]), float(target.mean()[0])
            groups.setdefault(guarantee, []).append(Attempt(crossing, claimed, provable, clean))
        named = [(target_name(each), each) for each in measured]
        found += lines(
            "advice",
            experiment=experiment,
            levels=[
                f"{CALLED.get(name, name)} {each.mean()[0]:.4f}" for name, each in named if not each.missing
            ],
            weak=_weak_targets(experiment, {name: targets[name] for name, _ in named}),
            groups=groups,
            choices=_choices,
            most=MOST_NAMED,
            kinds=len({guarantee.protects for guarantee in groups}),
            implied=[(a, b) for a, b in permutations(groups, 2) if a.implies(b)],
        )
    for dataset in dict.fromkeys(experiment.dataset for experiment in experiments):
        on_it = [experiment for experiment in experiments if experiment.dataset == dataset]
        found += [f"Not tried on {on_it[0].title}", *(f"- {line}" for line in untried(on_it))]
    return found


def _weak_targets(experiment: Experiment, targets: dict[str, Measured]) -> dict[str, list[str]]:
    """The baselines that a simpler one surely beats, by what beats them: to meet them may still be bad.

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
    return weak


def _choices(attempts: Sequence[Attempt]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields for each baseline which method to take, of those that protect the same, and how sure that is."""
    for name in dict.fromkeys(attempt.crossing.baseline for attempt in attempts):
        ready = [each for each in attempts if each.crossing.baseline == name and each.proved]
        ready = [each for each in ready if each.crossing.status in (Status.CROSSED, *MET_AT_ONCE)]
        if not ready:
            yield name, {"best": None}
            continue
        best, *others = sorted(ready, key=lambda each: each.provable)
        unsure = [each for each in others if "none" in (best.crossing.over, each.crossing.over)]
        close = [each for each in others if each not in unsure and each.range[0] <= best.range[1]]
        yield name, {"best": best, "others": others, "unsure": unsure, "close": close}


def untried(experiments: Sequence[Experiment]) -> list[str]:
    """Sentences on what the experiments of one dataset leave open."""
    curves = [curve for experiment in experiments for curve in experiment.curves]
    kinds, run = {curve.neighbours for curve in curves}, {curve.algorithm for curve in curves}
    seen = {(curve.algorithm, curve.neighbours, curve.mode) for curve in curves}
    # Run as published although the claimed ε cannot be proved, while a corrected mode was not run.
    correctable = [
        curve.label
        for curve in curves
        if curve.mode == Mode.PUBLISHED
        and np.any(curve.provable > curve.claimed * (1 + 1e-6))
        and curve.algorithm in PRIVATE
        and (Neighbours(curve.neighbours), Mode.CORRECTED) in PRIVATE[curve.algorithm].variants
        and (curve.algorithm, curve.neighbours, Mode.CORRECTED.value) not in seen
    ]
    return lines(
        "untried",
        methods=PRIVATE,
        left=[key for key in PRIVATE if key not in run],
        neighbours=[
            (
                kind.value,
                PROMISES[protection_of(kind)].hides,
                [key for key, entry in PRIVATE.items() if kind in {n for n, _ in entry.variants}],
            )
            for kind in Neighbours
            if kind.value not in kinds
        ],
        correctable=list(dict.fromkeys(correctable)),
        grids=[curve.epsilons.tolist() for curve in curves if curve.swept is None],
        baselines={each.algorithm for experiment in experiments for each in experiment.baselines},
        folds=max(experiment.folds for experiment in experiments),
        runs=max(experiment.runs for experiment in experiments),
        swept=any(curve.swept is not None for curve in curves),
    )


CLOSE_NAMED = 3
"""How many methods the answer names beside the best one."""

AVERAGES = {
    "ia": "the average of each item",
    "ua": "the average of each user",
    "ge": "item and user averages together",
    "ga": "one number for everything",
}
"""The baselines in words."""


def answer(
    experiment: Experiment,
    epsilon: float,
    config: str,
    *,
    by_errors: bool = True,
    guessed_scale: bool = False,
    in_python: bool = False,
) -> str:
    """The page for an experiment with one kind of neighbours, all of whose ε are provable.

    config      the experiment's file, or its results folder
    by_errors   whether the method is chosen by the errors that this page shows
    guessed_scale   whether the config's scale is guessed, so that `dpmf release` refuses it
    in_python   whether the page is for a program, which releases a model by `dpmf_cli.fit`
    """
    levels = levels_at(experiment, epsilon)
    clean = [level for level in levels if level.curve.is_baseline]
    crossings = [each for each in find_crossings(experiment) if not each.reference]
    groups: dict[Guarantee, list[LevelAt]] = {}
    for level in levels:
        if not level.curve.is_baseline:
            groups.setdefault(level.curve.guarantee.at_any_delta, []).append(level)
    page = lines(
        "answer",
        epsilon=epsilon,
        config=config,
        quoted=shlex.quote(config),
        counted=experiment.counted,
        averages=AVERAGES,
        clean=sorted((each for each in clean if each.value is not None), key=attrgetter("value")),
        groups={
            guarantee: _answer_of(groups[guarantee], clean, crossings, config)
            for guarantee in sorted(groups, key=attrgetter("joint"))
        },
        guessed_scale=guessed_scale,
        with_delta=any(level.curve.delta for level in levels),
        odds=odds(epsilon),
        by_errors=by_errors,
        in_python=in_python,
    )
    return "".join(map(wrapped, page)).lstrip("\n")


def _answer_of(
    levels: Sequence[LevelAt], clean: Sequence[LevelAt], crossings: Sequence[Crossing], config: str
) -> dict[str, Any] | None:
    """The method to take, its cost compared with no privacy, and what is near; None if all diverged."""
    found = sorted(filter(_finite, levels), key=attrgetter("value"))
    if not found:
        return None
    best, *others = found
    error = best.value or 0.0
    method = PRIVATE.get(best.curve.algorithm)  # a plugin is its author's to explain
    least = min(filter(_finite, clean), key=attrgetter("value"), default=None)
    noise_free = best.curve.without_noise()
    without_noise = float(noise_free.mean()[0]) if noise_free and not noise_free.missing else None
    level = without_noise or (least.value if least else None)
    constant = [each.value or 0.0 for each in clean if each.curve.algorithm == "ga" and _finite(each)]
    against: dict[str, list[str]] = {}  # averages with the same outcome share a sentence
    for each in clean:
        if (what := AVERAGES.get(each.curve.algorithm)) is None or not _finite(each):
            continue
        better = "better" if error < (each.value or 0.0) else "no better"
        looks, but = "is", ""
        if _overlaps(best, each):
            unknown = None in (best.low, each.low)
            looks, but = "looks", ", but " + ("there is no interval" if unknown else "the intervals overlap")
        against.setdefault(f"It {looks} {better} than {{}} without privacy{but}.", []).append(what)
    return {
        "best": best,
        "is_useless": bool(constant) and error >= constant[0],
        "about": method
        and (method.about or (sys.modules[method.__module__].__doc__ or "").partition("\n")[0]),
        "least": least,
        "without_noise": without_noise,
        "more": error / level - 1 if level else 0.0,
        "against": against,
        "crossings": [each for each in crossings if each.label == best.curve.label],
        "close": [each for each in others if _overlaps(best, each)][:CLOSE_NAMED],
        "next": others[0] if others else None,
        "named": shlex.join([config, "--method", best.curve.label]),
        "hides_ids": best.curve.neighbours in HIDE_IDS,
        "counts_users": method and method.counts_users,
    }


def odds(epsilon: float) -> str:
    """e^ε as text, also where it is too large for a float."""
    power = epsilon / math.log(10)
    return f"{math.exp(epsilon):,.1f}" if power < 6 else f"{10 ** (power % 1):.1f}e+{int(power):02d}"


def _finite(level: LevelAt) -> bool:
    return level.value is not None and math.isfinite(level.value)


def _overlaps(one: LevelAt, other: LevelAt) -> bool:
    """Whether two intervals overlap; True if one is missing, since then they may."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return True
    return one.low <= other.high and other.low <= one.high

"""The rule that makes a verdict of what was tried.

A part of a claim holds in a setting where it does on the folds to choose by and again on those to test by; it fails
where it fails on both. The claim holds where all of its parts do, and fails where some part fails on each half. What
turns with the fold decides nothing.

confirmed    it holds in at least `MOST` of the settings that decide
refuted      no part of it holds in any setting
in part      anything between, and where more settings turn with the fold than decide
not tested   no setting has a result

Where a paper chose its parameters for each ε, the verdict is that of the best setting for each ε, chosen on the ones
and measured on the other folds: all, some or none of the parts hold. A theorem is confirmed where what it claims is
proved and no replay contradicts it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpmf_cli.papers.record import Explored, Printed, Proved, Tried
from dpmf_cli.papers.space import Setting

Word = Literal["confirmed", "in part", "refuted", "not tested"]

MOST = 0.95
"""Of the settings that decide, so many must agree: one in twenty may be an accident of the folds."""

CHANCE = 0.05
"""Values are said to be the only ones with which a claim holds where chance would make it look so less often."""

NOTABLE = 0.1
"""Of the variance over settings, the least part that a choice explains and is named for."""


@dataclass(frozen=True)
class Judged:
    """A verdict, and in words what it rests on."""

    word: Word
    said: str


def of_parts(held: Sequence[bool]) -> Word:
    """The verdict where all, some or none of the parts hold."""
    return "confirmed" if all(held) else "in part" if any(held) else "refuted"


def of_theorem(found: Proved | None) -> Judged:
    if found is None:
        return Judged("not tested", "")
    return Judged(*(("confirmed", "proved") if found.held else ("refuted", "by an audit")))


def judged(explored: Explored, claim: str) -> Judged:
    """The verdict on a claim on one data set."""
    tried = [each for each in explored.tried if claim in each.claims]
    if not tried:
        return Judged("not tested", "")
    whole = [_holds(*each.claims[claim]) for each in tried]
    said = _in_words(explored, tried, claim, whole)
    if explored.chosen is not None and claim in explored.chosen:
        parts = explored.chosen[claim]
        of = (
            f"{sum(parts)} of {len(parts)} parts hold" if len(parts) > 1 else "holds" if parts[0] else "fails"
        )
        return Judged(of_parts(parts), f"chosen for each ε, {of}; one setting for all: {said}")
    decided = [each for each in whole if each is not None]
    if 2 * len(decided) < len(whole):
        return Judged("in part", said)
    if sum(decided) >= MOST * len(decided):
        return Judged("confirmed", said)
    return Judged("in part" if any(_parts_held(tried, claim)) else "refuted", said)


def _holds(choosing: Sequence[bool], testing: Sequence[bool]) -> bool | None:
    """Whether a claim holds in a setting; None where that turns with the fold."""
    here, there = all(choosing), all(testing)
    return here if here == there else None


def _in_words(explored: Explored, tried: list[Tried], claim: str, whole: list[bool | None]) -> str:
    held = [each for each, holds in zip(tried, whole, strict=True) if holds]
    text = f"holds in {len(held) or 'none'} of {len(tried)} settings"
    parts = _parts_held(tried, claim)
    if not held and any(parts):
        text += f", its parts in {', '.join(map(str, parts))}"
    if turning := whole.count(None):
        text += f", in {turning} it turns with the fold"
    if 0 < len(held) < len(tried) and (only := _only(explored, held, tried)):
        text += f"; only with {only}"
    return text


def _parts_held(tried: list[Tried], claim: str) -> list[int]:
    """In how many settings each part of a claim holds on both halves of the folds."""
    both = ([a and b for a, b in zip(*each.claims[claim], strict=True)] for each in tried)
    return [sum(part) for part in zip(*both, strict=True)]


def _only(explored: Explored, held: list[Tried], tried: list[Tried]) -> str:
    """The choice of which the settings that hold have some values alone, with these values.

    "" where there is none, or where that could be an accident of so many choices.
    """
    best, least = "", CHANCE / len(explored.open)
    for at, (name, values) in enumerate(explored.open.items()):
        needed = {each.setting[at] for each in held}
        share = sum(each.setting[at] in needed for each in tried) / len(tried)
        if share ** len(held) < least:
            least = share ** len(held)
            best = f"{name} {' or '.join(values[each] for each in sorted(needed))}"
    return best


def shares_held(explored: Explored, claim: str) -> list[tuple[Setting, float]]:
    """By setting which part of a claim holds, both halves of the folds together."""
    return [
        (each.setting, float(np.mean([*each.claims[claim][0], *each.claims[claim][1]])))
        for each in explored.tried
        if claim in each.claims
    ]


def moved_by(explored: Explored, values: Sequence[tuple[Setting, float]]) -> list[tuple[str, float]]:
    """The choices that move a number, and which part of its variance over the settings each explains alone.

    The first-order index, Var(E[y | choice]) / Var(y), less what so many groups would explain by chance (ε² of the
    analysis of variance). The largest first; those below `NOTABLE` are left out.
    """
    y = np.array([value for _, value in values])
    total = float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    if total <= 1e-12 * max(1.0, float(np.abs(y).max(initial=0.0))) ** 2:
        return []
    found = []
    for at, name in enumerate(explored.open):
        groups = [
            y[[setting[at] == value for setting, _ in values]] for value in range(len(explored.open[name]))
        ]
        groups = [each for each in groups if len(each)]
        within = sum(float(((each - each.mean()) ** 2).sum()) for each in groups)
        freedom = len(y) - len(groups)
        if freedom <= 0:
            continue
        index = (total - within - (len(groups) - 1) * within / freedom) / total
        if index >= NOTABLE:
            found.append((name, index))
    return sorted(found, key=lambda each: -each[1])


def deviation(cell: Printed, measured: float | None) -> float:
    """How far a measured cell is off print, in tolerances; ∞ for a crossing that is not reached."""
    if measured is None:
        return math.inf
    if not cell.ratio:
        return (measured - cell.printed) / cell.tolerance
    return math.log(measured / cell.printed) / math.log(cell.tolerance) if measured > 0 else -math.inf


def nearest(explored: Explored) -> Tried | None:
    """The setting whose cells are nearest to print on the folds to choose by: least off on average, in tolerances."""
    if not explored.printed:
        return None

    def off(tried: Tried) -> float:
        gaps = [
            abs(deviation(cell, tried.cells[name][0]))
            for name, cell in explored.printed.items()
            if name in tried.cells
        ]
        return float(np.mean(np.minimum(gaps, FAR))) if gaps else math.inf

    return min(explored.tried, key=off)


FAR = 10.0
"""Tolerances: no cell counts as further off than this."""

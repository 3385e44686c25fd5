"""The rule that turns what was tried into a verdict.

A part of a claim holds in a setting if it holds on the folds to choose by and on the folds to test by. It fails if it
fails on both. The claim holds if all of its parts hold. It fails if some part fails on each half of the folds.
Otherwise the claim turns with the fold, and that setting decides nothing.

confirmed    the claim holds in at least `MOST` of the settings that decide
refuted      no part of it holds in any setting
in part      anything else; also if more settings turn with the fold than decide
undecided    of a theorem: no replay contradicts it, and nothing here proves it
not tested   no setting has a result, or no result can decide it

If a paper chose its parameters for each ε, the verdict is that of the best setting for each ε, chosen on one half of
the folds and measured on the other: all, some or none of the parts hold. A theorem is confirmed if its claim is
proved and no replay contradicts it. It is refuted if a replay contradicts it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f

from dpmf_cli.papers.record import Explored, Printed, Proved, Tried
from dpmf_cli.papers.space import Setting

Word = Literal["confirmed", "in part", "refuted", "undecided", "not tested"]

MOST = 0.95
"""The fraction of the deciding settings that must agree: one in twenty may be an accident of the folds."""

CHANCE = 0.05
"""Values are said to be the only ones with which a claim holds if chance makes it look so less often than this."""

NOTABLE = 0.1
"""The least fraction of the variance over settings that a choice must explain to be named."""


@dataclass(frozen=True)
class Judged:
    """A verdict, and its grounds in words."""

    word: Word
    said: str


def of_parts(held: Sequence[bool]) -> Word:
    """Returns the verdict if all, some or none of the parts hold."""
    return "confirmed" if all(held) else "in part" if any(held) else "refuted"


def of_theorem(found: Proved | None) -> Judged:
    """Returns the verdict on a theorem. If no replay contradicts it and nothing proves it, it is undecided."""
    if found is None:
        return Judged("not tested", "")
    if not found.held:
        return Judged("refuted", "by a replay of neighbouring ratings")
    if found.proved:
        return Judged("confirmed", "proved, and no replay contradicts it")
    return Judged("undecided", "no replay contradicts it, and nothing here proves it")


def judged(explored: Explored, claim: str) -> Judged:
    """Returns the verdict on a claim on one data set."""
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
        return Judged(
            of_parts(parts), f"with the best setting for each ε, {of}; with one setting for all ε, {said}"
        )
    decided = [each for each in whole if each is not None]
    if 2 * len(decided) < len(whole):
        return Judged("in part", said)
    if sum(decided) >= MOST * len(decided):
        return Judged("confirmed", said)
    return Judged("in part" if any(_parts_held(tried, claim)) else "refuted", said)


def _holds(choosing: Sequence[bool], testing: Sequence[bool]) -> bool | None:
    """Returns whether a claim holds in a setting; None if that turns with the fold."""
    here, there = all(choosing), all(testing)
    return here if here == there else None


def _in_words(explored: Explored, tried: list[Tried], claim: str, whole: list[bool | None]) -> str:
    held = [each for each, holds in zip(tried, whole, strict=True) if holds]
    if claim in explored.fixed:
        both = [a and b for a, b in zip(*tried[0].claims[claim], strict=True)]
        return f"{sum(both)} of {len(both)} parts hold, with the same figures in all {len(tried)} settings"
    text = f"holds in {len(held) or 'none'} of {len(tried)} settings"
    parts = _parts_held(tried, claim)
    if not held and any(parts):
        text += f", its parts in {', '.join(map(str, parts))} of them"
    if turning := whole.count(None):
        text += f", in {turning} it turns with the fold"
    if 0 < len(held) < len(tried) and (only := _only(explored, held, tried)):
        text += f"; only if {only}"
    return text


def _parts_held(tried: list[Tried], claim: str) -> list[int]:
    """Returns in how many settings each part of a claim holds on both halves of the folds."""
    both = ([a and b for a, b in zip(*each.claims[claim], strict=True)] for each in tried)
    return [sum(part) for part in zip(*both, strict=True)]


def _only(explored: Explored, held: list[Tried], tried: list[Tried]) -> str:
    """Returns the choice on which a claim depends, with the only values of it that occur in the settings that hold.

    "" if there is no such choice, or if it could be an accident of so many choices.
    """
    best, least = "", CHANCE / len(explored.open)
    for at, (name, values) in enumerate(explored.open.items()):
        needed = {each.setting[at] for each in held}
        share = sum(each.setting[at] in needed for each in tried) / len(tried)
        if share ** len(held) < least:
            least = share ** len(held)
            best = f'the choice "{name}" is {" or ".join(values[each] for each in sorted(needed))}'
    return best


def shares_held(explored: Explored, claim: str) -> list[tuple[Setting, float]]:
    """Returns by setting the fraction of a claim's parts that hold, over both halves of the folds together."""
    return [
        (each.setting, float(np.mean([*each.claims[claim][0], *each.claims[claim][1]])))
        for each in explored.tried
        if claim in each.claims
    ]


def moved_by(explored: Explored, values: Sequence[tuple[Setting, float]]) -> list[tuple[str, float]]:
    """Returns the choices that move a number, and the fraction of its variance over the settings that each explains.

    The choice that explains most comes first, then the choice that explains most of the rest, and so on: a sample is
    too uneven to judge choices one by one. A fraction excludes what so many groups would explain by chance (ε² of the
    analysis of variance). The list ends where the next fraction is below `NOTABLE`, or where chance would make one as
    large among so many choices (F test, at `CHANCE` over their number).
    """
    y = np.array([value for _, value in values])
    if not len(y) or float(np.ptp(y)) <= 1e-9 * max(1.0, float(np.abs(y).max())):
        return []
    rest, used, found = y - y.mean(), 1, list[tuple[str, float]]()
    total = float(rest @ rest)
    open_choices = dict(enumerate(explored.open))
    while open_choices:
        fits = {
            at: fit
            for at in open_choices
            if (fit := _fitted([setting[at] for setting, _ in values], rest, used))
        }
        if not fits:
            break
        at = max(fits, key=lambda each: fits[each].explained)
        best = fits[at]
        if best.explained < NOTABLE * total or best.chance > CHANCE / len(explored.open):
            break
        found.append((open_choices.pop(at), best.explained / total))
        rest, used = rest - best.means, used + best.groups - 1
    return found


@dataclass(frozen=True)
class _Fit:
    """How much of some numbers' variance one choice explains.

    means       (n,) the mean of each number's group
    groups      how many groups there are
    explained   the sum of squares less what chance explains
    chance      the probability that chance explains as much
    """

    means: NDArray[np.float64]
    groups: int
    explained: float
    chance: float


def _fitted(values: list[int], rest: NDArray[np.float64], used: int) -> _Fit | None:
    """Fits one choice. None for a choice with one value, or if too few settings are left to judge it."""
    levels, group = np.unique(values, return_inverse=True)
    between, freedom = len(levels) - 1, len(rest) - used - len(levels) + 1
    if not between or freedom <= 0:
        return None
    means = (np.bincount(group, rest) / np.bincount(group))[group]
    within = float(((rest - means) ** 2).sum())
    gained = float(rest @ rest) - within
    ratio = gained / between / max(within / freedom, 1e-300)
    return _Fit(means, len(levels), gained - between * within / freedom, float(f.sf(ratio, between, freedom)))


def deviation(cell: Printed, measured: float | None) -> float:
    """Returns how far a measured cell is from the printed one, in tolerances; ∞ if a crossing is not reached."""
    if measured is None:
        return math.inf
    if not cell.ratio:
        return (measured - cell.printed) / cell.tolerance
    return math.log(measured / cell.printed) / math.log(cell.tolerance) if measured > 0 else -math.inf


def nearest(explored: Explored) -> Tried | None:
    """Returns the setting whose cells are nearest to the printed ones on the folds to choose by: with the least mean
    distance, in tolerances. None if nothing is printed."""
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
"""In tolerances: no cell counts as further off than this."""

"""The rule that turns margins into verdicts. docs/exploring.md says it in words, and why.

A claim is made of atoms, each an inequality between two measured quantities with a margin. In one setting the margin
on all folds, m, has a noise s over folds. s² joins the setting's own variance with that of the shipped setting on all
folds, which has `PRIOR` degrees of freedom at most, and is widened because training sets overlap (Nadeau and Bengio,
Inference for the generalization error, Machine Learning 52, 2003). With t the quantile of Student's distribution, the
setting is + if m > max(tolerance, t·s), − if m < −max(tolerance, t·s), open if the grid leaves the sign open, and
otherwise ≈, too close to call. `word_of` gives the verdict of all settings, and of all readings of the sentence.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f, t as student

from dpmf_cli.core.streams import named_generator
from dpmf_cli.papers.record import UNBOUNDED, Explored, Inequality, Proved
from dpmf_cli.papers.space import Setting

Word = Literal["holds", "fails", "depends", "too close", "undecided", "no data"]

Values = NDArray[np.float64]

States = NDArray[np.int_]
"""Of settings: 1 is +, −1 is −, 0 is ≈, and `OPEN`."""

OPEN = 2

MOST = 0.95
"""The fraction of the settings that are + or − which must agree: one in twenty may be an accident of the folds."""

PRIOR = 4
"""Degrees of freedom, at most, of the variance over the shipped setting's folds, where it joins a setting's own."""

LEVEL = 0.95
"""Of the interval within which noise of the folds keeps a margin."""

RESAMPLES = 400
"""How often settings are drawn anew, to see how often that turns the verdict."""

CHANCE = 0.05
"""A choice is named if chance makes it look as if it explained as much less often than this."""

NOTABLE = 0.1
"""The least fraction of the variance over settings that a choice must explain to be named."""


@dataclass(frozen=True)
class Judged:
    """A verdict on one inequality of a claim.

    text, unit, note   of the inequality, or of the claim
    said      both sides where it is nearest to failing
    margins   by reading: the margin in the shipped setting, or of the best setting for each ε; the interval that
              90 % of the settings, or of resampled searches, have; and the limit from which the margin counts
    counts    how many settings have each state; empty if the best setting for each ε decides
    flips     the probability that other settings of the same space would give another verdict
    by        what it depends on, in words
    """

    word: Word
    text: str = ""
    unit: str = ""
    note: str = ""
    said: str = ""
    margins: Mapping[str, tuple[float, float, float, float]] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)
    flips: float = 0.0
    by: str = ""


def of_theorem(found: Proved | None) -> Judged:
    """The verdict on a theorem. If no replay contradicts it and nothing proves it, it is undecided."""
    if found is None:
        return Judged("no data")
    if not found.held:
        return Judged("fails", "a replay of neighbouring ratings contradicts it", said=found.measured)
    if found.proved:
        return Judged("holds", "proved, and no replay contradicts it", said=found.measured)
    return Judged("undecided", "no replay contradicts it, and nothing here proves it", said=found.measured)


def judged(explored: Explored, claim: str) -> list[Judged]:
    """The verdicts on a claim's atoms on one data set, in the order of its rule."""
    places: dict[str, list[int]] = {}
    for at, atom in enumerate(explored.atoms):
        if atom.claim == claim:
            places.setdefault(atom.text, []).append(at)
    return [_judged(explored, of_text) for of_text in places.values()]


def _judged(explored: Explored, places: Sequence[int]) -> Judged:
    """The verdict on one atom, which has a place in the record for each reading."""
    atoms = [explored.atoms[at] for at in places]
    tables = [np.array([each.margins[at] for each in explored.tried], float) for at in places]
    chosen, margins, limits, states = atoms[0].chosen is not None, {}, list[Values](), list[States]()
    for atom, table in zip(atoms, tables, strict=True):
        whole, folds = table[:, 0], table[:, 1:]
        if chosen:
            whole, folds = np.array(atom.resampled, float), np.array([atom.chosen], float)
        limit = limit_of(folds, atom.tolerance, explored.partition, atom.shipped)
        known = whole[~np.isnan(whole)]
        low, high = math.nan, math.nan
        if len(known):  # margins that were found: one without a bound is no number to interpolate
            low, high = np.quantile(known, 0.05, method="lower"), np.quantile(known, 0.95, method="higher")
        middle = folds.mean() if chosen else whole[0]
        margins[atom.reading] = (float(middle), float(low), float(high), float(limit[0]))
        limits.append(limit)
        states.append(states_of(whole, limit))
    counts = Counter[int]()
    if chosen:
        word, flips, by = _of_chosen(atoms, limits, states)
    else:
        found = np.array(states)
        word, counts = word_of(found.ravel()), Counter(map(int, found.ravel()))
        rng = named_generator("resampled settings", len(explored.tried), atoms[0].text)
        drawn = rng.integers(found.shape[1], size=(RESAMPLES, found.shape[1]))
        flips = float(np.mean([word_of(found[:, each].ravel()) != word for each in drawn]))
        by = _decided_by(explored, atoms, found) if word == "depends" else ""
    first = atoms[0]
    return Judged(
        word,
        first.text,
        first.unit,
        first.note,
        first.said,
        margins,
        counts,
        flips,
        by,
    )


def limit_of(folds: Values, tolerance: float, partition: int, shipped: Sequence[float | None] = ()) -> Values:
    """(S,) the margin from which a setting is + or −, from its margins on each fold (S, F).

    Where no variance is known, only a margin without a bound decides.

    shipped   the margins of the shipped setting on each of all folds
    """
    known = np.abs(folds) < UNBOUNDED
    n = known.sum(axis=1)
    values = np.where(known, folds, 0.0)
    squares = (np.where(known, folds - (values.sum(axis=1) / np.maximum(n, 1))[:, None], 0.0) ** 2).sum(
        axis=1
    )
    bounded = np.array([each for each in shipped if each is not None and abs(each) < UNBOUNDED])
    weight = min(PRIOR, max(len(bounded) - 1, 0))
    freedom = weight + np.maximum(n - 1, 0)
    prior_squares = weight * bounded.var(ddof=1) if weight else 0.0
    joint = (prior_squares + squares) / np.maximum(freedom, 1)
    # The folds of a setting are among those of the shipped one, and together no more than the partition has.
    others = max(partition - 1, 1)
    freedom, n = np.minimum(freedom, others), np.maximum(n, 1)
    noise = np.sqrt(joint / n * (1 + n / others))
    limit = np.maximum(tolerance, student.ppf((1 + LEVEL) / 2, np.maximum(freedom, 1)) * noise)
    found: Values = np.where(freedom > 0, limit, UNBOUNDED / 2)
    return found


def states_of(margins: Values, limit: Values | float) -> States:
    state = np.where(margins > limit, 1, np.where(margins < -limit, -1, 0))
    return np.where(np.isnan(margins), OPEN, state)


def word_of(states: States) -> Word:
    plus, minus, close = (int((states == state).sum()) for state in (1, -1, 0))
    known = plus + minus + close
    if not known or 2 * known < len(states):
        return "no data"
    if 2 * close >= known:
        return "too close"
    if plus >= MOST * (plus + minus):
        return "holds"
    return "fails" if minus >= MOST * (plus + minus) else "depends"


def _of_chosen(
    atoms: Sequence[Inequality], limits: Sequence[Values], resampled: Sequence[States]
) -> tuple[Word, float, str]:
    """The verdict of the best settings for each ε, how often other settings would turn it, and why."""
    found = [
        word_of(states_of(np.array([atom.chosen], float).mean(axis=1), limit))
        for atom, limit in zip(atoms, limits, strict=True)
    ]
    words: list[Word] = [word_of(column[None]) for column in resampled[0]] if len(atoms) == 1 else []
    if len(atoms) > 1:
        per = [[word_of(state[None]) for state in states] for states in resampled]
        words = [_joint(each) for each in zip(*per, strict=False)]
    word = _joint(found)
    flips = float(np.mean([each != word for each in words])) if words else 0.0
    said = "; ".join(f"{atom.reading}: {of}" for atom, of in zip(atoms, found, strict=True))
    return word, flips, said if word == "depends" else ""


def _joint(words: Sequence[Word]) -> Word:
    return words[0] if len(set(words)) == 1 else "depends"


def _decided_by(explored: Explored, atoms: Sequence[Inequality], states: States) -> str:
    """Which choices or reading explain whether settings are + or −, and how often each of their values is +."""
    names = dict(explored.open)
    if len(atoms) > 1:
        names["reading"] = tuple(atom.reading for atom in atoms)
    decided = [
        ((*each.setting, rank) if len(atoms) > 1 else each.setting, float(state))
        for rank, of_reading in enumerate(states.tolist())
        for each, state in zip(explored.tried, of_reading, strict=True)
        if state in (1, -1)
    ]
    found = []
    for name in moved_by(names, decided):
        at, said = list(names).index(name), []
        for index, value in enumerate(names[name]):
            here = [state for setting, state in decided if setting[at] == index]
            said.append(f"{value}: {here.count(1.0)} of {len(here)}")
        found.append(f"{name} (holds with {'; '.join(said)})")
    return ", and on ".join(found) or "no single choice"


def moved_by(open_: Mapping[str, Sequence[str]], values: Sequence[tuple[Setting, float]]) -> list[str]:
    """The choices that each explain a notable part of a number's variance over the settings, the largest part first.

    What a choice explains excludes what so many groups would explain by chance (ε² of the analysis of variance). It
    must be `NOTABLE`, and chance must rarely make one of so many as large (F test, at `CHANCE` over their number).
    """
    y = np.array([value for _, value in values])
    total = float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    explained: dict[str, float] = {}
    for at, name in enumerate(open_):
        levels, group = np.unique([setting[at] for setting, _ in values], return_inverse=True)
        between, freedom = len(levels) - 1, len(y) - len(levels)
        if between < 1 or freedom < 1 or not total:
            continue
        within = float(((y - (np.bincount(group, y) / np.bincount(group))[group]) ** 2).sum())
        noise = within / freedom
        gained = total - within
        if f.sf(gained / between / max(noise, 1e-300), between, freedom) <= CHANCE / len(open_):
            explained[name] = gained - between * noise
    notable = [name for name, part in explained.items() if part >= NOTABLE * total]
    return sorted(notable, key=explained.__getitem__, reverse=True)

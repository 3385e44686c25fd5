"""Answers which private method to take at one ε: one page in plain words, with measured figures only."""

import math
import shlex
import sys
from collections.abc import Iterator, Sequence

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.levels import LevelAt, levels_at
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.privacy.neighbours import HIDE_IDS
from dpmf_cli.privacy.protection import Guarantee
from dpmf_cli.report.advice import end_in_words, wrapped

MOST_NAMED = 3
"""How many methods are named beside the best one."""

AVERAGES = {
    "ia": "the average of each item",
    "ua": "the average of each user",
    "ge": "item and user averages together",
    "ga": "one number for everything",
}
"""The baselines in words."""

_WHO = {
    False: "Nobody may learn what ε hides: everybody may see the predictions, and even the model itself",
    True: "Other users may not learn what ε hides: each user sees only their own predictions, from their own ratings",
}


def answer(
    experiment: Experiment,
    epsilon: float,
    config: str,
    *,
    by_errors: bool = True,
    guessed_scale: bool = False,
) -> str:
    """Writes the page for an experiment with one kind of neighbours, all of whose ε are provable.

    config      the experiment's file
    by_errors   whether the method is chosen by the errors that this page shows
    guessed_scale   whether the config's scale is guessed, so that `dpmf release` refuses it
    """
    levels = {level.label: level for level in levels_at(experiment, epsilon)}
    crossings = find_crossings(experiment)
    paragraphs = [*_levels_without_privacy(experiment, levels)]
    groups: dict[Guarantee, list[Measured]] = {}
    for curve in experiment.curves:
        groups.setdefault(curve.guarantee.at_any_delta, []).append(curve)
    for guarantee in sorted(groups, key=lambda each: each.joint):
        paragraphs += [_WHO[guarantee.joint]]
        paragraphs += _best(experiment, groups[guarantee], levels, crossings, epsilon, config)
    if guessed_scale:
        paragraphs += [
            f"Before you release a model, write the scale that your site allows in {config}, and remove `guessed`."
        ]
    paragraphs += [f"All methods: `dpmf levels {shlex.quote(config)} --at {epsilon:g}`."]
    paragraphs += [f"What ε = {epsilon:g} promises", *_promises(groups, epsilon, by_errors)]
    return "".join(map(wrapped, paragraphs)).lstrip("\n")


def _levels_without_privacy(experiment: Experiment, levels: dict[str, LevelAt]) -> Iterator[str]:
    yield "Without privacy"
    measured = [each for each in experiment.baselines if levels[each.label].value is not None]
    for baseline in sorted(measured, key=lambda each: levels[each.label].value or math.inf):
        what = AVERAGES.get(baseline.algorithm, "a model of tastes")
        yield f"- {baseline.label}, {what}: typical error {_error(levels[baseline.label])}"


def _best(
    experiment: Experiment,
    curves: Sequence[Measured],
    levels: dict[str, LevelAt],
    crossings: Sequence[Crossing],
    epsilon: float,
    config: str,
) -> Iterator[str]:
    """Yields the method to take, its cost compared with no privacy, and the ε from which it matches baselines."""
    found = [levels[curve.label] for curve in curves if _finite(levels[curve.label])]
    if not found:
        yield "- No method that was tried has a finite error at this ε."
        return
    best, *others = sorted(found, key=lambda each: each.value or math.inf)
    yield f"- {_advice(best, levels, epsilon)}: typical error {_error(best)}{_delta(best)}."
    if method := PRIVATE.get(best.algorithm):  # a plugin is its author's to explain
        about = (sys.modules[method.__module__].__doc__ or "").partition("\n")[0]
        yield f"- {about}"
    clean = [levels[each.label] for each in experiment.baselines if _finite(levels[each.label])]
    if clean:
        least = min(clean, key=lambda each: each.value or math.inf)
        yield f"- {_price(best, least)}"
    yield from _against(best, [levels[each.label] for each in experiment.baselines])
    for crossing in crossings:
        if crossing.label == best.label and not crossing.reference:
            yield f"- {_from_where_on(crossing)}"
    close = [each for each in others if _overlaps(best, each)]
    if close:
        named = ", ".join(f"{each.label} ({_error(each)})" for each in close[:MOST_NAMED])
        yield f"- Not surely worse, because the intervals overlap: {named}."
    elif others:
        yield f"- The next best is {others[0].label}: {_error(others[0])}."
    yield f"- To use it: `dpmf release {shlex.join([config, '--method', best.label])} --epsilon {epsilon:g}`."
    if best.neighbours in HIDE_IDS:
        yield (
            "- This ε hides ids too: `dpmf release` asks for public lists of them (--users, --items), or for "
            "--ids-are-public."
            + " The method uses the number of users, which must be public."
            * (best.algorithm in PRIVATE and PRIVATE[best.algorithm].counts_users)
        )


def _advice(best: LevelAt, levels: dict[str, LevelAt], epsilon: float) -> str:
    """Says which method to take, or that no method beats one average of all ratings, which hardly needs an ε."""
    constant = [level.value for level in levels.values() if level.algorithm == "ga" and _finite(level)]
    if constant and (best.value or 0.0) >= (constant[0] or 0.0):
        return (
            f"At ε = {epsilon:g} no method is better than one number for everything. The best is {best.label}"
        )
    return f"At ε = {epsilon:g} take {best.label}"


def _price(best: LevelAt, least: LevelAt) -> str:
    more = (best.value or 0.0) / (least.value or 1.0) - 1
    what = f"Privacy raises the error by {more:.1%}" if more > 0 else "Privacy costs nothing here"
    return f"{what}: without it, {least.label} has {significant(least.value or 0.0)}."


def _against(best: LevelAt, baselines: Sequence[LevelAt]) -> Iterator[str]:
    """Compares the best method with the averages. Averages with the same outcome share a sentence."""
    found: dict[str, list[str]] = {}
    for level in baselines:
        if (what := AVERAGES.get(level.algorithm)) is None or not _finite(level):
            continue
        better = "better" if (best.value or 0.0) < (level.value or 0.0) else "no better"
        looks, but = "is", ""
        if _overlaps(best, level):
            unknown = None in (best.low, level.low)
            looks, but = "looks", ", but " + ("there is no interval" if unknown else "the intervals overlap")
        found.setdefault(f"It {looks} {better} than {{}} without privacy{but}.", []).append(what)
    for sentence, names in found.items():
        yield f"- {sentence.format(_listed(names))}"


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _from_where_on(crossing: Crossing) -> str:
    name = f"{AVERAGES.get(crossing.baseline.lower(), crossing.baseline)} ({crossing.baseline})"
    if crossing.status is Status.CROSSED:
        ends = (
            f" ({end_in_words(crossing.low, crossing)} to {end_in_words(crossing.high, crossing)})"
            if crossing.over != "none"
            else ""
        )
        return f"It is as good as {name} from ε = {significant(crossing.reproduced or 0.0)} on{ends}."
    if crossing.status is Status.BELOW_GRID:
        return f"It is as good as {name} at every ε that was tried, from {crossing.grid_low:g} on."
    if crossing.status is Status.NOT_REACHED:
        return f"It becomes as good as {name} at no ε that was tried, up to {crossing.grid_high:g}."
    return (
        f"Its results are incomplete: run the config to the end to see from which ε it is as good as {name}."
    )


def _promises(groups: dict[Guarantee, list[Measured]], epsilon: float, by_errors: bool) -> Iterator[str]:
    for guarantee in sorted(groups, key=lambda each: each.joint):
        yield f"- {guarantee.statement}"
    with_delta = any(curve.delta for curves in groups.values() for curve in curves)
    chance = ", plus a probability of at most δ where a δ is named" if with_delta else ""
    yield (
        f"- What is protected can make any output that ε covers at most {odds(epsilon)} times as likely (e^ε)"
        f"{chance}."
    )
    choice = ", and so was the choice of the method" if by_errors else ""
    yield f"- This page is not private: keep it to yourself. It was made from the ratings themselves{choice}."


def odds(epsilon: float) -> str:
    """Returns e^ε as text, also where it is too large for a float."""
    power = epsilon / math.log(10)
    return f"{math.exp(epsilon):,.1f}" if power < 6 else f"{10 ** (power % 1):.1f}e+{int(power):02d}"


def _error(level: LevelAt) -> str:
    interval = ""
    if level.low is not None and level.high is not None:
        interval = f" ({max(level.low, 0.0):.3f} to {level.high:.3f})"
    return f"{level.value or 0.0:.3f}{interval}"


def _delta(level: LevelAt) -> str:
    return f", with δ = {level.delta:g}" if level.delta else ""


def _finite(level: LevelAt) -> bool:
    return level.value is not None and math.isfinite(level.value)


def _overlaps(one: LevelAt, other: LevelAt) -> bool:
    """Whether two intervals overlap; True if one is missing, since then nobody can tell."""
    ends = one.low, one.high, other.low, other.high
    if any(end is None for end in ends):
        return True
    low, high, other_low, other_high = (end or 0.0 for end in ends)
    return low <= other_high and other_low <= high

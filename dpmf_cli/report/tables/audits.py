"""The tables of audits: what was tried on each algorithm, what was found, and what was refuted."""

import math
from collections.abc import Sequence

from dpmf_cli.audit.distinguish import LowerBound
from dpmf_cli.audit.job import Audited, Found
from dpmf_cli.audit.judge import Flaw
from dpmf_cli.audit.known import KnownFlaw
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.formats import render
from dpmf_cli.report.tables.layout import Group, TextTable

AUDITED_FIELDS = ("audited", "audited_ceiling", "audited_trials", "audited_confidence", "audited_gaussian")
"""The keys of an audited lower bound on ε, for programs."""

FIELDS = (
    "label",
    "algorithm",
    "neighbours",
    "mode",
    "joint",
    "delta",
    "provable",
    "pairs",
    "loss",
    *AUDITED_FIELDS,
    "flaw",
    "step",
    "size",
    "on_pairs",
    "pair",
    "epsilon",
    "said",
    "against",
)

FLAW_FIELDS = ("paper", "flaw", "entry", "found", "step", "size", "epsilon", "pair", "said")

NONE = "–"


def audits_table(audits: Sequence[Audited], form: str = "table") -> str:
    """Draws what was tried and found: a row for each algorithm; in `csv` and `json`, a row for each of its flaws."""
    return render(_summary(audits), FIELDS, [row for each in audits for row in _records(each)], form)


def flaws_table(shown: Sequence[tuple[KnownFlaw, Found | None]], form: str = "table") -> str:
    """Draws a row for each known flaw: what a paper gets wrong, and how an audit shows it."""
    records = [
        {
            "paper": flaw.paper.value,
            "flaw": flaw.what,
            "entry": flaw.entry,
            "found": found and found.flaw,
            "step": found and found.step,
            "size": found and (None if math.isnan(found.size) else found.size),
            "epsilon": found and found.epsilon,
            "pair": found and found.pair,
            "said": found and found.said,
        }
        for flaw, found in shown
    ]
    return render(_flaws(shown), FLAW_FIELDS, records, form)


def audited_cell(audited: Audited | None) -> str:
    """Returns `[0.61, 4.7, 400]`: the lower bound, the ceiling, and the number of fits on each side.

    For Gaussian noise it adds the bound that assumes a normal statistic. A bound of 0 says nothing about a larger ε
    than the ceiling, and the cell says so.
    """
    bound = None if audited is None else audited.bound or audited.canaries
    if bound is None:
        return NONE
    normal = "" if math.isnan(bound.gaussian) else f"; {significant(bound.gaussian)} if normal"
    most = "" if bound.epsilon else "nothing above "
    return f"[{significant(bound.epsilon)}, {most}{significant(bound.ceiling)}, {bound.trials}{normal}]"


def audited_record(audited: Audited | None) -> dict[str, object]:
    """Returns the same for programs, by `AUDITED_FIELDS`; all None if nothing was tried."""
    bound: LowerBound | None = None if audited is None else audited.bound or audited.canaries
    if bound is None:
        return dict.fromkeys(AUDITED_FIELDS)
    gaussian = None if math.isnan(bound.gaussian) else bound.gaussian
    values = (bound.epsilon, bound.ceiling, bound.trials, bound.confidence, gaussian)
    return dict(zip(AUDITED_FIELDS, values, strict=True))


def audited_notes(audits: Sequence[Audited]) -> list[str]:
    """Explains the cells of `audited_cell`."""
    bounds = [bound for each in audits if (bound := each.bound or each.canaries) is not None]
    if not bounds:
        return []
    epsilons = sorted({each.settings.epsilon for each in audits})
    normal = any(not math.isnan(bound.gaussian) for bound in bounds)
    at = " or ".join(f"{epsilon:g}" for epsilon in epsilons)
    return [
        f"audited: [lower bound, ceiling, n] of ε from n fits on each side of a pair at ε = {at}, at "
        f"{100 * audits[0].settings.confidence:g} % confidence",
        "ceiling: the largest bound that so many fits can show for any method; a bound below ε proves nothing, and a "
        "bound of 0 says nothing about an ε above the ceiling",
        *(["if normal: a bound for Gaussian noise that holds if the statistic is normal"] if normal else []),
    ]


def _summary(audits: Sequence[Audited]) -> TextTable:
    with_bounds = any(each.bound or each.canaries for each in audits)
    header = ["algorithm", "provable", "pairs", "closest step", "costliest pair"]
    header += ["audited"] * with_bounds + ["refuted"]
    groups: dict[str, list[tuple[str, ...]]] = {}
    for each in audits:
        found = each.refuted
        row = [
            each.label + "‡" * each.joint,
            NONE
            if math.isnan(each.provable)
            else "∞"
            if math.isinf(each.provable)
            else f"{significant(each.provable)} ε",
            str(each.pairs),
            _tightness(each),
            NONE if math.isnan(each.loss) else f"{significant(each.loss)} ε",
        ]
        row += [audited_cell(each)] * with_bounds
        row.append(
            "; ".join(_said(one) for one in found[:2])
            + (f"; {len(found) - 2} more" if len(found) > 2 else "")
            if found
            else "nothing"
        )
        groups.setdefault(f"{each.neighbours}, {each.mode}", []).append(tuple(row))
    notes = [
        f"provable: the provable ε over the claimed ε, at ε = {audits[0].settings.epsilon:g} (∞: no bound is known)"
        if audits
        else "",
        "closest step: how far the step that came nearest to its sensitivity moved, in percent of that sensitivity",
        "costliest pair: what the moves of one pair cost together, in units of the claimed ε, at the ε of its replay",
        "Gaussian noise: its cost in units of the claim changes with ε. If the costliest pair was replayed at "
        "another ε, it may exceed `provable` and refute nothing",
        "refuted: dpmf's own statements that an audit has shown to be false",
        "‡ joint DP: covers predictions for other users only",
    ]
    if with_bounds:
        notes += audited_notes(audits)
    return TextTable(
        tuple(header),
        "lr" + "r" * (len(header) - 3) + "l",
        tuple(Group(title, tuple(rows)) for title, rows in groups.items()),
        tuple(notes) if audits else (),
    )


def _flaws(shown: Sequence[tuple[KnownFlaw, Found | None]]) -> TextTable:
    groups: dict[str, list[tuple[str, ...]]] = {}
    for flaw, found in shown:
        row = ("not found", NONE, NONE)
        if found is not None:
            where = f"{found.step}: " if found.step else ""
            said = f", {found.said}" if found.said else ""
            pair = f"{found.pair}, ε = {found.epsilon:g}" if found.pair else NONE
            row = (f"{where}{found.flaw}{said}", _times(found.size), pair)
        groups.setdefault(flaw.paper.value, []).append((flaw.what, flaw.entry, *row))
    return TextTable(
        ("flaw", "shown by", "what a replay finds", "size", "worst pair"),
        "lllrl",
        tuple(Group(title, tuple(lines)) for title, lines in groups.items()),
        ("size: as a multiple of what the claim allows",) if groups else (),
    )


def _times(size: float) -> str:
    """Returns `1.25 ×`, or a sign for NaN and for infinity."""
    return NONE if math.isnan(size) else "∞" if math.isinf(size) else f"{significant(size)} ×"


def _tightness(each: Audited) -> str:
    moved = [step.of_sensitivity for step in each.steps if not math.isnan(step.of_sensitivity)]
    return f"{100 * max(moved):.4g} %" if moved else NONE


def _said(found: Found) -> str:
    step = f"{found.step}: " if found.step else ""
    size = "" if math.isnan(found.size) else f" ({_times(found.size)})"
    said = f": {found.said}" if found.flaw in (Flaw.CRASH, Flaw.BROKEN) else ""
    return f"{step}{found.flaw}{size}{said}"


def _records(each: Audited) -> list[dict[str, object]]:
    return [_record(each, found) for found in each.found] or [_record(each, None)]


def _record(each: Audited, found: Found | None) -> dict[str, object]:
    return {
        **{key: getattr(each, key) for key in FIELDS[:9]},
        **audited_record(each),
        "flaw": found and found.flaw,
        "step": found and found.step,
        "size": found and (None if math.isnan(found.size) else found.size),
        "on_pairs": found and found.pairs,
        "pair": found and found.pair,
        "epsilon": found and found.epsilon,
        "said": found and found.said,
        "against": found and found.against,
    }

"""The tables of audits: what was tried on each algorithm, what was found, and what was refuted."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from dpmf_cli.audit.distinguish import LowerBound
from dpmf_cli.audit.entries import KnownFlaw
from dpmf_cli.audit.job import Audited
from dpmf_cli.audit.judge import Finding, Flaw
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.layout import NONE, TableColumn, TextTable, names, tabled
from dpmf_cli.report.words import lines


def _bound(audited: Audited | None) -> LowerBound | None:
    return None if audited is None else audited.bound or audited.canaries


def audited_cell(audited: Audited | None) -> str:
    """Returns `[0.61, 4.7, 400]`: the lower bound, the ceiling, and the number of fits on each side.

    For Gaussian noise it adds the bound that assumes a normal statistic. A bound of 0 says nothing about a larger ε
    than the ceiling, and the cell says so.
    """
    bound = _bound(audited)
    if bound is None:
        return NONE
    normal = "" if math.isnan(bound.gaussian) else f"; {significant(bound.gaussian)} if normal"
    most = "" if bound.epsilon else "nothing above "
    return f"[{significant(bound.epsilon)}, {most}{significant(bound.ceiling)}, {bound.trials}{normal}]"


def audited_columns(audit: Callable[[Any], Audited | None]) -> Iterator[TableColumn[Any]]:
    """Yields the columns of an audited lower bound on ε, which `audit` finds for a row."""

    def column(
        name: str, of: Callable[[LowerBound], Any], text: Callable[[Any], str] | None = None
    ) -> TableColumn[Any]:
        return TableColumn(name, lambda row: (bound := _bound(audit(row))) and of(bound), text, align="r")

    yield column("audited", lambda bound: bound.epsilon, lambda row: audited_cell(audit(row)))
    yield column("audited_ceiling", lambda bound: bound.ceiling)
    yield column("audited_trials", lambda bound: bound.trials)
    yield column("audited_confidence", lambda bound: bound.confidence)
    yield column("audited_gaussian", lambda bound: _known(bound.gaussian))


def audited_notes(audits: Sequence[Audited], *, whole: bool = False) -> list[str]:
    """Explains the cells of `audited_cell`; with `whole`, all columns of audits."""
    bounds = [bound for each in audits if (bound := _bound(each)) is not None]
    normal = any(not math.isnan(bound.gaussian) for bound in bounds)
    return lines("notes/audits", audits=audits, whole=whole, bounds=bounds, normal=normal)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


_OF_AUDIT = "label algorithm neighbours mode joint delta provable pairs loss"
OF_FOUND: tuple[TableColumn[Finding], ...] = (
    *names("flaw step"),
    TableColumn("size", lambda found: _known(found.size), lambda found: _times(found.size), align="r"),
    TableColumn("on_pairs", lambda found: found.pairs),
    TableColumn("pair", text=lambda found: f"{found.pair}, ε = {found.epsilon:g}" if found.pair else NONE),
    *names("epsilon"),
)


def audits_table(audits: Sequence[Audited]) -> TextTable:
    """Returns what was tried and found: a row for each algorithm; for programs, a row for each of its flaws."""

    columns: list[TableColumn[Any]] = [
        *(column.at(itemgetter(0), column.name) for column in names(_OF_AUDIT)),
        *audited_columns(itemgetter(0)),
        *(column.at(itemgetter(1), column.name) for column in OF_FOUND),
        *(column.at(itemgetter(1), column.name) for column in names("said against")),
    ]
    rows = [(each, found) for each in audits for found in each.found or [None]]

    def tightness(each: Audited) -> str:
        moved = [step.of_sensitivity for step in each.steps if not math.isnan(step.of_sensitivity)]
        return f"{100 * max(moved):.4g} %" if moved else NONE

    with_bounds = any(_bound(each) for each in audits)
    seen = tabled(
        audits,
        shown=[
            TableColumn("algorithm", text=lambda each: each.label + "‡" * each.joint),
            TableColumn("provable", text=_provable, align="r"),
            TableColumn("pairs", align="r"),
            TableColumn("closest step", text=tightness, align="r"),
            TableColumn(
                "costliest pair",
                text=lambda each: NONE if math.isnan(each.loss) else f"{significant(each.loss)} ε",
                align="r",
            ),
            TableColumn("audited", text=audited_cell, align="r", seen=lambda audits: with_bounds),
            TableColumn("refuted", text=_refuted),
        ],
        title=lambda each: f"{each.neighbours}, {each.mode}",
        notes=audited_notes(audits, whole=True),
    )
    programs = tabled(rows, columns, title="")
    return replace(seen, fields=programs.fields, records=programs.records)


def flaws_table(shown: Sequence[tuple[KnownFlaw, Finding | None]]) -> TextTable:
    """Returns a row for each known flaw: what a paper gets wrong, and how an audit shows it."""

    of_found = {column.name: column.at(itemgetter(1), column.name) for column in OF_FOUND}

    def replayed(row: tuple[KnownFlaw, Finding | None]) -> str:
        _, found = row
        if found is None:
            return "not found"
        return (
            (f"{found.step}: " if found.step else "") + found.flaw + (f", {found.said}" if found.said else "")
        )

    columns: list[TableColumn[Any]] = [
        TableColumn("paper", lambda row: row[0].paper.value),
        TableColumn("flaw", lambda row: row[0].what),
        TableColumn("entry", lambda row: row[0].entry, head="shown by"),
        TableColumn("found", lambda row: row[1] and row[1].flaw, replayed, "what a replay finds"),
        *(
            of_found["step"],
            of_found["size"],
            of_found["epsilon"],
            replace(of_found["pair"], head="worst pair"),
        ),
        TableColumn("said", lambda row: row[1] and row[1].said),
    ]
    return tabled(
        shown,
        columns,
        ("flaw", "entry", "found", "size", "pair"),
        title=lambda row: row[0].paper.value,
        notes=("size: as a multiple of what the claim allows",) if shown else (),
    )


def _provable(each: Audited) -> str:
    if math.isnan(each.provable):
        return NONE
    return "∞" if math.isinf(each.provable) else f"{significant(each.provable)} ε"


def _refuted(each: Audited) -> str:
    found = each.refuted
    more = [f"{len(found) - 2} more"] * (len(found) > 2)
    return "; ".join([*map(_said, found[:2]), *more]) or "nothing"


def _times(size: float) -> str:
    """Returns `1.25 ×`, or a sign for NaN and for infinity."""
    return NONE if math.isnan(size) else "∞" if math.isinf(size) else f"{significant(size)} ×"


def _said(found: Finding) -> str:
    step = f"{found.step}: " if found.step else ""
    size = "" if math.isnan(found.size) else f" ({_times(found.size)})"
    said = f": {found.said}" if found.flaw in (Flaw.CRASH, Flaw.BROKEN) else ""
    return f"{step}{found.flaw}{size}{said}"

"""The privacy ledger of an experiment: each step with its mechanism, sensitivity, and claimed and provable ε.

Beside it, what personalised privacy cost the records, and audits: what was tried on each algorithm, what was found,
and what was refuted.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from dpmf_cli.audit.distinguish import LowerBound
from dpmf_cli.audit.entries import KnownFlaw
from dpmf_cli.audit.job import Audited
from dpmf_cli.audit.judge import Finding, Flaw
from dpmf_cli.core.terminal import csv_text, exact, significant
from dpmf_cli.evaluation.curves import OVER_RECORDS, Experiment, Measured
from dpmf_cli.report.tables.layout import (
    NONE,
    Group,
    TableColumn,
    TextTable,
    epsilon_cell,
    names,
    number,
    tabled,
)
from dpmf_cli.report.words import lines

Ledgers = Mapping[str, Sequence[Mapping[str, Any]]]
"""The steps of each curve's ledger, by its label, as plain data."""

FIELDS = "label epsilon step mechanism neighbours norm sensitivity calibrated_to claimed provable mu source"


def ledger_csv(ledgers: Ledgers) -> str:
    """One row per curve, step and ε; floats by `repr`; an ε that cannot be proved is `inf`."""

    rows = [
        {
            **step,
            **{key: step[key][at] for key in ("claimed", "provable", "mu") if key in step},
            "label": label,
            "epsilon": epsilon,
        }
        for label, steps in ledgers.items()
        for step in steps
        for at, epsilon in enumerate(step["epsilons"])
    ]
    fields = FIELDS.split()
    return csv_text([fields, *([row.get(name) for name in fields] for row in rows)])


def ledger_table(
    ledgers: Ledgers, experiment: Experiment, audits: Mapping[str, Audited] | None = None
) -> TextTable:
    """Per curve and step the shares of the total ε, at the largest ε of the grid.

    Pure steps have the same shares at every ε. A Gaussian step has its μ instead, if shares do not add up. A row
    below the sums has what audits of the entry found; `audits` are by label.
    """
    found, curves, counted = audits or {}, experiment.curves, experiment.counted
    shown = [(curve, steps) for curve in curves if (steps := ledgers.get(curve.label))]
    every = [step for _, steps in shown for step in steps]
    return TextTable(
        header=("step", "mechanism", "sensitivity", "claimed", "provable"),
        alignment="lllrr",
        groups=tuple(_of_curve(curve, steps, found.get(curve.label)) for curve, steps in shown),
        notes=(
            *lines("notes/ledger", steps=every, curves=curves, counted=counted),
            *audited_notes(list(found.values())),
        ),
    )


def _of_curve(curve: Measured, steps: Sequence[Mapping[str, Any]], audited: Audited | None) -> Group:
    """The steps of one curve, their sums, and what an audit found."""
    total = steps[0]["epsilons"][-1]

    def share(part: float) -> str:
        return epsilon_cell(part / total, " ε")

    title = f"{curve.label}{'‡' if curve.joint else ''}, {steps[0]['neighbours']}"
    if _noise(steps[0]):
        title += f", at ε = {significant(total)}, δ = {curve.delta:g}"
    rows = []
    for step in steps:
        # An ε that a publication adds up is a share of its total; one that it leaves to an accountant is not.
        noise = _noise(step)
        added = not noise or step["claimed"] != step["provable"]
        claimed = share(step["claimed"][-1]) if added else noise
        proved = noise or share(step["provable"][-1])
        true, used = float(step["sensitivity"]), float(step["calibrated_to"])
        sensitivity = "no bound known" if math.isinf(true) else f"{step['norm']} {true:.4g}"
        sensitivity += f", noise for {used:.4g}" * (true != used)
        rows.append((step["step"], step["mechanism"], sensitivity, claimed, proved))
    rows.append(("total", "", "", share(curve.claimed[-1]), share(curve.provable[-1])))
    if audited is not None:
        rows.append(("audited", "", "", "", audited_cell(audited)))
    return Group(title, tuple(rows))


def records_table(curves: Sequence[Measured]) -> TextTable:
    """Per personalised curve and ε of its grid, the fraction of records sampled and what they spend."""
    rows = [
        {"label": curve.label, "epsilon": epsilon, **dict(zip(OVER_RECORDS, columns, strict=True))}
        for curve in curves
        if (records := curve.records)
        for epsilon, *columns in zip(curve.epsilons, *records.values(), strict=True)
    ]

    def column(name: str, head: str, text: Callable[[float], str] = epsilon_cell) -> TableColumn[Any]:
        return TableColumn(name, lambda row: exact(row[name]), lambda row: text(row[name]), head, "r")

    shown = (
        column("epsilon", "ceiling ε"),
        column("threshold", "threshold t"),
        column("kept", "records kept", lambda kept: NONE if np.isnan(kept) else f"{100 * kept:.1f} %"),
        *(column(name, f"{name} ε") for name in ("least", "median", "largest")),
    )
    return tabled(
        rows,
        (TableColumn("label", itemgetter("label")), *shown),
        shown,
        title=lambda row: f"{row['label']}, per record",
        notes=lines("notes/records") if rows else (),
    )


def _noise(step: Mapping[str, Any]) -> str:
    """The noise of a Gaussian step; "" for another one."""
    if "mu" in step:
        return epsilon_cell(float(step["mu"][-1]), " μ")
    return f"{significant(float(step['multiplier'][-1]))} σ/c" if "multiplier" in step else ""


def audited_cell(audited: Audited | None) -> str:
    """`[0.61, 4.7, 400]`: the lower bound, the ceiling, and the number of fits on each side.

    For Gaussian noise it adds the bound that assumes a normal statistic. A bound of 0 says nothing about a larger ε
    than the ceiling, and the cell says so.
    """
    if audited is None or (bound := audited.bound) is None:
        return NONE
    normal = "" if math.isnan(bound.gaussian) else f"; {significant(bound.gaussian)} if normal"
    most = "" if bound.epsilon else "nothing above "
    return f"[{significant(bound.epsilon)}, {most}{significant(bound.ceiling)}, {bound.trials}{normal}]"


def audited_columns(audit: Callable[[Any], Audited | None]) -> Iterator[TableColumn[Any]]:
    """Yields the columns of an audited lower bound on ε, which `audit` finds for a row."""

    def bound_of(row: Any) -> LowerBound | None:
        return None if (audited := audit(row)) is None else audited.bound

    gaussian: TableColumn[LowerBound] = TableColumn("gaussian", lambda bound: _known(bound.gaussian))
    yield TableColumn(
        "audited",
        lambda row: (bound := bound_of(row)) and bound.epsilon,
        lambda row: audited_cell(audit(row)),
        align="r",
    )
    for column in (*names("ceiling trials confidence"), gaussian):
        yield column.at(bound_of, f"audited_{column.name}")


def audited_notes(audits: Sequence[Audited], *, whole: bool = False) -> list[str]:
    """Notes on the cells of `audited_cell`; with `whole`, all columns of audits."""
    bounds = [each.bound for each in audits if each.bound is not None]
    normal = any(not math.isnan(bound.gaussian) for bound in bounds)
    return lines("notes/audits", audits=audits, whole=whole, bounds=bounds, normal=normal)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


OF_FOUND: tuple[TableColumn[Finding], ...] = (
    *names("flaw step"),
    number("size", lambda size: epsilon_cell(size, " ×"), lambda found: _known(found.size)),
    TableColumn("on_pairs", lambda found: found.pairs),
    TableColumn("pair", text=lambda found: f"{found.pair}, ε = {found.epsilon:g}" if found.pair else NONE),
    *names("epsilon"),
)


def audits_table(audits: Sequence[Audited]) -> TextTable:
    """What was tried and found: a row for each algorithm; for programs, a row for each of its flaws."""
    of_audit = "label algorithm neighbours mode joint delta provable pairs loss"
    columns: list[TableColumn[Any]] = [
        *(column.at(itemgetter(0), column.name) for column in names(of_audit)),
        *audited_columns(itemgetter(0)),
        *(column.at(itemgetter(1), column.name) for column in (*OF_FOUND, *names("said against"))),
    ]
    programs = tabled([(each, found) for each in audits for found in each.found or [None]], columns, title="")

    def tightness(each: Audited) -> float:
        return max((step.of_sensitivity for step in each.steps if step.of_sensitivity >= 0), default=math.nan)

    def refuted(each: Audited) -> str:
        found = each.refuted
        more = [f"{len(found) - 2} more"] * (len(found) > 2)
        return "; ".join([*map(_said, found[:2]), *more]) or "nothing"

    shown: list[TableColumn[Audited]] = [
        TableColumn("algorithm", text=lambda each: each.label + "‡" * each.joint),
        number("provable", lambda share: epsilon_cell(share, " ε")),
        TableColumn("pairs", align="r"),
        number("closest step", lambda part: f"{100 * part:.4g} %", lambda each: _known(tightness(each))),
        number("costliest pair", lambda loss: epsilon_cell(loss, " ε"), lambda each: each.loss),
        TableColumn(
            "audited", text=audited_cell, align="r", seen=lambda audits: any(each.bound for each in audits)
        ),
        TableColumn("refuted", text=refuted),
    ]
    notes = audited_notes(audits, whole=True)
    seen = tabled(audits, shown=shown, title=lambda each: f"{each.neighbours}, {each.mode}", notes=notes)
    return replace(seen, fields=programs.fields, records=programs.records)


def flaws_table(shown: Sequence[tuple[KnownFlaw, Finding | None]]) -> TextTable:
    """A row for each known flaw: what a paper gets wrong, and how an audit shows it."""

    of_found = {column.name: column.at(itemgetter(1), column.name) for column in OF_FOUND}

    def replayed(row: tuple[KnownFlaw, Finding | None]) -> str:
        if (found := row[1]) is None:
            return "not found"
        return f"{found.step}: " * bool(found.step) + found.flaw + f", {found.said}" * bool(found.said)

    columns: list[TableColumn[Any]] = [
        TableColumn("paper", lambda row: row[0].paper.value),
        TableColumn("flaw", lambda row: row[0].what),
        TableColumn("entry", lambda row: row[0].entry, head="shown by"),
        TableColumn("found", lambda row: row[1] and row[1].flaw, replayed, "what a replay finds"),
        *(of_found[name] for name in ("step", "size", "epsilon")),
        replace(of_found["pair"], head="worst pair"),
        TableColumn("said", lambda row: row[1] and row[1].said),
    ]
    return tabled(
        shown,
        columns,
        ("flaw", "entry", "found", "size", "pair"),
        title=lambda row: row[0].paper.value,
        notes=("size: as a multiple of what the claim allows",) if shown else (),
    )


def _said(found: Finding) -> str:
    step = f"{found.step}: " if found.step else ""
    size = "" if math.isnan(found.size) else f" ({epsilon_cell(found.size, ' ×')})"
    said = f": {found.said}" if found.flaw in (Flaw.CRASH, Flaw.BROKEN) else ""
    return f"{step}{found.flaw}{size}{said}"

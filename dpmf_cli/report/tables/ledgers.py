"""The privacy ledger of an experiment: each step with its mechanism, sensitivity, and claimed and provable ε."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmf_cli.audit.job import Audited
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.audits import audited_cell, audited_notes
from dpmf_cli.report.tables.layout import Group, TextTable
from dpmf_cli.terminal import csv_text, exact

COLUMNS = (
    "label",
    "epsilon",
    "step",
    "mechanism",
    "neighbours",
    "norm",
    "sensitivity",
    "calibrated_to",
    "claimed",
    "provable",
    "mu",
    "source",
)


def ledger_csv(ledgers: dict[str, list[dict[str, Any]]]) -> str:
    """Returns one row per curve, step and ε; floats by `repr`; an ε that cannot be proved is `inf`."""
    rows: list[Sequence[Any]] = [COLUMNS]
    for label, steps in ledgers.items():
        for step in steps:
            for at, epsilon in enumerate(step["epsilons"]):
                per_epsilon: dict[str, Any] = {
                    key: step[key][at] for key in ("claimed", "provable", "mu") if key in step
                }
                row = {**step, **per_epsilon, "label": label, "epsilon": epsilon}
                rows.append([row.get(column) for column in COLUMNS])
    return csv_text(rows)


def ledger_text(
    ledgers: dict[str, list[dict[str, Any]]],
    curves: Sequence[Measured],
    audits: Mapping[str, Audited] | None = None,
) -> TextTable:
    """Returns per curve and step the shares of the total ε, at the largest ε of the grid.

    Pure steps have the same shares at every ε. A Gaussian step has its μ instead, if shares do not add up. A row
    below the sums has what audits of the entry found; `audits` are by label.
    """
    groups, composed, sampled = [], False, False
    for curve in curves:
        steps = ledgers.get(curve.label)
        if not steps:
            continue
        total = steps[0]["epsilons"][-1]
        rows = []
        for step in steps:
            gaussian = "mu" in step or "multiplier" in step
            proved = _noise(step) if gaussian else _share(step["provable"][-1], total)
            composed |= "mu" in step
            sampled |= "multiplier" in step and "mu" not in step
            # An ε that a publication adds up is a share of its total; one that it leaves to an accountant is not.
            added = not gaussian or step["claimed"] != step["provable"]
            claimed = _share(step["claimed"][-1], total) if added else _noise(step)
            rows.append((step["step"], step["mechanism"], _sensitivity(step), claimed, proved))
        sums = [_share(float(amount[-1]), total) for amount in (curve.claimed, curve.provable)]
        title = f"{curve.label}{'‡' if curve.joint else ''}, {steps[0]['neighbours']}"
        if "mu" in steps[0] or "multiplier" in steps[0]:
            title += f", at ε = {significant(total)}, δ = {curve.delta:g}"
        audited = (audits or {}).get(curve.label)
        shown = [("audited", "", "", "", audited_cell(audited))] if audited is not None else []
        groups.append(Group(title, (*rows, ("total", "", "", *sums), *shown)))
    notes = ["claimed, provable: the step's share of the total ε"] if groups else []
    if any(curve.joint for curve in curves):
        notes.append("‡ joint DP: holds against everybody but the user for whom a prediction is made")
    if composed:
        notes.append(
            "μ: sensitivity divided by the standard deviation of Gaussian noise; the squares of μ add up, and an "
            "accountant turns them into ε"
        )
    if sampled:
        notes.append(
            "σ/c: standard deviation of the noise, divided by the most that one user of a sample may add"
        )
    notes += audited_notes(list((audits or {}).values()))
    return TextTable(
        header=("step", "mechanism", "sensitivity", "claimed", "provable"),
        alignment="lllrr",
        groups=tuple(groups),
        notes=tuple(notes),
    )


RECORD_COLUMNS = ("label", "epsilon", "threshold", "kept", "least", "median", "largest")


def records_csv(curves: Sequence[Measured]) -> str:
    """Returns one row per personalised curve and ε: what its records spend; floats by `repr`."""
    rows: list[Sequence[str]] = [RECORD_COLUMNS]
    for curve in curves:
        if curve.records:
            columns = [getattr(curve.records, key) for key in RECORD_COLUMNS[2:]]
            for row in zip(curve.epsilons, *columns, strict=True):
                rows.append([curve.label, *map(exact, row)])
    return csv_text(rows)


def records_text(curves: Sequence[Measured]) -> TextTable:
    """Returns, per personalised curve and ε of its grid, the fraction of records sampled and what they spend."""
    groups = []
    for curve in curves:
        if curve.records:
            least, median, largest = curve.records.least, curve.records.median, curve.records.largest
            columns = (curve.epsilons, curve.records.threshold, curve.records.kept, least, median, largest)
            rows = tuple(
                (*map(_epsilon, (ceiling, threshold)), _percent(kept), *map(_epsilon, spent))
                for ceiling, threshold, kept, *spent in zip(*columns, strict=True)
            )
            groups.append(Group(f"{curve.label}, per record", rows))
    return TextTable(
        header=("ceiling ε", "threshold t", "records kept", "least ε", "median ε", "largest ε"),
        alignment="rrrrrr",
        groups=tuple(groups),
        notes=(
            "ε per record: the provable ε of a record; over all folds and runs",
            "these are exact statistics of the ratings, without noise: diagnostics that you must not release",
        )
        if groups
        else (),
    )


def _epsilon(value: float) -> str:
    return "–" if np.isnan(value) else "∞" if np.isinf(value) else significant(float(value))


def _percent(part: float) -> str:
    return "–" if np.isnan(part) else f"{100 * part:.1f} %"


def _noise(step: dict[str, Any]) -> str:
    if "mu" not in step:
        return f"{significant(float(step['multiplier'][-1]))} σ/c"
    mu = float(step["mu"][-1])
    return "∞" if np.isinf(mu) else f"{significant(mu)} μ"


def _sensitivity(step: dict[str, Any]) -> str:
    """Returns `L1 4`, or `L1 5, noise for 4` if the noise was scaled to another sensitivity than the true one."""
    true, used = float(step["sensitivity"]), float(step["calibrated_to"])
    shown = "no bound known" if true == float("inf") else f"{step['norm']} {true:.4g}"
    return shown if true == used else f"{shown}, noise for {used:.4g}"


def _share(part: float, total: float) -> str:
    return "∞" if part == float("inf") else f"{significant(part / total)} ε"

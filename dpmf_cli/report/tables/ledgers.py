"""The privacy ledger of an experiment: each step with its mechanism, sensitivity, and claimed and provable ε.

Beside it, what personalised privacy cost the records.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmf_cli.audit.job import Audited
from dpmf_cli.core.terminal import exact
from dpmf_cli.evaluation.curves import OVER_RECORDS, Measured
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.report.tables.audits import audited_cell, audited_notes
from dpmf_cli.report.tables.columns import NONE, TableColumn, epsilon_cell, tabled
from dpmf_cli.report.tables.layout import Group, TextTable, draw
from dpmf_cli.report.words import lines

Ledgers = Mapping[str, Sequence[Mapping[str, Any]]]
"""The steps of each curve's ledger, by its label, as plain data."""

PER_EPSILON = ("claimed", "provable", "mu")
FIELDS = "label epsilon step mechanism neighbours norm sensitivity calibrated_to claimed provable mu source"


def ledger_csv(ledgers: Ledgers) -> str:
    """Returns one row per curve, step and ε; floats by `repr`; an ε that cannot be proved is `inf`."""

    def value(name: str) -> TableColumn[Mapping[str, Any]]:
        return TableColumn(name, lambda row: row.get(name))

    rows = [
        {
            **step,
            **{key: step[key][at] for key in PER_EPSILON if key in step},
            "label": label,
            "epsilon": epsilon,
        }
        for label, steps in ledgers.items()
        for step in steps
        for at, epsilon in enumerate(step["epsilons"])
    ]
    return draw(tabled(rows, map(value, FIELDS.split()), title=""), "csv")


def ledger_table(
    ledgers: Ledgers, curves: Sequence[Measured], audits: Mapping[str, Audited] | None = None
) -> TextTable:
    """Returns per curve and step the shares of the total ε, at the largest ε of the grid.

    Pure steps have the same shares at every ε. A Gaussian step has its μ instead, if shares do not add up. A row
    below the sums has what audits of the entry found; `audits` are by label.
    """
    found = audits or {}
    shown = [(curve, steps) for curve in curves if (steps := ledgers.get(curve.label))]
    every = [step for _, steps in shown for step in steps]
    return TextTable(
        header=("step", "mechanism", "sensitivity", "claimed", "provable"),
        alignment="lllrr",
        groups=tuple(_of_curve(curve, steps, found.get(curve.label)) for curve, steps in shown),
        notes=(*lines("notes/ledger", steps=every, curves=curves), *audited_notes(list(found.values()))),
    )


def _of_curve(curve: Measured, steps: Sequence[Mapping[str, Any]], audited: Audited | None) -> Group:
    """Returns the steps of one curve, their sums, and what an audit found."""
    total = steps[0]["epsilons"][-1]
    title = f"{curve.label}{'‡' if curve.joint else ''}, {steps[0]['neighbours']}"
    if _is_gaussian(steps[0]):
        title += f", at ε = {significant(total)}, δ = {curve.delta:g}"
    rows = []
    for step in steps:
        # An ε that a publication adds up is a share of its total; one that it leaves to an accountant is not.
        added = not _is_gaussian(step) or step["claimed"] != step["provable"]
        claimed = _share(step["claimed"][-1], total) if added else _noise(step)
        proved = _noise(step) if _is_gaussian(step) else _share(step["provable"][-1], total)
        rows.append((step["step"], step["mechanism"], _sensitivity(step), claimed, proved))
    sums = [_share(float(amount[-1]), total) for amount in (curve.claimed, curve.provable)]
    found = [("audited", "", "", "", audited_cell(audited))] if audited is not None else []
    return Group(title, (*rows, ("total", "", "", *sums), *found))


def records_table(curves: Sequence[Measured]) -> TextTable:
    """Returns, per personalised curve and ε of its grid, the fraction of records sampled and what they spend.

    Floats for programs are by `repr`, and absent ones are empty.
    """
    rows = [
        {"label": curve.label, "epsilon": epsilon, **dict(zip(OVER_RECORDS, columns, strict=True))}
        for curve in curves
        if (records := curve.records)
        for epsilon, *columns in zip(curve.epsilons, *records.values(), strict=True)
    ]

    def spent(name: str, head: str) -> TableColumn[Mapping[str, Any]]:
        return TableColumn(name, lambda row: exact(row[name]), lambda row: epsilon_cell(row[name]), head, "r")

    columns: Sequence[TableColumn[Mapping[str, Any]]] = (
        TableColumn("label", lambda row: row["label"]),
        spent("epsilon", "ceiling ε"),
        spent("threshold", "threshold t"),
        TableColumn(
            "kept",
            lambda row: exact(row["kept"]),
            lambda row: NONE if np.isnan(row["kept"]) else f"{100 * row['kept']:.1f} %",
            "records kept",
            "r",
        ),
        *(spent(name, f"{name} ε") for name in ("least", "median", "largest")),
    )
    notes = (
        "ε per record: the provable ε of a record; over all folds and runs",
        "these are exact statistics of the ratings, without noise: diagnostics that you must not release",
    )
    return tabled(
        rows,
        columns,
        ("epsilon", "threshold", "kept", "least", "median", "largest"),
        title=lambda row: f"{row['label']}, per record",
        notes=notes if rows else (),
    )


def _is_gaussian(step: Mapping[str, Any]) -> bool:
    return "mu" in step or "multiplier" in step


def _noise(step: Mapping[str, Any]) -> str:
    if "mu" not in step:
        return f"{significant(float(step['multiplier'][-1]))} σ/c"
    mu = float(step["mu"][-1])
    return "∞" if np.isinf(mu) else f"{significant(mu)} μ"


def _sensitivity(step: Mapping[str, Any]) -> str:
    """Returns `L1 4`, or `L1 5, noise for 4` if the noise was scaled to another sensitivity than the true one."""
    true, used = float(step["sensitivity"]), float(step["calibrated_to"])
    shown = "no bound known" if true == float("inf") else f"{step['norm']} {true:.4g}"
    return shown if true == used else f"{shown}, noise for {used:.4g}"


def _share(part: float, total: float) -> str:
    return "∞" if part == float("inf") else f"{significant(part / total)} ε"

"""The privacy ledger of an experiment: per mechanism what it measures, its sensitivity, claimed and provable."""

import csv
import io
from typing import Any

from dpmf_cli.report.layout import Group, TextTable, significant

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
    "source",
)


def ledger_csv(ledgers: dict[str, list[dict[str, Any]]]) -> str:
    """One row per curve, step and ε; floats by `repr`; an ε that cannot be proved is `inf`."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for label, steps in ledgers.items():
        for step in steps:
            for epsilon, claimed, provable in zip(
                step["epsilons"], step["claimed"], step["provable"], strict=True
            ):
                row = {**step, "label": label, "epsilon": epsilon, "claimed": claimed, "provable": provable}
                writer.writerow(row)
    return stream.getvalue()


def ledger_text(ledgers: dict[str, list[dict[str, Any]]]) -> TextTable:
    """Per curve and step, the shares of the total ε: the same for every ε of a grid, shown at the largest."""
    groups = []
    for label, steps in ledgers.items():
        if not steps:
            continue
        total = steps[0]["epsilons"][-1]
        rows = [
            (
                step["step"],
                step["mechanism"],
                _sensitivity(step),
                _share(step["claimed"][-1], total),
                _share(step["provable"][-1], total),
            )
            for step in steps
        ]
        sums = [_share(sum(step[key][-1] for step in steps), total) for key in ("claimed", "provable")]
        groups.append(Group(f"{label}, {steps[0]['neighbours']}", (*rows, ("total", "", "", *sums))))
    return TextTable(
        header=("step", "mechanism", "sensitivity", "claimed", "provable"),
        alignment="lllrr",
        groups=tuple(groups),
        notes=("claimed, provable: what the step spends of the total ε",) if groups else (),
    )


def _sensitivity(step: dict[str, Any]) -> str:
    """`L1 4`, or `L1 5, noise for 4` where the noise was scaled to another sensitivity than the true one."""
    true, used = float(step["sensitivity"]), float(step["calibrated_to"])
    shown = "no bound known" if true == float("inf") else f"{step['norm']} {true:.4g}"
    return shown if true == used else f"{shown}, noise for {used:.4g}"


def _share(part: float, total: float) -> str:
    return "∞" if part == float("inf") else f"{significant(part / total)} ε"

"""What the ε of curves means, in the lines below a figure."""

from collections.abc import Sequence

from dpmf_cli.evaluation.curves import Axis, Measured
from dpmf_cli.evaluation.numbers import significant


def meaning_of(curves: Sequence[Measured], axis: Axis) -> list[str]:
    """Which δ stand beside ε, what ε the largest θ stands for, and which curves are joint DP."""
    notes = []
    for delta in sorted({curve.delta for curve in curves if curve.delta}):
        labels = [curve.label for curve in curves if curve.delta == delta]
        whose = "all curves" if len(labels) == len(curves) else "; ".join(labels)
        notes.append(f"(ε, δ) with δ = {delta:g}: {whose}.")
    if axis == "theta":
        for largest in sorted({float(curve.along(axis)[-1]) for curve in curves}):
            found: dict[str, list[str]] = {}
            for curve in curves:
                if float(curve.along(axis)[-1]) == largest:
                    found.setdefault(significant(float(curve.epsilons[-1])), []).append(curve.label)
            claimed = "; ".join(f"{epsilon} for {', '.join(labels)}" for epsilon, labels in found.items())
            notes.append(f"ε at θ = {significant(largest)}: {claimed}.")
    joint = [curve.label for curve in curves if curve.joint]
    if joint:
        whose = "all curves" if len(joint) == len(curves) else "; ".join(joint)
        notes.append(f"Joint DP, predicting from the user's own clean ratings: {whose}.")
    return notes

"""The guarantee of a crossing, and what an ε of one guarantee implies for another."""

from collections.abc import Collection
from itertools import permutations

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, protection_of


def guarantee_of(crossing: Crossing, curve: Measured | None) -> Guarantee:
    """Returns what the ε of a crossing guarantees. `curve` is the curve that crosses; None if it is not at hand."""
    protects = (curve.protects if curve else None) or protection_of(Neighbours(crossing.neighbours))
    return Guarantee(protects, crossing.joint, crossing.delta)


def between(guarantees: Collection[Guarantee]) -> str:
    """Says what an ε of one of several guarantees implies for the others."""
    text = "Each heading above makes a different promise. "
    protections = {guarantee.protects for guarantee in guarantees}
    if len(protections) == len(guarantees):
        return text + "An ε under one heading cannot be compared with an ε under another."
    text += "An ε under one heading is not ranked against an ε under another"
    text += (
        ", and cannot even be compared with it if they hide different things."
        if len(protections) > 1
        else "."
    )
    implied = [(a, b) for a, b in permutations(guarantees, 2) if a.implies(b)]
    if any(a.delta < b.delta for a, b in implied):
        text += " Pure ε implies (ε, δ) at the same ε. A δ implies every larger δ. The converses are false."
    if any(a.joint < b.joint for a, b in implied):
        text += " Protection towards everybody implies joint protection at the same ε; the converse is false."
    return text

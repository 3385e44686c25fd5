"""Describes guarantees in words, and says what an ε of one guarantee implies for another."""

from collections.abc import Collection
from itertools import permutations

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of

HIDDEN = {
    Protection.VALUE: "the value of one rating",
    Protection.PRESENCE: "whether one rating exists",
    Protection.PERSONALISED: "whether a rating exists, with an ε for each rating, the largest of which is given",
    Protection.PERSONALISED_VALUE: "the value of a rating, with an ε for each rating, the largest of which is given",
    Protection.USER: "whether a user took part at all, with all ratings",
    Protection.LOCAL: "the value of one rating from the service itself",
}
"""What each kind of protection hides, in words."""

PUBLIC = {Protection.VALUE: ", but not that it exists", Protection.LOCAL: ", but not that it exists"}
"""What each kind of protection leaves public, in words."""


_NEIGHBOURS = {
    **{protection_of(each): each for each in Neighbours},
    Protection.PERSONALISED: Neighbours.UNBOUNDED,
    Protection.PERSONALISED_VALUE: Neighbours.BOUNDED,
}
"""The relation of neighbours that each kind of protection uses."""


def in_words(guarantee: Guarantee) -> str:
    """Says what a guarantee hides, from whom, under which neighbours, and with which δ."""
    protects = guarantee.protects
    words = f"{HIDDEN[protects]}{PUBLIC.get(protects, '')} (neighbours: {_NEIGHBOURS[protects].value})"
    if guarantee.joint:
        words += ", from everybody but the user who gets the prediction (joint)"
    return words + (f", by (ε, δ)-DP with δ = {guarantee.delta:g}" if guarantee.delta else ", by pure ε-DP")


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

"""What guarantees hide, in words, and what an ε of one says of another."""

from collections.abc import Collection
from itertools import permutations

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of

HIDDEN = {
    Protection.VALUE: "the value of one rating",
    Protection.PRESENCE: "whether one rating exists",
    Protection.PERSONALISED: "whether a rating exists, each by its own ε, of which the one given is the largest",
    Protection.PERSONALISED_VALUE: "the value of a rating, each by its own ε, of which the one given is the largest",
    Protection.USER: "whether a user took part at all, with all ratings",
    Protection.LOCAL: "the value of one rating from the service itself",
}
"""What is protected, in words."""

PUBLIC = {Protection.VALUE: ", not that it exists", Protection.LOCAL: ", not that it exists"}
"""What is not protected beside it, in words."""


_NEIGHBOURS = {
    **{protection_of(each): each for each in Neighbours},
    Protection.PERSONALISED: Neighbours.UNBOUNDED,
    Protection.PERSONALISED_VALUE: Neighbours.BOUNDED,
}
"""Between which data sets such an ε speaks."""


def in_words(guarantee: Guarantee) -> str:
    """What a guarantee hides from whom, between which data sets, and by which δ."""
    protects = guarantee.protects
    words = f"{HIDDEN[protects]}{PUBLIC.get(protects, '')} (neighbours: {_NEIGHBOURS[protects].value})"
    if guarantee.joint:
        words += ", from everybody but the user who gets the prediction (joint)"
    return words + (f", by (ε, δ) with δ = {guarantee.delta:g}" if guarantee.delta else ", by pure ε")


def guarantee_of(crossing: Crossing, curve: Measured | None) -> Guarantee:
    """What the ε of a crossing guarantees; `curve` is the one that crosses, where it is at hand."""
    protects = (curve.protects if curve else None) or protection_of(Neighbours(crossing.neighbours))
    return Guarantee(protects, crossing.joint, crossing.delta)


def between(guarantees: Collection[Guarantee]) -> str:
    """What an ε of one of several guarantees says of the others."""
    text = "Each heading above promises something else. "
    protections = {guarantee.protects for guarantee in guarantees}
    if len(protections) == len(guarantees):
        return text + "An ε of one cannot be compared with an ε of another."
    text += "An ε of one is not ranked against an ε of another"
    text += ", and cannot even be compared where they hide different things." if len(protections) > 1 else "."
    implied = [(a, b) for a, b in permutations(guarantees, 2) if a.implies(b)]
    if any(a.delta < b.delta for a, b in implied):
        text += " What holds by pure ε holds by (ε, δ) too, and with a larger δ; never the other way round."
    if any(a.joint < b.joint for a, b in implied):
        text += (
            " What holds towards everybody holds towards the others (joint) too; never the other way round."
        )
    return text

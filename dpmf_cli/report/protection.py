"""What an ε protects, in words, and which ε may be ranked against each other for it."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import permutations

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of

HIDDEN = {
    Protection.VALUE: "the value of one rating",
    Protection.PRESENCE: "whether one rating exists",
    Protection.PERSONALISED: "whether a rating exists, each by its own ε, of which the one given is the largest",
    Protection.USER: "whether a user took part at all, with all ratings",
    Protection.LOCAL: "the value of one rating from the service itself",
}
"""What is protected, in words."""

PUBLIC = {Protection.VALUE: ", not that it exists", Protection.LOCAL: ", not that it exists"}
"""What is not protected beside it, in words."""


_NEIGHBOURS = {
    **{protection_of(each): each for each in Neighbours},
    Protection.PERSONALISED: Neighbours.UNBOUNDED,
}
"""Between which data sets such an ε speaks; personalised privacy is of single ratings that come or go."""


@dataclass(frozen=True)
class Promise:
    """What two ε must have in common to be ranked against each other."""

    guarantee: Guarantee
    delta: float

    def __str__(self) -> str:
        protects = self.guarantee.protects
        words = f"{HIDDEN[protects]}{PUBLIC.get(protects, '')} (neighbours: {_NEIGHBOURS[protects].value})"
        if self.guarantee.joint:
            words += ", from everybody but the user who gets the prediction (joint)"
        return words + (f", by (ε, δ) with δ = {self.delta:g}" if self.delta else ", by pure ε")

    def implies(self, other: "Promise") -> bool:
        """Whether what keeps this one at some ε keeps the other at the same ε."""
        ours, theirs = self.guarantee, other.guarantee
        return ours.protects == theirs.protects and ours.joint <= theirs.joint and self.delta <= other.delta


def promise_of(crossing: Crossing, curve: Measured | None) -> Promise:
    """What the ε of a crossing promises; `curve` is the one that crosses, where it is at hand."""
    protects = (curve.protects if curve else None) or protection_of(Neighbours(crossing.neighbours))
    return Promise(Guarantee(protects, crossing.joint), crossing.delta)


def between(promises: Collection[Promise]) -> str:
    """What an ε of one of several promises says of the others."""
    text = "Each heading above promises something else. "
    kinds = {promise.guarantee.protects for promise in promises}
    if len(kinds) == len(promises):
        return text + "An ε of one cannot be compared with an ε of another."
    text += "An ε of one is not ranked against an ε of another"
    text += ", and cannot even be compared where they hide different things." if len(kinds) > 1 else "."
    implied = [(a, b) for a, b in permutations(promises, 2) if a.implies(b)]
    if any(a.delta < b.delta for a, b in implied):
        text += " What holds by pure ε holds by (ε, δ) too, and with a larger δ; never the other way round."
    if any(a.guarantee.joint < b.guarantee.joint for a, b in implied):
        text += (
            " What holds towards everybody holds towards the others (joint) too; never the other way round."
        )
    return text

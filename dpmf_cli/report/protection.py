"""What an ε protects, in words, and which ε may be compared for it."""

from dataclasses import dataclass

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Protection, protection_of

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


@dataclass(frozen=True)
class Promise:
    """What two ε must have in common to be compared."""

    neighbours: Neighbours
    protects: Protection
    joint: bool
    delta: float

    def __str__(self) -> str:
        words = (
            f"{HIDDEN[self.protects]}{PUBLIC.get(self.protects, '')} (neighbours: {self.neighbours.value})"
        )
        if self.joint:
            words += ", from everybody but the user who gets the prediction (joint)"
        return words + (f", by (ε, δ) with δ = {self.delta:g}" if self.delta else ", by pure ε")


def promise_of(crossing: Crossing, curve: Measured | None) -> Promise:
    """What the ε of a crossing promises; `curve` is the one that crosses, where it is at hand."""
    neighbours = Neighbours(crossing.neighbours)
    protects = (curve.protects if curve else None) or protection_of(neighbours)
    return Promise(neighbours, protects, crossing.joint, crossing.delta)

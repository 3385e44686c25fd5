"""What an ε protects, in words, and which ε may be compared for it."""

from dataclasses import dataclass

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.privacy.neighbours import Neighbours

HIDDEN = {
    Neighbours.BOUNDED: "the value of one rating",
    Neighbours.UNBOUNDED: "whether one rating exists",
    Neighbours.USER: "whether a user took part at all, with all ratings",
    Neighbours.LOCAL: "the value of one rating from the service itself",
}
"""What the kinds of neighbours protect, in words."""

PUBLIC = {Neighbours.BOUNDED: ", not that it exists", Neighbours.LOCAL: ", not that it exists"}
"""What is not protected, in words."""


@dataclass(frozen=True, order=True)
class Protection:
    """What an ε protects, as far as two ε must have it in common to be compared."""

    neighbours: str
    joint: bool = False
    delta: float = 0.0
    personal: bool = False

    def __str__(self) -> str:
        kind = Neighbours(self.neighbours)
        words = f"{HIDDEN[kind]}{PUBLIC.get(kind, '')} (neighbours: {kind.value})"
        if self.joint:
            words += ", from everybody but the user who gets the prediction (joint)"
        if self.personal:
            words += ", each by an ε of its own, of which the one given is the largest"
        return words + (f", by (ε, δ) with δ = {self.delta:g}" if self.delta else ", by pure ε")


def protection_of(crossing: Crossing, curve: Measured | None) -> Protection:
    """What the ε of a crossing protects; `curve` is the one that crosses, where it is at hand."""
    personal = crossing.algorithm == "personalized" or (curve is not None and curve.records is not None)
    return Protection(crossing.neighbours, crossing.joint, crossing.delta, personal)

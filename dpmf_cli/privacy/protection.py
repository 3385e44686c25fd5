"""Guarantees: what an ε protects, and from whom. Different guarantees are never ranked against each other."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from dpmf_cli.privacy.neighbours import Neighbours


class Protection(StrEnum):
    """What an ε protects, in the order of the tables."""

    VALUE = "rating value"
    PRESENCE = "rating presence"
    PERSONALISED = "rating presence, personalised"
    PERSONALISED_VALUE = "rating value, personalised"
    USER = "user"
    LOCAL = "local"


@dataclass(frozen=True)
class Guarantee:
    """What an ε protects, from whom, and with which δ.

    Two ε may be ranked only if they protect the same from the same people.

    protects   what the ε protects
    joint      whether predictions are made from the target user's own clean ratings; the ε then holds against the
               other users only: joint differential privacy
    delta      δ of (ε, δ); 0 for pure ε
    """

    protects: Protection
    joint: bool = False
    delta: float = 0.0

    def __str__(self) -> str:
        """Returns what is protected and from whom; tables and figures give δ elsewhere."""
        return f"{self.protects}, towards {self.towards}{' (joint DP)' * self.joint}"

    @property
    def towards(self) -> str:
        """From whom the ε protects."""
        if not self.joint:
            return "everybody"
        return "all others" if self.protects is Protection.LOCAL else "other users"

    @property
    def at_any_delta(self) -> "Guarantee":
        """The same guarantee with δ = 0: only what is protected from whom. Tables and figures are grouped by it."""
        return replace(self, delta=0.0)

    def implies(self, other: "Guarantee") -> bool:
        """Whether every method that keeps this guarantee at some ε keeps `other` at the same ε."""
        return self.protects == other.protects and self.joint <= other.joint and self.delta <= other.delta

    @property
    def key(self) -> str:
        """A word for file names: `value`, `value_joint`."""
        return self.protects.name.lower() + "_joint" * self.joint

    @property
    def statement(self) -> str:
        """What such an ε promises, in a sentence or two; docs/privacy.md explains it at length."""
        who = _OTHERS.get(self.protects, "the other users, even all together,") if self.joint else "anybody"
        said = _BOUNDS[self.protects].format(who=who)
        return f"{said} {_OPEN}" if self.joint else said

    @property
    def of_delta(self) -> str:
        """What δ is, and how small it should be, in a sentence that depends on no data."""
        return (
            f"Some outputs, of a probability of at most δ = {self.delta:g}, may tell more than ε allows, so δ should "
            f"be well below one over the number of {self._units}."
        )

    def warning(self, users: int, ratings: int) -> str:
        """Says that δ is not below one over the number of what is protected; empty if it is."""
        count = users if self.protects is Protection.USER else ratings
        if self.delta * count < 1:
            return ""
        least = 10.0 ** -math.ceil(math.log10(count) + 1)
        return (
            f"δ = {self.delta:g} is not below one over the number of {self._units}, {count:,}, and such a δ allows "
            f"to publish one of them as it is; set `delta: {least:g}` or less"
        )

    @property
    def _units(self) -> str:
        return "users" if self.protects is Protection.USER else "ratings"


GUARANTEES = tuple(Guarantee(kind, joint) for kind in Protection for joint in (False, True))
"""All guarantees, with δ = 0, in the order of the tables."""

_BOUNDS = {
    Protection.VALUE: "ε bounds what {who} can learn about the value of one rating; who rated what is public.",
    Protection.PRESENCE: "ε bounds what {who} can learn about whether one rating exists, and about what it is.",
    Protection.PERSONALISED: "ε is a ceiling on what {who} can learn about whether a rating exists: each rating "
    "has an ε of its own, often a smaller one.",
    Protection.PERSONALISED_VALUE: "ε is a ceiling on what {who} can learn about the value of a rating: each rating "
    "has an ε of its own, often a smaller one. Half of that ε hides who rated what.",
    Protection.USER: "ε bounds what {who} can learn about whether one user, with all ratings, took part at all.",
    Protection.LOCAL: "ε bounds what {who}, the aggregator too, can learn about the value of one rating, from all "
    "messages of its user; who rated what is public.",
}
_OTHERS = {Protection.LOCAL: "anybody but its user"}
_OPEN = (
    "Predictions for a user are made from that user's own clean ratings: ε does not bound what somebody who sees "
    "these predictions learns about that user."
)

_OF_NEIGHBOURS = {
    Neighbours.BOUNDED: Protection.VALUE,
    Neighbours.UNBOUNDED: Protection.PRESENCE,
    Neighbours.USER: Protection.USER,
    Neighbours.LOCAL: Protection.LOCAL,
}


def protection_of(neighbours: Neighbours) -> Protection:
    """Returns what an ε for these neighbours protects, if all ratings have the same ε."""
    return _OF_NEIGHBOURS[neighbours]

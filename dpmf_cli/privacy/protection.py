"""Guarantees: what an ε protects, and from whom. Different guarantees are never ranked against each other."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import yaml

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
        """What is protected, and from whom; tables and figures give δ elsewhere."""
        return f"{self.protects}, against {self.towards}{' (joint DP)' * self.joint}"

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
        promise = PROMISES[self.protects]
        who = promise.others if self.joint else promise.anybody
        rest = f"{promise.besides}{promise.because}{promise.each}"
        return f"ε bounds what {who} can learn about {promise.hides}; {rest}." + f" {_OPEN}" * self.joint

    @property
    def in_words(self) -> str:
        """What is hidden, what is not, under which neighbours, from whom, and with which δ: a part of a sentence."""
        promise = PROMISES[self.protects]
        larger = " with (1 + e^ε)·δ for δ" if promise.because and self.delta else ""
        words = f"{promise.hides} ({promise.besides}{larger}{promise.each}; neighbours: {promise.neighbours.value})"
        if self.joint:
            words += ", from everybody but the user who gets the prediction (joint)"
        return words + (f", by (ε, δ)-DP with δ = {self.delta:g}" if self.delta else ", by pure ε-DP")

    @property
    def of_delta(self) -> str:
        """What δ is, and how small it should be, in a sentence that depends on no data."""
        outputs = f"Some outputs, of a probability of at most δ = {self.delta:g}, may tell more than ε allows"
        return f"{outputs}, so δ should be well below one over the number of {self._units}."

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


class _Promise(NamedTuple):
    """What an ε for these neighbours bounds, and what it says about everything else of the same rating or user.

    hides    what ε bounds
    besides  what is public, or which multiple of ε bounds the rest
    because  why, if two steps from neighbour to neighbour lead there: a δ becomes (1 + e^ε)·δ
    each     added if each rating has an ε of its own
    anybody, others   from whom: as a rule, and if the guarantee is joint
    """

    neighbours: Neighbours
    hides: str
    besides: str
    because: str = ""
    each: str = ""
    anybody: str = "anybody"
    others: str = "the other users, even all together,"


_PLAIN: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
PROMISES = {
    Protection[name.upper()]: _Promise(Neighbours(promise.pop("neighbours")), **promise)
    for name, promise in _PLAIN.items()
}
_OPEN = (
    "Predictions for a user are made from that user's own clean ratings: ε does not bound what somebody who sees "
    "these predictions learns about that user."
)


def protection_of(neighbours: Neighbours) -> Protection:
    """What an ε for these neighbours protects, if all ratings have the same ε."""
    return next(kind for kind in Protection if PROMISES[kind].neighbours is neighbours)

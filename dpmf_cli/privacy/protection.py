"""What an ε protects: the kinds of statement that are told apart, and never ranked against each other."""

from enum import StrEnum

from dpmf_cli.privacy.neighbours import Neighbours


class Protection(StrEnum):
    """What one ε is about; in the order in which tables have them."""

    VALUE = "rating value"
    PRESENCE = "rating presence"
    PERSONALISED = "rating presence, personalised"
    USER = "user"
    LOCAL = "local"

    @property
    def statement(self) -> str:
        """What an ε of this kind says, as a sentence; docs/privacy.md has it at length."""
        return _STATEMENTS[self]


_STATEMENTS = {
    Protection.VALUE: "ε bounds what anybody can learn about the value of one rating; who rated what is public.",
    Protection.PRESENCE: "ε bounds what anybody can learn about whether one rating exists, and about what it is.",
    Protection.PERSONALISED: "ε is a ceiling on what can be learned about whether a rating exists: each rating "
    "has an ε of its own, often a smaller one.",
    Protection.USER: "ε bounds what anybody can learn about whether one user, with all ratings, took part at all.",
    Protection.LOCAL: "ε bounds what the aggregator, too, can learn about the value of one rating, from all messages "
    "of its user; who rated what is public.",
}

_OF_NEIGHBOURS = {
    Neighbours.BOUNDED: Protection.VALUE,
    Neighbours.UNBOUNDED: Protection.PRESENCE,
    Neighbours.USER: Protection.USER,
    Neighbours.LOCAL: Protection.LOCAL,
}


def protection_of(neighbours: Neighbours) -> Protection:
    """What an ε for these neighbours protects where all ratings have the same."""
    return _OF_NEIGHBOURS[neighbours]

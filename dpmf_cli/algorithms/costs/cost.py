"""What a fit takes: its time and memory, as plans and progress need them, given the size of a training set."""

import math
from dataclasses import dataclass

UNEVENNESS = 2.5
"""Σ c_u² over what it would be if all users had as many ratings: 1.9 in ML-100K, 2.4 in ML-1M, 3.1 in a sample of
Netflix."""


@dataclass(frozen=True)
class Shape:
    """The size of a training set.

    squares   Σ c_u² over its users, c_u being the number of ratings of one; estimated where it is not given
    """

    users: int
    items: int
    ratings: int
    squares: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.squares):
            object.__setattr__(self, "squares", UNEVENNESS * self.ratings**2 / self.users)


@dataclass(frozen=True)
class Cost:
    """What one fit takes: bytes beside the ratings themselves, and time, as what it consists of, since the same work
    takes another time on another machine, and on data that no longer fit a cache (`machine.Machine.seconds`).

    seconds   of one core of `machine.REFERENCE`, with data near
    far       (count, bytes) each: so many cache lines at random places of so many bytes
    """

    seconds: float
    bytes: float
    far: tuple[tuple[float, float], ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        """Of both, one after the other, with what each holds kept."""
        return Cost(self.seconds + other.seconds, self.bytes + other.bytes, self.far + other.far)


NOTHING = Cost(0.0, 0.0)

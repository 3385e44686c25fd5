"""The time and memory that a fit takes on a training set of a given size; plans and progress need them."""

import math
from dataclasses import dataclass

UNEVENNESS = 2.5
"""Σ c_u² divided by its value if all users had equally many ratings: 1.9 in ML-100K, 2.4 in ML-1M, 3.1 in a sample of
Netflix."""


@dataclass(frozen=True)
class Shape:
    """The size of a training set.

    squares   Σ c_u² over its users, where c_u is a user's number of ratings; estimated if not given
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
    """The cost of one fit: bytes besides the ratings themselves, and the components of its time.

    `machine.Machine.seconds` adds up the components. The sum differs between machines, and for data that no longer
    fit a cache.

    seconds   of one core of `machine.REFERENCE`, with all data in the cache
    far       (count, bytes) each: the number of cache lines fetched from random places within so many bytes
    """

    seconds: float
    bytes: float
    far: tuple[tuple[float, float], ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        """Returns the cost of both, one after the other, with the memory of both held."""
        return Cost(self.seconds + other.seconds, self.bytes + other.bytes, self.far + other.far)


NOTHING = Cost(0.0, 0.0)

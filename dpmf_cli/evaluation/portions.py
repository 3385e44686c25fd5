"""Portions: the first of the ratings, in the order in which they came or in a random one.

McSherry and Mironov (2009, figure 2) measure what privacy costs while ratings accumulate.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings

Order = Literal["timestamp", "random"]
"""By which ratings come: the oldest first, or in a random order."""

_DAY = 86_400.0


@dataclass(frozen=True)
class Portion:
    """What the first part of the ratings holds.

    share   of all ratings, in (0, 1]
    days    from the first rating of all to the last of the portion; None where the order is not that of time
    """

    share: float
    ratings: int
    users: int
    days: float | None


def ranked(ratings: Ratings, order: Order, *, rng: np.random.Generator) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings as they come; those of the same time in their position's order.

    `rng` makes the random order. Raises `DpmfError` where there is no time to order by.
    """
    if order == "random":
        return rng.permutation(len(ratings))
    return np.argsort(times_of(ratings, "first", "`order: random` in `growth`"), kind="stable")


def times_of(ratings: Ratings, which: str, instead: str) -> NDArray[np.generic]:
    """(n_ratings,) when each was made. Raises `DpmfError` where nothing can be ordered by it, so that no ratings
    came `which` ("first"); the fix is to use something `instead`."""
    times = ratings.columns.get("timestamp")
    if times is None or times.min() == times.max():
        missing = "no time stamps" if times is None else "the same time stamp on every rating"
        raise DpmfError(f"these ratings have {missing}, so no {which} ones; use {instead}")
    return times


def first_share(positions: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    """The first share, in (0, 1], of ranked positions; a larger share begins with a smaller one."""
    return positions[: round(share * len(positions))]


def portion(ratings: Ratings, share: float, order: Order, positions: NDArray[np.intp]) -> Portion:
    """What the ratings at the positions of a share, one at least, hold."""
    days = None
    if order == "timestamp":
        times = ratings.columns["timestamp"]
        days = (float(times[positions].max()) - float(times.min())) / _DAY
    return Portion(share, len(positions), len(np.unique(ratings.users[positions])), days)

"""Cuts of ratings: into folds, into training and test ratings, and to a first part in the order of time or at random.

McSherry and Mironov (2009, figure 2) measure how the cost of privacy changes as ratings accumulate.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Flags, Longs
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings


def assign_folds(n_ratings: int, folds: int, rng: np.random.Generator) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating: a random partition into folds whose sizes differ by at most one rating.

    Friedman et al. 2016, footnote 3 (MATLAB's `crossvalind`): ratings are drawn one by one, not user by user.
    """
    assignment = np.resize(np.arange(folds, dtype=np.int16), n_ratings)
    rng.shuffle(assignment)
    return assignment


LATEST = 9
"""Number of a user's ratings that count as the most recent.

McSherry and Mironov 2009, section 5: "the 9 most recent ratings for each user chosen with probability 1/3 each".
"""


def last_of_each(
    ratings: Ratings, counts: int | Longs, times: NDArray[np.generic] | float, chances: Doubles
) -> Flags:
    """(n_ratings,) whether a rating is among the last of its user: `counts` of them, or (n_users,) of each.

    `chances` (n_ratings,) decide between equal `times` (n_ratings,), and between all ratings if that is one number.
    """
    ranks = np.lexsort((chances, np.broadcast_to(times, len(ratings)), ratings.users)).argsort()
    later = ratings.user_starts[1:][ratings.users] - ranks
    return np.asarray(later <= np.broadcast_to(counts, ratings.n_users)[ratings.users])


Order = Literal["timestamp", "random"]
"""The order of the ratings: the oldest first, or random."""


@dataclass(frozen=True)
class Portion:
    """The first part of the ratings: its share and its numbers of ratings and users.

    share   fraction of all ratings, in (0, 1]
    days    days from the first of all ratings to the last of the portion; None where the order is random
    """

    share: float
    ratings: int
    users: int
    days: float | None


def times_of(ratings: Ratings, which: str, instead: str) -> NDArray[np.generic]:
    """(n_ratings,) the time stamp of each rating.

    Raises `DpmfError` where time stamps are missing or all the same. The message says that there are no `which`
    ("first") ratings, and to use `instead`.
    """
    times = ratings.columns.get("timestamp")
    if times is None or times.min() == times.max():
        missing = "no time stamps" if times is None else "the same time stamp on every rating"
        raise DpmfError(f"these ratings have {missing}, so no {which} ones; use {instead}")
    return times


def portion(ratings: Ratings, share: float, order: Order, positions: NDArray[np.intp]) -> Portion:
    """The portion with this share, whose ratings (at least one) are at `positions`."""
    days = None
    if order == "timestamp":
        times = ratings.columns["timestamp"]
        days = (float(times[positions].max()) - float(times.min())) / 86_400.0
    return Portion(share, len(positions), len(np.unique(ratings.users[positions])), days)

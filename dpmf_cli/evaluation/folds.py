"""Cuts ratings: into folds, into training and test ratings, and to a first part in the order of time or at random.

McSherry and Mironov (2009, figure 2) measure how the cost of privacy changes as ratings accumulate.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings, in_ratings, last_of_each, times_of


def assign_folds(n_ratings: int, folds: int, rng: np.random.Generator) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating: a random partition into folds whose sizes differ by at most one rating.

    Friedman et al. 2016, footnote 3 (MATLAB's `crossvalind`): ratings are drawn one by one, not user by user.
    """
    assignment = np.resize(np.arange(folds, dtype=np.int16), n_ratings)
    rng.shuffle(assignment)
    return assignment


LATEST = 9
"""Number of a user's ratings that count as the most recent."""


def assign_latest(
    ratings: Ratings, times: NDArray[np.generic], folds: int, rng: np.random.Generator
) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating, where only each user's `LATEST` most recent ratings are ever held out.

    A most recent rating is in each fold with probability 1/folds. All earlier ratings get the number `folds`, which
    is never held out. Ratings of the same time come in a random order. `times` (n_ratings,) says when each was made.

    McSherry and Mironov 2009, section 5: "the 9 most recent ratings for each user chosen with probability 1/3 each".
    """
    latest = last_of_each(ratings, LATEST, rng, times)
    assignment = np.full(len(ratings), folds, dtype=np.int16)
    assignment[latest] = rng.integers(folds, size=len(ratings))[latest]
    return assignment


def split(ratings: Ratings, assignment: NDArray[np.int16], fold: int) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) with `fold` held out; a rating of fold −1 is in neither."""
    return ratings.select((assignment != fold) & (assignment >= 0)), ratings.select(assignment == fold)


def without_pairs(ratings: Ratings, others: Ratings) -> Ratings:
    """The ratings whose (user, item) pair is not in `others`; both use the same indices."""
    return ratings.select(~in_ratings(ratings, others))


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


def ranked(ratings: Ratings, order: Order, *, rng: np.random.Generator) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings in that order; ratings of the same time are ordered by position.

    `rng` draws the random order. Raises `DpmfError` where there is no time to order by.
    """
    if order == "random":
        return rng.permutation(len(ratings))
    return np.argsort(times_of(ratings, "first", "`order: random` in `growth`"), kind="stable")


def first_share(positions: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    """The first share, in (0, 1], of ranked positions; a larger share begins with a smaller one."""
    return positions[: round(share * len(positions))]


def portion(ratings: Ratings, share: float, order: Order, positions: NDArray[np.intp]) -> Portion:
    """Describes the portion with this share, whose ratings (at least one) are at `positions`."""
    days = None
    if order == "timestamp":
        times = ratings.columns["timestamp"]
        days = (float(times[positions].max()) - float(times.min())) / 86_400.0
    return Portion(share, len(positions), len(np.unique(ratings.users[positions])), days)

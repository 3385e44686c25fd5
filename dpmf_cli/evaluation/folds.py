"""Assigns ratings to folds, and splits them into training and test ratings."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Ratings, in_ratings


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
    order = np.lexsort((rng.random(len(ratings)), times, ratings.users))
    ends = np.repeat(ratings.user_starts[1:], ratings.user_counts)
    latest = order[ends - np.arange(len(ratings)) <= LATEST]
    assignment = np.full(len(ratings), folds, dtype=np.int16)
    assignment[latest] = rng.integers(folds, size=len(ratings))[latest]
    return assignment


def split(ratings: Ratings, assignment: NDArray[np.int16], fold: int) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) with `fold` held out; a rating of fold −1 is in neither."""
    return ratings.select((assignment != fold) & (assignment >= 0)), ratings.select(assignment == fold)


def without_pairs(ratings: Ratings, others: Ratings) -> Ratings:
    """The ratings whose (user, item) pair is not in `others`; both use the same indices."""
    return ratings.select(~in_ratings(ratings, others))

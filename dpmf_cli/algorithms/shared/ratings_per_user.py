"""Selects users with a least number of ratings, and limits the number of ratings of each user."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.kernels.sums import shuffle_within
from dpmf_cli.ratings import Ratings


def at_least(ratings: Ratings, limit: int) -> Ratings:
    """The ratings of the users who have `limit` or more."""
    return ratings.select(ratings.user_counts[ratings.users] >= limit) if limit else ratings


def at_most(ratings: Ratings, limit: int, draws: NDArray[np.float64]) -> Ratings:
    """`limit` ratings of each user who has more, chosen by uniform `draws` (n_ratings,), and all ratings of the other
    users."""
    order = shuffle_within(ratings.user_starts, draws)
    within = np.arange(len(ratings)) - ratings.user_starts[ratings.users]
    kept = np.zeros(len(ratings), np.bool_)
    kept[order[within < limit]] = True
    return ratings.select(kept)

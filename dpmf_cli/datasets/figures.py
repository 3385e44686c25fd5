"""Counts the figures that describe a data set in papers and in the catalog."""

from dataclasses import dataclass

import numpy as np

from dpmf_cli.ratings import Ratings

TOLERANCE = 1e-4
"""Largest accepted difference of a mean or variance: the catalog has them to four or five decimals."""

_CHUNK = 1 << 22


@dataclass(frozen=True)
class Figures:
    """The figures that describe a data set, as in table 2 of Friedman et al. (2016).

    density    ratings per (user, item) pair
    variance   mean squared deviation of the ratings from their mean (divided by the number of ratings)
    per_user, per_item   average number of ratings
    """

    users: int
    items: int
    ratings: int
    density: float
    mean: float
    variance: float
    per_user: float
    per_item: float


def figures(ratings: Ratings) -> Figures:
    """Counts the figures of ratings, with sums in float64."""
    n, squares = len(ratings), 0.0
    mean = float(np.mean(ratings.values, dtype=np.float64))
    for start in range(0, n, _CHUNK):  # NumPy's variance would convert a copy of all values
        block = ratings.values[start : start + _CHUNK].astype(np.float64)
        squares += float(np.square(block - mean).sum())
    return Figures(
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=n,
        density=n / (ratings.n_users * ratings.n_items),
        mean=mean,
        variance=squares / n,
        per_user=n / ratings.n_users,
        per_item=n / ratings.n_items,
    )

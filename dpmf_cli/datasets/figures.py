"""The figures of a data set, by which papers and the catalog know it."""

from dataclasses import dataclass

import numpy as np

from dpmf_cli.ratings import Ratings

TOLERANCE = 1e-4
"""Of means and variances: the catalog's are printed to four or five decimals."""

_CHUNK = 1 << 22


@dataclass(frozen=True)
class Figures:
    """What describes a data set, as table 2 of Friedman et al. (2016) has it.

    density    ratings per (user, item) pair
    variance   of the ratings about their mean, divided by their number
    per_user, per_item   ratings, on average
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
    """The figures of ratings as counted; sums in float64."""
    n, squares = len(ratings), 0.0
    mean = float(np.mean(ratings.values, dtype=np.float64))
    for start in range(0, n, _CHUNK):  # NumPy converts a copy of all that it takes the variance of
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

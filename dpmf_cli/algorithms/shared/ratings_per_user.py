"""At most so many ratings of each user."""

import numpy as np

from dpmf_cli.kernels.order import shuffle_within
from dpmf_cli.ratings import Ratings


def at_most(ratings: Ratings, limit: int, rng: np.random.Generator) -> Ratings:
    """`limit` ratings of each user who has more, drawn uniformly, and all of the others'."""
    order = shuffle_within(ratings.user_starts, rng.random(len(ratings)))
    within = np.arange(len(ratings)) - ratings.user_starts[ratings.users]
    kept = np.zeros(len(ratings), np.bool_)
    kept[order[within < limit]] = True
    return ratings.select(kept)

"""Folds: which ratings are held out together."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Ratings


def assign_folds(n_ratings: int, folds: int, rng: np.random.Generator) -> NDArray[np.int16]:
    """(n_ratings,) the fold of each rating: a random partition whose parts differ by one rating at most.

    Friedman et al. 2016, footnote 3 (MATLAB's `crossvalind`): ratings are drawn one by one, not by user.
    """
    assignment = (np.arange(n_ratings) % folds).astype(np.int16)
    rng.shuffle(assignment)
    return assignment


def split(ratings: Ratings, assignment: NDArray[np.int16], fold: int) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings) where `fold` is held out."""
    held_out = assignment == fold
    return ratings.select(~held_out), ratings.select(held_out)

"""Chooses parameters of baselines on the training ratings, never on the ratings that are predicted.

Methods are measured against baselines. A baseline with parameters of another data set is beaten too easily. So on a
user's own data set the baselines choose their parameters. Nothing here is private: a baseline spends no ε and is not
released.
"""

from collections.abc import Iterator

import numpy as np

from dpmf_cli.ratings import Ratings
from dpmf_cli.strict_model import later

INNER_FOLDS = 5
"""The number of parts into which the training ratings are cut."""


def tuned_field() -> bool:
    """The key `tuned` of a baseline. If it is false, results keep the names that they had before it existed."""
    field: bool = later(
        False,
        description="choose the parameters on the training ratings; true by default on your own data set, if the "
        "config sets no parameter of the baseline",
    )
    return field


def inner_folds(train: Ratings) -> Iterator[tuple[Ratings, Ratings]]:
    """Yields (fitted, held out) for each fifth of the training ratings.

    Ratings go to the fifths in turn, in user-major order. Each user starts one fifth further. So the ratings of each
    user are spread over all fifths; so are those of each item if all users rate the same items. The cut needs no
    randomness. A fifth is skipped if nothing would be left to fit or to predict.
    """
    part = (np.arange(len(train)) + train.users) % INNER_FOLDS
    for fold in range(INNER_FOLDS):
        held_out = part == fold
        if held_out.any() and not held_out.all():
            yield train.select(~held_out), train.select(held_out)

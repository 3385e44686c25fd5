"""Parameters of baselines that are chosen on the training ratings, never on those that are predicted.

A baseline is there to be beaten. One with another site's parameters is beaten too easily. So on a user's own ratings
the baselines choose theirs. Nothing is private here: a baseline spends no ε and is no release.
"""

from collections.abc import Iterator

import numpy as np

from dpmf_cli.ratings import Ratings
from dpmf_cli.strict_model import later

INNER_FOLDS = 5
"""Into how many parts the training ratings are cut."""


def tuned_field() -> bool:
    """The key `tuned` of a baseline. Results are named without it where it is false, as before it existed."""
    field: bool = later(
        False,
        description="choose the parameters on the training ratings; true by default for a baseline of an own data "
        "set of which the config sets no parameter",
    )
    return field


def inner_folds(train: Ratings) -> Iterator[tuple[Ratings, Ratings]]:
    """(fitted, held out) for each fifth of the training ratings.

    Ratings go to the fifths in turn, in user-major order, one further with each user. So the ratings of each user are
    spread over all of them, those of each item too where all users rate alike, and the cut needs no randomness. A cut
    with nothing to fit or to predict is left out.
    """
    part = (np.arange(len(train)) + train.users) % INNER_FOLDS
    for fold in range(INNER_FOLDS):
        held_out = part == fold
        if held_out.any() and not held_out.all():
            yield train.select(~held_out), train.select(held_out)

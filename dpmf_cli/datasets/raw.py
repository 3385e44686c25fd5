"""Ratings as a parser finds them: in the file's order, under the file's own ids."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Raw:
    """Parsed, not yet judged.

    users, items   (n_ratings,) integer ids; where labels are given, positions in them
    values         (n_ratings,) float, rating scale
    where          row -> its place in the publisher's file ("ratings.dat:17"), found only when asked for
    fix            what a user should do about a bad row
    fix_repeated   the same about a (user, item) pair that stands twice, where that is something else
    fix_scale      the same about a rating off the scale or off its grid, made only when asked for
    columns        (n_ratings,) each: `timestamp`, `epsilon`
    user_labels, item_labels   ids that are text, without repetition
    """

    users: NDArray[np.integer]
    items: NDArray[np.integer]
    values: NDArray[np.floating]
    where: Callable[[int], str]
    fix: str
    columns: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    fix_repeated: str | None = None
    fix_scale: Callable[[], str] | None = None
    user_labels: list[str] | None = None
    item_labels: list[str] | None = None

"""Ratings as a parser finds them: in the file's order, with the file's own ids."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Raw:
    """Ratings that are parsed, but not yet checked.

    users, items   (n_ratings,) integer ids, or positions in the labels if labels are given
    values         (n_ratings,) float, rating scale
    where          row -> its place in the publisher's file ("ratings.dat:17"), found only on request
    fix            what a user should do about a bad row
    fix_repeated   what to do about a (user, item) pair that stands twice, if not `fix`
    fix_scale      what to do about a rating off the scale or off its grid, if not `fix`; made only on request
    columns        (n_ratings,) each: `timestamp`, `epsilon`
    user_labels, item_labels   the distinct ids, if they are text
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

"""Describes a set of ratings in a line or two, and warns if experiments on it would say little."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Ratings, Scale

_CHUNK = 1 << 22
_FEW_RATINGS = 1000
"""With fewer ratings, chance moves an RMSE by more than about 2 %, so that hardly two methods can be told apart."""
_LEAST_PART_OF_SCALE = 0.5


@dataclass(frozen=True)
class Sanity:
    """Counts and errors of averages for a set of ratings.

    per_user, per_item   ratings of the median user and item, among those that have any
    lowest, highest      the smallest and the largest rating that occurs
    ga, ia    RMSE of the global average and of the item average. Each rating is predicted from all others (leave one
              out), an item's only rating by the global average. NaN with fewer than two ratings
    merged    number of rows that repeat a (user, item) pair; `duplicates` says what became of them
    """

    users: int
    items: int
    ratings: int
    per_user: float
    per_item: float
    lowest: float
    highest: float
    scale: Scale
    ga: float
    ia: float
    merged: int = 0
    duplicates: str = "error"

    @property
    def density(self) -> float:
        """Ratings per (user, item) pair."""
        return self.ratings / (self.users * self.items)

    def lines(self) -> list[str]:
        """Says what was counted, and how well averages predict the ratings."""
        step = f" in steps of {self.scale.step:g}" if self.scale.step else ""
        found = [
            f"{self.ratings:,} ratings by {self.users:,} users of {self.items:,} items, {self.density:.2%} of all "
            f"pairs; median {self.per_user:g} a user, {self.per_item:g} an item; {self.lowest:g} to {self.highest:g} "
            f"on the scale from {self.scale.minimum:g} to {self.scale.maximum:g}{step}"
        ]
        if self.merged:
            kept = "averages its ratings" if self.duplicates == "mean" else "keeps its last rating"
            rows = "1 row repeats" if self.merged == 1 else f"{self.merged:,} rows repeat"
            found.append(f"{rows} a (user, item) pair; each pair {kept} (`duplicates: {self.duplicates}`)")
        if not math.isnan(self.ga):
            found.append(
                f"RMSE where each rating is predicted from all others: GA {self.ga:.3f}, IA {self.ia:.3f}"
            )
        return found

    def report(self) -> list[str]:
        """Returns the lines, then the warnings, each marked as a warning."""
        return [*self.lines(), *(f"warning: {each}" for each in self.warnings())]

    def warnings(self) -> list[str]:
        """Says what would make results wrong or empty, each with the fix."""
        if self.lowest == self.highest:
            return [
                f"all ratings are {self.lowest:g}: such feedback has no degrees, and a constant predicts it without "
                "error; give ratings that differ, since no experiment on these says anything"
            ]
        found = []
        if self.ratings < _FEW_RATINGS:
            found.append(
                f"{self.ratings:,} ratings are too few to tell methods apart; give {_FEW_RATINGS:,} or more, or read "
                "the intervals and not the averages"
            )
        elif self.highest - self.lowest < _LEAST_PART_OF_SCALE * self.scale.width:
            found.append(
                f"the scale from {self.scale.minimum:g} to {self.scale.maximum:g} is much wider than the ratings, "
                f"{self.lowest:g} to {self.highest:g}, and noise grows with the scale; if the site allows no others, "
                f"set `scale: {{minimum: {self.lowest:g}, maximum: {self.highest:g}, step: {self.scale.step:g}}}`"
            )
        if self.ia >= self.ga:
            found.append(
                f"item averages predict no better than the global average (median {self.per_item:g} ratings an "
                "item): crossings with IA say nothing; add `ga` to `crossings`, or keep only items with more ratings"
            )
        return found


def look_at(ratings: Ratings, *, merged: int = 0, duplicates: str = "error") -> Sanity:
    """Counts ratings (at least one) in one pass; for 10⁶ ratings that takes some hundredths of a second.

    merged, duplicates   from the data set: canonical ratings have no rows that repeat a pair any more
    """
    n = len(ratings)
    average = float(ratings.values.mean(dtype=np.float64))
    sums, squares = np.zeros(ratings.n_items), np.zeros(ratings.n_items)
    for start in range(0, n, _CHUNK):
        items = ratings.items[start : start + _CHUNK]
        off = ratings.values[start : start + _CHUNK].astype(np.float64) - average
        sums += np.bincount(items, off, ratings.n_items)
        squares += np.bincount(items, np.square(off), ratings.n_items)
    counts = ratings.item_counts
    several = counts > 1
    # r − mean of the others = (r − mean of all)·c/(c − 1), for c ratings.
    left = (
        np.maximum(squares - sums**2 / np.maximum(counts, 1), 0) * (counts / np.maximum(counts - 1, 1)) ** 2
    )
    again = n / (n - 1) if n > 1 else math.nan
    alone = squares[~several].sum() * again**2
    return Sanity(
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=n,
        per_user=_median(ratings.user_counts),
        per_item=_median(counts),
        lowest=float(ratings.values.min()),
        highest=float(ratings.values.max()),
        scale=ratings.scale,
        ga=math.sqrt(squares.sum() / n) * again,
        ia=math.sqrt((left[several].sum() + alone) / n),
        merged=merged,
        duplicates=duplicates,
    )


def _median(counts: NDArray[np.int64]) -> float:
    return float(np.median(counts[counts > 0]))

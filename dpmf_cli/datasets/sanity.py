"""What a set of ratings is, in a line or two, and what is wrong with it for experiments on averages and ratings."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.ratings import Ratings, Scale

_CHUNK = 1 << 22
_FEW_RATINGS = 1000
"""Of fewer, chance moves an RMSE by more than some 2 %: hardly two methods can be told apart."""
_LEAST_PART_OF_SCALE = 0.5


@dataclass(frozen=True)
class Sanity:
    """What a set of ratings counts.

    per_user, per_item   ratings of the median user and item, of those that have any
    lowest, highest      ratings that occur
    ga, ia    RMSE of the average of all ratings and of the item's: each rating is predicted from all others (leave
              one out), an item's only rating by the average of all. NaN with fewer than two ratings
    merged    rows that repeat a (user, item) pair; `duplicates` says what became of them
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
        """What was counted, and how well averages predict it."""
        step = f" in steps of {self.scale.step:g}" if self.scale.step else ""
        found = [
            f"{self.ratings:,} ratings by {self.users:,} users of {self.items:,} items, {self.density:.2%} of all "
            f"pairs; median {self.per_user:g} a user, {self.per_item:g} an item; {self.lowest:g} to {self.highest:g} "
            f"on the scale from {self.scale.minimum:g} to {self.scale.maximum:g}{step}"
        ]
        if self.merged:
            kept = "its ratings are averaged" if self.duplicates == "mean" else "its last one is kept"
            rows = "1 row repeats" if self.merged == 1 else f"{self.merged:,} rows repeat"
            found.append(f"{rows} a (user, item) pair; of each pair {kept} (`duplicates: {self.duplicates}`)")
        if not math.isnan(self.ga):
            found.append(
                f"RMSE where each rating is predicted from all others: GA {self.ga:.3f}, IA {self.ia:.3f}"
            )
        return found

    def report(self) -> list[str]:
        """The lines, then the warnings as such."""
        return [*self.lines(), *(f"warning: {each}" for each in self.warnings())]

    def warnings(self) -> list[str]:
        """What makes results wrong or empty, each with the fix."""
        if self.lowest == self.highest:
            return [
                f"all ratings are {self.lowest:g}: feedback without degrees, which a constant predicts without "
                "error; give ratings that differ, for no experiment on these says anything"
            ]
        found = []
        if self.ratings < _FEW_RATINGS:
            found.append(
                f"{self.ratings:,} ratings are too few to tell methods apart; give {_FEW_RATINGS:,} or more, or read "
                "the intervals and not the averages"
            )
        elif self.highest - self.lowest < _LEAST_PART_OF_SCALE * self.scale.width:
            found.append(
                f"the scale from {self.scale.minimum:g} to {self.scale.maximum:g} is much wider than what occurs, "
                f"{self.lowest:g} to {self.highest:g}, and noise grows with it; if the site allows no more, set "
                f"`scale: {{minimum: {self.lowest:g}, maximum: {self.highest:g}, step: {self.scale.step:g}}}`"
            )
        if self.ia >= self.ga:
            found.append(
                f"item averages predict no better than one average of all (median {self.per_item:g} ratings an "
                "item): crossings with IA say nothing; add `ga` to `crossings`, or keep only items with more ratings"
            )
        return found


def look_at(ratings: Ratings, *, merged: int = 0, duplicates: str = "error") -> Sanity:
    """Counts ratings (one at least) in one pass; of 10⁶ that takes some hundredths of a second.

    merged, duplicates   as the data set says of rows that repeat a pair, which canonical ratings do not have any more
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
    # r − mean of the others = (r − mean of all)·c/(c − 1), of c ratings.
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

"""Counts the figures that describe ratings in papers and in the catalog, and warns if they say little."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings, Scale

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


_FEW_RATINGS = 1000
"""With fewer ratings, chance moves an RMSE by more than about 2 %, so that hardly two methods can be told apart."""
_LEAST_PART_OF_SCALE = 0.5
_LEAST_GAIN = 0.01
"""If item averages predict surely no better than the global average by this share, they are no measure."""
_MANY_REPEATED, _MANY_ZEROS = 0.1, 0.3
"""Shares of the rows. Repeats are rare where users and items are what the config says, and zeros where they are
ratings: in the Book-Crossing data 62 % are 0, which means no rating."""
BETAS = np.array([0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500])
"""(B,) the β_m that the tuned IA chooses from, too. It cannot be imported: algorithms stand on data sets."""


@dataclass(frozen=True)
class Sanity:
    """Counts and errors of averages for a set of ratings.

    per_user, per_item   ratings of the median user and item, among those that have any
    lowest, highest      the smallest and the largest rating that occurs
    ga, ia    RMSE of the global average and of the item average, with the β_m of `BETAS` that predicts best. Each
              rating is predicted from all others (leave one out). NaN with fewer than two ratings
    gain      largest share by which `ia` may lie below `ga`: the measured one, and two standard errors over items
    zeros     number of ratings that are 0
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
    gain: float
    zeros: int = 0
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
            rows = f"{self.merged:,} of {self.merged + self.ratings:,} rows repeat{'s' * (self.merged == 1)}"
            found.append(
                f"{rows} a (user, item) pair; each pair {kept} (`duplicates: {self.duplicates}`), and "
                f"{self.ratings:,} ratings remain"
            )
        if not math.isnan(self.ga):
            found.append(
                f"RMSE where each rating is predicted from all others: GA {self.ga:.3f}, tuned IA {self.ia:.3f}"
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
        if self.gain < _LEAST_GAIN:
            found.append(
                f"item averages predict at most {100 * _LEAST_GAIN:g} % better than the global average (median "
                f"{self.per_item:g} ratings an item): crossings with IA say little; add `ga` to `crossings`, or keep "
                "only items with more ratings"
            )
        if self.merged > _MANY_REPEATED * (rows := self.merged + self.ratings):
            found.append(
                f"{self.merged / rows:.0%} of the rows repeat a (user, item) pair; check that `columns` names the "
                "users and the items; `duplicates: last` keeps the last row of each pair, `mean` averages them"
            )
        if self.lowest == 0 and self.highest > self.scale.step and self.zeros > _MANY_ZEROS * self.ratings:
            found.append(
                f"{self.zeros / self.ratings:.0%} of the ratings are 0; if 0 means that there is no rating, remove "
                "these rows, and begin the scale above 0"
            )
        return found


def look_at(ratings: Ratings, *, merged: int = 0, duplicates: str = "error") -> Sanity:
    """Counts ratings (at least one) in one pass; for 10⁶ ratings that takes some hundredths of a second.

    merged, duplicates   from the data set: canonical ratings have no rows that repeat a pair any more
    """
    n = len(ratings)
    average = float(ratings.values.mean(dtype=np.float64))
    sums, squares, zeros = np.zeros(ratings.n_items), np.zeros(ratings.n_items), 0
    for start in range(0, n, _CHUNK):
        items, values = (each[start : start + _CHUNK] for each in (ratings.items, ratings.values))
        zeros += int(np.count_nonzero(values == 0))
        off = values.astype(np.float64) - average
        sums += np.bincount(items, off, ratings.n_items)
        squares += np.bincount(items, np.square(off), ratings.n_items)
    rated = ratings.item_counts > 0
    c, s, d2 = (each[rated, None].astype(np.float64) for each in (ratings.item_counts, sums, squares))
    again = n / (n - 1) if n > 1 else math.nan
    # Of c ratings of an item, whose differences d from the mean of all have the sum s, the damped average of all but
    # one misses that one by ((β·n/(n − 1) + c)·d − s)/(β + c − 1).
    weights = BETAS * again + c
    left = np.maximum(weights**2 * d2 - (2 * weights - c) * s**2, 0) / (BETAS + c - 1) ** 2
    best = left[:, np.argmin(left.sum(axis=0))]
    gains = d2[:, 0] * again**2 - best
    all_squares = float(d2.sum()) * again**2
    most = gains.sum() + 2 * math.sqrt(len(gains)) * gains.std()
    return Sanity(
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=n,
        per_user=_median(ratings.user_counts),
        per_item=_median(ratings.item_counts),
        lowest=float(ratings.values.min()),
        highest=float(ratings.values.max()),
        scale=ratings.scale,
        ga=math.sqrt(all_squares / n),
        ia=math.sqrt(best.sum() / n),
        gain=1 - math.sqrt(max(1 - most / all_squares, 0)) if all_squares else math.nan,
        zeros=zeros,
        merged=merged,
        duplicates=duplicates,
    )


def _median(counts: NDArray[np.int64]) -> float:
    return float(np.median(counts[counts > 0]))

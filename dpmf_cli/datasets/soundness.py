"""Whether data are fit for use: figures and warnings of ratings, and checks of files by digests and counts."""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.datasets import cache as kept, canonical, catalog, loading, located
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, Split, SyntheticSpec

TOLERANCE = 1e-4
"""Largest accepted difference of a mean or variance: the catalog has them to four or five decimals."""

_CHUNK = 1 << 22


def figures(ratings: Ratings) -> dict[str, float]:
    """The figures that describe ratings, as in table 2 of Friedman et al. (2016), with sums in float64.

    density              ratings per (user, item) pair
    variance             mean squared deviation of the ratings from their mean (divided by the number of ratings)
    per_user, per_item   average number of ratings
    """
    n, squares = len(ratings), 0.0
    mean = float(np.mean(ratings.values, dtype=np.float64))
    for start in range(0, n, _CHUNK):  # NumPy's variance would convert a copy of all values
        block = ratings.values[start : start + _CHUNK].astype(np.float64)
        squares += float(np.square(block - mean).sum())
    return {
        "users": ratings.n_users,
        "items": ratings.n_items,
        "ratings": n,
        "density": n / (ratings.n_users * ratings.n_items),
        "mean": mean,
        "variance": squares / n,
        "per_user": n / ratings.n_users,
        "per_item": n / ratings.n_items,
    }


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
    """What is said of a set of ratings, and errors of averages.

    lines      what was counted, and how well averages predict the ratings
    warnings   what would make results wrong or empty, each with the fix
    ga, ia     RMSE of the global average and of the item average, with the β_m of `BETAS` that predicts best. Each
               rating is predicted from all others (leave one out). NaN with fewer than two ratings
    gain       largest share by which `ia` may lie below `ga`: the measured one, and two standard errors over items
    """

    lines: list[str]
    warnings: list[str]
    ga: float
    ia: float
    gain: float

    def report(self) -> list[str]:
        """The lines, then the warnings, each marked as a warning."""
        return [*self.lines, *(f"warning: {each}" for each in self.warnings)]


def look(spec: AnySpec, dataset: canonical.Dataset) -> Sanity:
    """The ratings of a spec described in lines, and in warnings that name the fix."""
    found = look_at(dataset.ratings, merged=dataset.merged, duplicates=getattr(spec, "duplicates", "error"))
    first, *rest = found.lines
    return replace(found, lines=[first, *_filtered(spec, dataset), *rest])


def _filtered(spec: AnySpec, dataset: canonical.Dataset) -> Iterator[str]:
    """Yields what was done to the ratings of a user's own file, with counts."""
    gone = Counter(dataset.left_out)
    if missing := gone["drop_missing"]:
        yield f"`drop_missing` leaves out {missing:,} of the rows"
    if zeros := gone["zero_is_missing"]:
        yield f"`zero_is_missing` leaves out {zeros:,} of the rows"
    if getattr(spec, "minimum_ratings", None):
        yield (
            f"`minimum_ratings` leaves out {gone['minimum_ratings']:,} of the ratings, {gone['users']:,} of the "
            f"users and {gone['items']:,} of the items, a choice that no ε of `unbounded` or `user` covers"
        )
    if getattr(spec, "threshold", None) is not None:
        ones = np.count_nonzero(dataset.ratings.values)
        yield f"`threshold` turns {ones:,} of the ratings into 1, and the others into 0"


def look_at(ratings: Ratings, *, merged: int = 0, duplicates: str = "error") -> Sanity:
    """What one pass over ratings (at least one) shows; for 10⁶ ratings that takes some hundredths of a second.

    merged       number of rows that repeat a (user, item) pair: canonical ratings have none any more
    duplicates   what became of them
    """
    n, scale = len(ratings), ratings.scale
    zeros, ga, ia, gain = _of_averages(ratings)
    counts = (ratings.user_counts, ratings.item_counts)
    per_user, per_item = (float(np.median(each[each > 0])) for each in counts)
    lowest, highest, rows = float(ratings.values.min()), float(ratings.values.max()), merged + n
    on_scale = f"from {scale.minimum:g} to {scale.maximum:g}"
    step = f" in steps of {scale.step:g}" if scale.step else ""
    lines = [
        f"{n:,} ratings by {ratings.n_users:,} users of {ratings.n_items:,} items, "
        f"{n / (ratings.n_users * ratings.n_items):.2%} of all pairs; median {per_user:g} a user, {per_item:g} "
        f"an item; {lowest:g} to {highest:g} on the scale {on_scale}{step}"
    ]
    if merged:
        kept = "averages its ratings" if duplicates == "mean" else "keeps its last rating"
        lines.append(
            f"{merged:,} of {rows:,} rows repeat{'s' * (merged == 1)} a (user, item) pair; each pair {kept} "
            f"(`duplicates: {duplicates}`), and {n:,} ratings remain"
        )
    if not math.isnan(ga):
        lines.append(f"RMSE where each rating is predicted from all others: GA {ga:.3f}, tuned IA {ia:.3f}")
    if lowest == highest:
        constant = (
            f"all ratings are {lowest:g}: such feedback has no degrees, and a constant predicts it without error; "
            "give ratings that differ, since no experiment on these says anything"
        )
        return Sanity(lines, [constant], ga, ia, gain)
    warnings = []
    if n < _FEW_RATINGS:
        warnings.append(
            f"{n:,} ratings are too few to tell methods apart; give {_FEW_RATINGS:,} or more, or read the "
            "intervals and not the averages"
        )
    elif highest - lowest < _LEAST_PART_OF_SCALE * scale.width:
        warnings.append(
            f"the scale {on_scale} is much wider than the ratings, {lowest:g} to {highest:g}, and noise grows "
            f"with the scale; if the site allows no others, set `scale: {{minimum: {lowest:g}, maximum: "
            f"{highest:g}, step: {scale.step:g}}}`"
        )
    if gain < _LEAST_GAIN:
        warnings.append(
            f"item averages predict at most {100 * _LEAST_GAIN:g} % better than the global average (median "
            f"{per_item:g} ratings an item): crossings with IA say little; add `ga` to `crossings`, or keep only "
            "items with more ratings"
        )
    if merged > _MANY_REPEATED * rows:
        warnings.append(
            f"{merged / rows:.0%} of the rows repeat a (user, item) pair; check that `columns` names the users and "
            "the items; `duplicates: last` keeps the last row of each pair, `mean` averages them"
        )
    if lowest == 0 and highest > scale.step and zeros > _MANY_ZEROS * n:
        warnings.append(
            f"{zeros / n:.0%} of the ratings are 0; if 0 means that there is no rating, set `zero_is_missing: "
            "true` (`--zero-is-missing` of `dpmf init` and `dpmf advise`), and begin the scale above 0"
        )
    return Sanity(lines, warnings, ga, ia, gain)


def _of_averages(ratings: Ratings) -> tuple[int, float, float, float]:
    """The number of ratings that are 0, and `ga`, `ia` and `gain` of `Sanity`."""
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
    whole = float(d2.sum()) * again**2
    most = gains.sum() + 2 * math.sqrt(len(gains)) * gains.std()
    gain = 1 - math.sqrt(max(1 - most / whole, 0)) if whole else math.nan
    return zeros, math.sqrt(whole / n), math.sqrt(best.sum() / n), gain


@dataclass(frozen=True)
class Damage:
    """One thing that is damaged: where it is, what is wrong, and the fix."""

    path: str
    what: str
    fix: str


@dataclass
class Soundness:
    """How many things of a kind are sound, which are damaged, and notes on what could not be checked."""

    kind: str
    sound: int = 0
    off: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, path: Path | str, what: str | None, fix: str) -> None:
        """Counts one more thing. `what` says what is wrong with it; None if it is sound."""
        if what is None:
            self.sound += 1
        else:
            self.off.append(Damage(str(path), what, fix))


def add_cache(found: Soundness, cache: Path, only: Collection[str] | None = None) -> None:
    """Checks the parsed ratings in the cache and the ids beside them: all, or only those of ratings with these
    checksums. Damaged ids cannot say whose they are, so they are always named."""
    try:
        kept.refuse_shared(cache)
    except DpmfError as error:
        what, _, fix = str(error).removeprefix(f"{cache}: ").partition("; ")
        found.add(cache, what, fix)
    for place in chain.from_iterable(sorted((cache / part).glob("*")) for part in ("ratings", "sources")):
        if place.name.startswith(WRITING):
            continue
        if place.is_dir():
            if only is None:
                found.notes.append(
                    f"{place}: as an older version kept it; the next run that parses it makes it anew"
                )
        elif only is None or kept.checksum_of(place) in (None, *only):
            found.add(place, kept.broken(place), "the next run that needs it parses its source again")


def add_source(found: Soundness, spec: AnySpec, folders: located.Folders, digest: str, split: Split) -> None:
    """Checks the files of a data set by the publisher's checksums, and counts them in `found`.

    If there are none, it parses the files and compares with `digest` (hex), that of the ratings that results were
    computed from. Synthetic ratings have no files.
    """
    if isinstance(spec, SyntheticSpec):
        return
    if missing := located.what_is_missing(spec, folders):
        found.notes.append(f"{missing}; only its parsed ratings in the cache are checked")
        return
    place = folders.data if spec.path is None else folders.beside_config(spec.path)
    fix = "bring the old file back, or run the config with --new-data"
    wrong, by_digest = None, False
    try:
        if isinstance(spec, CatalogSpec):
            fix = located.how_to_get(catalog.entry(spec.name))
            wrong, by_digest = located.fault(located.locate_spec(spec, folders), None)
        if not (wrong or by_digest):
            now = canonical.checksum(loading.parsed(spec, folders, split).ratings)
            if now != digest:
                wrong = f"its ratings changed since (checksum {digest[:12]}…, now {now[:12]}…)"
        found.add(place, wrong, fix)
    except (DpmfError, OSError) as error:
        found.add(place, str(error), fix)

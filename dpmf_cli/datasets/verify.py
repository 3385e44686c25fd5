"""Counts a data set again and holds it against the catalog."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmf_cli.datasets import canonical, catalog, loading, located
from dpmf_cli.datasets.folders import Folders
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings

# The catalog's means and variances are printed to four or five decimals.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Figures:
    """What describes a data set, as table 2 of Friedman et al. (2016) has it.

    density    ratings per (user, item) pair
    variance   of the ratings about their mean, divided by their number
    per_user, per_item   ratings, on average
    """

    users: int
    items: int
    ratings: int
    density: float
    mean: float
    variance: float
    per_user: float
    per_item: float


@dataclass(frozen=True)
class Check:
    """One thing verified: what, whether it holds, what was expected and what was found."""

    what: str
    holds: bool
    expected: str
    found: str


def figures(ratings: Ratings) -> Figures:
    """The figures of ratings as counted; sums in float64."""
    n = len(ratings)
    return Figures(
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=n,
        density=n / (ratings.n_users * ratings.n_items),
        mean=float(np.mean(ratings.values, dtype=np.float64)),
        variance=float(np.var(ratings.values, dtype=np.float64)),
        per_user=n / ratings.n_users,
        per_item=n / ratings.n_items,
    )


def verify(key: str, data: Path, cache: Path) -> list[Check]:
    """Checks the files of a catalog entry, their counts, mean and variance, and what the cache keeps of them.

    Raises `DpmfError` where a file is missing or cannot be parsed.
    """
    entry = catalog.entry(key)
    found = located.locate(entry, data)
    wrong = located.fault(found, cache)
    by_digest = located.known_by_digest(found, cache)
    known = "a known checksum" if by_digest else "no checksum is published; counted instead"
    origins = dict.fromkeys(filter(None, (located.origin(path) for path in found.source.paths)))
    checks = [Check("files", wrong is None, known, wrong or "; from ".join(("as expected", *origins)))]
    if wrong:
        return checks
    kept = loading.cached(CatalogSpec(name=key), Folders(data, cache))
    counted = figures(kept.ratings)
    for name in ("users", "items", "ratings"):
        expected, got = getattr(entry.expected, name), getattr(counted, name)
        checks.append(Check(name, expected == got, f"{expected:,}", f"{got:,}"))
    for name in ("mean", "variance"):
        expected, got = getattr(entry.expected, name), getattr(counted, name)
        checks.append(Check(name, abs(expected - got) <= _TOLERANCE, f"{expected:.5f}", f"{got:.5f}"))
    again = canonical.checksum(kept.ratings)
    checks.append(Check("cache", again == kept.checksum, kept.checksum[:16], again[:16]))
    return checks


def failures(checks: list[Check]) -> DpmfError | None:
    """One error that names every check that failed."""
    failed = [f"{c.what}: expected {c.expected}, found {c.found}" for c in checks if not c.holds]
    return DpmfError("; ".join(failed)) if failed else None

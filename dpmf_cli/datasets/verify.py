"""Counts a data set again and compares it with the catalog."""

from dataclasses import dataclass
from pathlib import Path

from dpmf_cli.datasets import canonical, catalog, loading, located
from dpmf_cli.datasets.figures import TOLERANCE, figures
from dpmf_cli.datasets.folders import Folders
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError


@dataclass(frozen=True)
class Check:
    """One check: what was checked, whether it holds, what was expected and what was found."""

    what: str
    holds: bool
    expected: str
    found: str


def verify(key: str, data: Path, cache: Path) -> list[Check]:
    """Checks the files of a catalog entry, their counts, mean and variance, and their parsed ratings in the cache.

    Raises `DpmfError` if a file is missing or cannot be parsed.
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
        checks.append(Check(name, abs(expected - got) <= TOLERANCE, f"{expected:.5f}", f"{got:.5f}"))
    again = canonical.checksum(kept.ratings)
    checks.append(Check("cache", again == kept.checksum, kept.checksum[:16], again[:16]))
    return checks


def failures(checks: list[Check]) -> DpmfError | None:
    """Returns one error that names every check that failed; None if all hold."""
    failed = [f"{c.what}: expected {c.expected}, found {c.found}" for c in checks if not c.holds]
    return DpmfError("; ".join(failed)) if failed else None

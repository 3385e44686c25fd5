"""Checks data files and parsed ratings, by digests and by counts, and changes nothing."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets import canonical, catalog, loading, located
from dpmf_cli.datasets.located import Folders
from dpmf_cli.datasets.sanity import TOLERANCE, figures
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, SyntheticSpec


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
    kept = loading.cached(CatalogSpec(name=key), Folders(data, cache), verify=False)
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


def of_cache(cache: Path, only: Collection[str] | None = None) -> Soundness:
    """Checks the parsed ratings in the cache and the ids beside them: all, or only those of ratings with these
    checksums. Damaged ids cannot say whose they are, so they are always named."""
    found = Soundness("parsed ratings, ids")
    try:
        kept.refuse_shared(cache)
    except DpmfError as error:
        what, _, fix = str(error).removeprefix(f"{cache}: ").partition("; ")
        found.add(cache, what, fix)
    for place in chain.from_iterable(sorted((cache / part).glob("*")) for part in ("ratings", "sources")):
        if place.name.startswith(WRITING):
            continue
        of_source = place.parent.name == "sources"
        if of_source and place.is_dir():
            if only is None:
                found.notes.append(
                    f"{place}: ids as an older version kept them; the next run makes them anew"
                )
        elif only is None or (kept.checksum_of(place) if of_source else place.name) in (None, *only):
            found.add(place, kept.broken(place), "the next run that needs it parses its source again")
    return found


def add_source(found: Soundness, spec: AnySpec, folders: Folders, checksum: str) -> None:
    """Checks the files of a data set and counts them in `found`.

    Compares them with the publisher's checksums. If there are none, parses the files and compares with `checksum`
    (hex), that of the ratings that results were computed from. Synthetic ratings have no files.
    """
    if isinstance(spec, SyntheticSpec):
        return
    if missing := located.what_is_missing(spec, folders):
        found.notes.append(f"{missing}; only its parsed ratings in the cache are checked")
        return
    place = folders.data if spec.path is None else folders.beside_config(spec.path)
    fix = "bring the old file back, or run the config with --new-data"
    if isinstance(spec, CatalogSpec):
        fix = located.how_to_get(catalog.entry(spec.name))
    try:
        wrong, by_digest = None, False
        if isinstance(spec, CatalogSpec):
            files = located.locate_spec(spec, folders)
            wrong, by_digest = located.fault(files, None), located.known_by_digest(files, None)
        if not (wrong or by_digest):
            now = canonical.checksum(loading.parsed(spec, folders).ratings)
            if now != checksum:
                wrong = f"its ratings changed since (checksum {checksum[:12]}…, now {now[:12]}…)"
        found.add(place, wrong, fix)
    except (DpmfError, OSError) as error:
        found.add(place, str(error), fix)

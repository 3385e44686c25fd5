"""Turns a spec into canonical ratings: finds, verifies and parses them once, and later opens the cache."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets import catalog, checksums, located
from dpmf_cli.datasets.canonical import Canonical, canonicalise
from dpmf_cli.datasets.entry import CatalogEntry, Counts
from dpmf_cli.datasets.folders import Folders
from dpmf_cli.datasets.formats import PARSERS, own_file
from dpmf_cli.datasets.sampling import SAMPLE_VERSION, sampled
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec, SyntheticSpec
from dpmf_cli.errors import DpmfError

# Raise it when a change of a parser or of the canonical form changes the ratings that come out.
PARSER_VERSION = 1
_LONG = 2_000_000


def cached(spec: AnySpec, folders: Folders) -> kept.Cached:
    """Returns the ratings of a spec; parses them if the cache does not have them."""
    description, build = _source(spec, folders)
    key = kept.source_key(description)
    return kept.find(key, folders.cache) or kept.keep(key, build(), folders.cache)


def verified(spec: AnySpec, folders: Folders) -> kept.Cached:
    """Returns the ratings of a spec like `cached`, and makes them again if the kept ones are damaged."""
    return kept.verified(lambda: cached(spec, folders), folders.cache)


def already(spec: AnySpec, folders: Folders) -> kept.Cached | None:
    """Returns the ratings of a spec if the cache has them; None otherwise."""
    description, _ = _source(spec, folders)
    return kept.find(kept.source_key(description), folders.cache)


def title(spec: AnySpec) -> str:
    if isinstance(spec, CatalogSpec):
        whole = catalog.entry(spec.name).title
        if spec.sample is None:
            return whole
        of = f"{spec.sample.ratings:,} ratings of " if spec.sample.ratings else ""
        return f"{whole}, random sample of {of}{spec.sample.users:,} users (seed {spec.sample.seed})"
    if isinstance(spec, CsvSpec):
        return spec.name
    users, items, ratings = spec.shape
    changed = spec.users or spec.items or spec.ratings
    size = f" ({ratings:,} ratings of {items:,} items by {users:,} users)" if changed else ""
    return f"synthetic, shaped like {spec.entry.title}{size}"


def _source(spec: AnySpec, folders: Folders) -> tuple[dict[str, Any], Callable[[], Canonical]]:
    """Returns a description that identifies a source, and a function that reads it."""
    common = {"parser": PARSER_VERSION, "kind": spec.kind}
    if isinstance(spec, CatalogSpec):
        path = None if spec.path is None else folders.beside_config(spec.path)
        found = located.locate(catalog.entry(spec.name), folders.data, path)
        digest = located.content_digest(found, folders.cache)
        description = {**common, "key": spec.name, "content": digest}
        if spec.sample is None:
            return description, lambda: read_catalog(found, folders.cache)
        sample, whole = spec.sample, spec.model_copy(update={"sample": None})
        described = {**description, "sample": {**sample.model_dump(), "version": SAMPLE_VERSION}}
        return described, lambda: sampled(verified(whole, folders), spec, sample)
    if isinstance(spec, CsvSpec):
        path = _csv_path(spec, folders)
        digest = checksums.file_digest(path, folders.cache)
        options = spec.model_dump(exclude={"name", "path"})
        return {**common, **options, "content": digest}, lambda: _read_csv(path, spec)
    users, items, ratings = spec.shape
    made = {"like": spec.like, "seed": spec.seed, "shape": [users, items, ratings]}
    return {**common, **made}, lambda: _make(spec)


def parsed(spec: AnySpec, folders: Folders, *, empty: bool = False) -> Canonical:
    """Parses the ratings of a spec now, and does not keep them. Raises like `cached`.

    empty   whether a user's own file without ratings is accepted
    """
    if isinstance(spec, CatalogSpec):
        path = None if spec.path is None else folders.beside_config(spec.path)
        whole = read_catalog(located.locate(catalog.entry(spec.name), folders.data, path), None)
        return whole if spec.sample is None else sampled(whole, spec, spec.sample)
    return (
        _read_csv(_csv_path(spec, folders), spec, empty=empty) if isinstance(spec, CsvSpec) else _make(spec)
    )


def read_catalog(found: located.Located, cache: Path | None) -> Canonical:
    """Verifies and parses the files of a catalog entry.

    Raises DpmfError for a file that is not the publisher's, with the first line at fault if there is one.
    """
    entry = found.entry
    if cache is not None and entry.expected.ratings > _LONG and sys.stderr.isatty():
        print(
            f"reading {entry.title} for the first time; the ratings are then kept in {cache}", file=sys.stderr
        )
    wrong = located.fault(found, cache)
    try:
        raw = PARSERS[found.format](found.source)
        if not entry.timestamps:
            raw.columns.pop("timestamp", None)
        canonical = canonicalise(raw, entry.scale)
    except DpmfError as error:
        raise DpmfError(f"{error} ({wrong})" if wrong else str(error)) from error
    if wrong:
        raise DpmfError(
            f"{wrong}: it is damaged, or another version; {located.how_to_get(entry)} (a version of your own "
            "can be described as `kind: csv`)"
        )
    _check_counts(found, canonical, entry)
    return canonical


def _check_counts(found: located.Located, canonical: Canonical, entry: CatalogEntry) -> None:
    ratings = canonical.ratings
    counted = (len(ratings), ratings.n_users, ratings.n_items)
    expected = (entry.expected.ratings, entry.expected.users, entry.expected.items)
    if counted != expected:
        raise DpmfError(
            f"{found.source.paths[0]}: {_counts(*counted)}, but {entry.title} has {_counts(*expected)}: "
            f"it is not complete, or another version; {located.how_to_get(entry)}"
        )


def _counts(ratings: int, users: int, items: int) -> str:
    return f"{ratings:,} ratings by {users:,} users of {items:,} items"


def _csv_path(spec: CsvSpec, folders: Folders) -> Path:
    path = folders.beside_config(spec.path)
    if not path.is_file():
        what = "a folder, not a file" if path.is_dir() else "no such file"
        raise DpmfError(
            f"{path}: {what}; correct `path` of data set {spec.name}, which is relative to the config file"
        )
    return path


def _read_csv(path: Path, spec: CsvSpec, *, empty: bool = False) -> Canonical:
    raw = own_file.parse(path, spec)
    return canonicalise(raw, spec.scale.scale, duplicates=spec.duplicates, empty=empty)


def _make(spec: SyntheticSpec) -> Canonical:
    from dpmf_cli.datasets import synthetic

    users, items, ratings = spec.shape
    expected = spec.entry.expected
    target = Counts(users, items, ratings, expected.mean, expected.variance)
    return synthetic.generate(spec.key, target, spec.entry.shape, spec.entry.scale, seed=spec.seed)

"""Turns a spec into canonical ratings: finds, verifies, parses and samples them once, and later opens the cache."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.datasets import Folders, Sizes, catalog, located
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets.archives import is_packed
from dpmf_cli.datasets.cache import Cached
from dpmf_cli.datasets.canonical import Canonical, Ids, canonicalise
from dpmf_cli.datasets.catalog import CatalogEntry, Counts
from dpmf_cli.datasets.formats import PARSERS, own_file
from dpmf_cli.datasets.formats.own_columns import is_parquet
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec, SampleSpec, SyntheticSpec

SAMPLE_VERSION = 1
"""Raise it when the same spec makes another sample."""


def sampled(whole: Cached | Canonical, spec: CatalogSpec, sample: SampleSpec) -> Canonical:
    """Returns the ratings of `sample.users` random users, or `sample.ratings` of them at random, in canonical form.

    Users and items without a rating are left out; if ratings are drawn, these may include a few of the users. Raises
    DpmfError if there are fewer users or ratings than asked for.
    """
    ratings = whole.ratings
    if sample.users > ratings.n_users:
        raise DpmfError(
            f"{spec.name} has {ratings.n_users:,} users, too few for a sample of {sample.users:,}"
        )
    rng = named_generator(sample.seed, spec.name, "sample of users")
    chosen = np.zeros(ratings.n_users, np.bool_)
    chosen[rng.permutation(ratings.n_users)[: sample.users]] = True
    rows = np.flatnonzero(chosen[ratings.users])
    if sample.ratings is not None:
        if sample.ratings > len(rows):
            raise DpmfError(
                f"{spec.name}: the {sample.users:,} users of this sample have {len(rows):,} ratings, not "
                f"{sample.ratings:,}; ask for more users or fewer ratings"
            )
        rng = named_generator(sample.seed, spec.name, "sample of ratings")
        rows = np.sort(rng.permutation(rows)[: sample.ratings])
    users, user_ids = _without_gaps(ratings.users[rows], whole.user_ids)
    items, item_ids = _without_gaps(ratings.items[rows], whole.item_ids)
    columns = {name: np.asarray(column[rows]) for name, column in ratings.columns.items()}
    values = np.asarray(ratings.values[rows])
    reduced = Ratings(users, items, values, len(user_ids), len(item_ids), ratings.scale, columns)
    return Canonical(reduced, user_ids, item_ids)


def _without_gaps(indices: NDArray[np.int32], ids: Ids) -> tuple[NDArray[np.int32], Ids]:
    """Returns indices without gaps, in the order of the old ones, and the ids that are left."""
    present = np.zeros(len(ids), np.bool_)
    present[indices] = True
    index = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return index[indices], ids[present]


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
        found = located.locate_spec(spec, folders)
        digest = located.content_digest(found, folders.cache)
        description = {**common, "key": spec.name, "content": digest}
        if spec.sample is None:
            return description, lambda: read_catalog(found, folders.cache)
        sample, whole = spec.sample, spec.model_copy(update={"sample": None})
        described = {**description, "sample": {**sample.model_dump(), "version": SAMPLE_VERSION}}
        return described, lambda: sampled(verified(whole, folders), spec, sample)
    if isinstance(spec, CsvSpec):
        path = _csv_path(spec, folders)
        digest = located.file_digest(path, folders.cache)
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
        whole = read_catalog(located.locate_spec(spec, folders), None)
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


# So many bytes are parsed in about a second. Of a larger text file, only so many are read.
_QUICK_BYTES = 32 << 20


def sizes_of(spec: AnySpec, folders: Folders) -> Sizes:
    """See `dpmf_cli.datasets.sizes`."""
    if isinstance(spec, SyntheticSpec):
        return expected(spec)
    if (
        isinstance(spec, CatalogSpec)
        and spec.path is None
        and located.present(catalog.entry(spec.name), folders.data) is None
    ):
        return expected(spec)
    kept = already(spec, folders)
    if kept is None and isinstance(spec, CatalogSpec):
        return expected(spec)
    if kept is None and isinstance(spec, CsvSpec):
        path = folders.beside_config(spec.path)
        if path.stat().st_size > _QUICK_BYTES and not (is_packed(path) or is_parquet(path)):
            return _estimated(path, spec)
        kept = cached(spec, folders)
    assert kept is not None
    return Sizes(kept.ratings.n_users, kept.ratings.n_items, len(kept.ratings), "counted")


def expected(spec: CatalogSpec | SyntheticSpec) -> Sizes:
    """Returns the sizes that the catalog or a synthetic spec states. A sample counts all items, and the share of the
    ratings that its users should have."""
    if isinstance(spec, SyntheticSpec):
        return Sizes(*spec.shape, "expected")
    whole = catalog.entry(spec.name).expected
    if spec.sample is None:
        return Sizes(whole.users, whole.items, whole.ratings, "expected")
    users = spec.sample.users
    return Sizes(
        users, whole.items, spec.sample.ratings or round(whole.ratings * users / whole.users), "expected"
    )


def _estimated(path: Path, spec: CsvSpec) -> Sizes:
    """Estimates sizes from the first 32 MiB. Ratings and users grow with the file; all items count as seen there."""
    import pandas as pd

    with path.open("rb") as file:
        head = file.read(_QUICK_BYTES)
    head = head[: head.rfind(b"\n") + 1]
    _, positions, _ = own_file.layout(path, spec)
    frame = pd.read_csv(
        io.BytesIO(head),
        sep=spec.separator,
        header=0 if spec.header else None,
        dtype="category",
        na_filter=False,
        on_bad_lines="skip",
        encoding_errors="replace",
    )
    whole = path.stat().st_size / len(head)
    users, items = (frame[frame.columns[positions[role]]].nunique() for role in ("user", "item"))
    return Sizes(round(users * whole), items, round(len(frame) * whole), "estimated")

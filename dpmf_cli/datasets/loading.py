"""Turns a spec into canonical ratings: finds, verifies, parses and samples them once, and later opens the cache."""

import io
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets import catalog, located, synthetic
from dpmf_cli.datasets.archives import is_packed
from dpmf_cli.datasets.canonical import Canonical, Dataset, Ids, canonicalise
from dpmf_cli.datasets.catalog import Counts
from dpmf_cli.datasets.folders import DataIdentity, Folders, Sizes
from dpmf_cli.datasets.formats import PARSERS, own_file
from dpmf_cli.datasets.formats.own_columns import is_parquet
from dpmf_cli.datasets.prize import prize_source
from dpmf_cli.datasets.sanity import Sanity, look_at
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec, SampleSpec, SyntheticSpec, TestSet
from dpmf_cli.datasets.stars import in_stars

SAMPLE_VERSION = 1
"""Raise it when the same spec makes another sample."""


def sampled(whole: Canonical, spec: CatalogSpec, sample: SampleSpec) -> Canonical:
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


_LONG = 2_000_000
"""From so many ratings on, somebody who waits is told why."""


def load(spec: AnySpec, folders: Folders, test: TestSet = "folds") -> Dataset:
    """Opens the ratings of a spec: finds the files of the spec and of its test set, verifies and (once) parses them.

    Raises `DpmfError` for a missing, damaged or malformed file, with the line and the fix.
    """
    dataset = _named(spec, cached(spec, folders))
    if test == "folds" or test == "recent" or not isinstance(spec, CatalogSpec):
        return dataset
    tested = kept.opened(*prize_source(spec, test, dataset, folders), folders.cache, verify=True)
    return replace(dataset, identity=replace(dataset.identity, test_checksum=tested.checksum))


def known(spec: AnySpec, folders: Folders, test: TestSet = "folds") -> Dataset | None:
    """Returns what `load` returns if the ratings and the test set were parsed before; None otherwise.

    Raises `DpmfError` for a missing file.
    """
    found = kept.find(_source(spec, folders)[0], folders.cache)
    if found is None:
        return None
    dataset = _named(spec, found)
    if test == "folds" or test == "recent" or not isinstance(spec, CatalogSpec):
        return dataset
    tested = kept.find(prize_source(spec, test, dataset, folders)[0], folders.cache)
    if tested is None:
        return None
    return replace(dataset, identity=replace(dataset.identity, test_checksum=tested.checksum))


def _named(spec: AnySpec, found: Canonical) -> Dataset:
    to_stars = not spec.stars and not in_stars(found.ratings.scale)
    own = isinstance(spec, CsvSpec)
    identity = DataIdentity(spec.key, title(spec), found.checksum, to_stars=to_stars, own=own)
    return Dataset(**vars(found), identity=identity)


def look(spec: AnySpec, dataset: Dataset) -> Sanity:
    """Describes the ratings of a spec in lines, and in warnings that name the fix."""
    return look_at(dataset.ratings, merged=dataset.merged, duplicates=getattr(spec, "duplicates", "error"))


def cached(spec: AnySpec, folders: Folders, *, verify: bool = True) -> Canonical:
    """Returns the ratings of a spec; parses them if the cache does not have them, or has them damaged.

    verify   whether their checksum tells damage; else only what is missing or cut off is noticed
    """
    return kept.opened(*_source(spec, folders), folders.cache, verify=verify)


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


def _source(spec: AnySpec, folders: Folders) -> tuple[str, Callable[[], Canonical]]:
    """Returns the key of a source in the cache, and a function that reads it."""
    about: dict[str, Any] = {"kind": spec.kind}
    if isinstance(spec, CatalogSpec):
        found = located.locate_spec(spec, folders)
        about |= {"key": spec.name, "content": located.content_digest(found, folders.cache)}
        if spec.sample is None:
            return kept.source_key(about), lambda: read_catalog(found, folders.cache)
        sample, whole = spec.sample, spec.model_copy(update={"sample": None})
        about["sample"] = {**sample.model_dump(), "version": SAMPLE_VERSION}
        return kept.source_key(about), lambda: sampled(cached(whole, folders), spec, sample)
    if isinstance(spec, CsvSpec):
        about |= spec.model_dump(exclude={"name", "path"})
        about["content"] = located.file_digest(_csv_path(spec, folders), folders.cache)
    else:
        about |= {"like": spec.like, "seed": spec.seed, "shape": list(spec.shape)}
    return kept.source_key(about), lambda: parsed(spec, folders)


def parsed(spec: AnySpec, folders: Folders, *, empty: bool = False) -> Canonical:
    """Parses the ratings of a spec now, and does not keep them. Raises like `cached`.

    empty   whether a user's own file without ratings is accepted
    """
    if isinstance(spec, CatalogSpec):
        whole = read_catalog(located.locate_spec(spec, folders), None)
        return whole if spec.sample is None else sampled(whole, spec, spec.sample)
    if isinstance(spec, CsvSpec):
        raw = own_file.parse(_csv_path(spec, folders), spec)
        return canonicalise(raw, spec.scale.scale, duplicates=spec.duplicates, empty=empty)
    target = Counts(*spec.shape, spec.entry.expected.mean, spec.entry.expected.variance)
    return synthetic.generate(spec.key, target, spec.entry.shape, spec.entry.scale, seed=spec.seed)


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
        raw = PARSERS[found.parts[0][2].format](found.source)
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
    ratings, expected = canonical.ratings, entry.expected
    shapes = (
        (len(ratings), ratings.n_users, ratings.n_items),
        (expected.ratings, expected.users, expected.items),
    )
    if shapes[0] != shapes[1]:
        counted, complete = ("{:,} ratings by {:,} users of {:,} items".format(*shape) for shape in shapes)
        raise DpmfError(
            f"{found.source.paths[0]}: {counted}, but {entry.title} has {complete}: it is not complete, or another "
            f"version; {located.how_to_get(entry)}"
        )
    return canonical


def _csv_path(spec: CsvSpec, folders: Folders) -> Path:
    path = folders.beside_config(spec.path)
    if not path.is_file():
        what = "a folder, not a file" if path.is_dir() else "no such file"
        raise DpmfError(
            f"{path}: {what}; correct `path` of data set {spec.name}, which is relative to the config file"
        )
    return path


# So many bytes are parsed in about a second. Of a larger text file, only so many are read.
_QUICK_BYTES = 32 << 20


def sizes(spec: AnySpec, folders: Folders) -> Sizes:
    """Returns users, items and ratings without heavy parsing; `Sizes.basis` says where the numbers come from."""
    if isinstance(spec, SyntheticSpec):
        return expected(spec)
    if isinstance(spec, CatalogSpec) and spec.path is None and located.what_is_missing(spec, folders):
        return expected(spec)
    found = kept.find(_source(spec, folders)[0], folders.cache)
    if found is None and isinstance(spec, CatalogSpec):
        return expected(spec)
    if found is None and isinstance(spec, CsvSpec):
        path = folders.beside_config(spec.path)
        if path.stat().st_size > _QUICK_BYTES and not (is_packed(path) or is_parquet(path)):
            return _estimated(path, spec)
    ratings = (found or cached(spec, folders)).ratings
    return Sizes(ratings.n_users, ratings.n_items, len(ratings), "counted")


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

"""Canonical ratings of a spec: found, verified, parsed and sampled once, and later opened in the cache."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpmf_cli.core.arrays import Flags, Ints
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.datasets import archives, cache as kept, catalog, located, own_file, publishers, synthetic
from dpmf_cli.datasets.canonical import Canonical, DataIdentity, Dataset, Ids, canonicalise, in_stars
from dpmf_cli.datasets.catalog import Counts
from dpmf_cli.datasets.filters import filtered, sampled
from dpmf_cli.datasets.guess import with_fix
from dpmf_cli.datasets.located import Folders
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec, PrizeSet, Split, SyntheticSpec

SAMPLE_VERSION = 1
"""Raise it when the same spec makes another sample."""

_Parse = Callable[[], Canonical]


_LONG = 2_000_000
"""From so many ratings on, the user is told why it takes long."""


def load(spec: AnySpec, folders: Folders, split: Split = "folds") -> Dataset:
    """The ratings of a spec, from the files of the spec and of its test set, verified and (once) parsed.

    Those of an own test file are among them, with 1 in the column `test`. Raises `DpmfError` for a missing, damaged
    or malformed file, with the line and the fix.
    """
    dataset = _dataset(spec, folders, split, partial(kept.opened, cache=folders.cache, verify=True))
    assert dataset is not None, "what is not kept is parsed"
    return dataset


def known(spec: AnySpec, folders: Folders, split: Split = "folds") -> Dataset | None:
    """What `load` returns if the ratings and the test set were parsed before; None otherwise.

    Raises `DpmfError` for a missing file.
    """
    return _dataset(spec, folders, split, lambda key, _: kept.find(key, folders.cache))


def _dataset(
    spec: AnySpec, folders: Folders, split: Split, opened: Callable[[str, _Parse], Canonical | None]
) -> Dataset | None:
    """The ratings of a spec, with the checksum of its test set, if `opened` opens both; else None."""
    found = opened(*_source(spec, folders, split))
    if found is None:
        return None
    to_stars, own = not spec.stars and not in_stars(found.ratings.scale), isinstance(spec, CsvSpec)
    identity = DataIdentity(spec.key, title(spec), found.checksum, to_stars=to_stars, own=own)
    dataset = Dataset(**vars(found), identity=identity)
    if not (isinstance(spec, CatalogSpec) and (split == "probe" or split == "judging")):
        return dataset
    tested = opened(*_prize_source(spec, split, dataset, folders))
    if tested is None:
        return None
    return replace(dataset, identity=replace(identity, test_checksum=tested.checksum))


def cached(spec: AnySpec, folders: Folders, *, verify: bool = True) -> Canonical:
    """The ratings of a spec; parses them if the cache does not have them, or has them damaged.

    verify   whether their checksum tells damage; else only what is missing or cut off is noticed
    """
    return kept.opened(*_source(spec, folders), folders.cache, verify=verify)


def title(spec: AnySpec) -> str:
    if isinstance(spec, CatalogSpec):
        whole = catalog.entry(spec.name).title
        if spec.sample is None:
            return whole
        of = f"{spec.sample.ratings:,} ratings of " if spec.sample.ratings else ""
        past = f" past the first {spec.sample.skip:,}" if spec.sample.skip else ""
        return f"{whole}, random sample of {of}{spec.sample.users:,} users{past} (seed {spec.sample.seed})"
    if isinstance(spec, CsvSpec):
        return spec.name
    users, items, ratings = spec.shape
    changed = spec.users or spec.items or spec.ratings
    size = f" ({ratings:,} ratings of {items:,} items by {users:,} users)" if changed else ""
    return f"synthetic, shaped like {spec.entry.title}{size}"


def _source(spec: AnySpec, folders: Folders, split: Split = "folds") -> tuple[str, _Parse]:
    """The key of a source in the cache, and a function that reads it."""
    about: dict[str, Any] = {"kind": spec.kind}
    if isinstance(spec, CatalogSpec):
        found = located.locate_spec(spec, folders)
        about |= {"key": spec.name, "content": located.content_digest(found, folders.cache)}
        if spec.item_features:
            about["item_features"] = publishers.FEATURES_VERSION
        if spec.sample is None:
            return kept.source_key(about), lambda: _whole(spec, found, folders.cache)
        sample, whole = spec.sample, spec.model_copy(update={"sample": None})
        about["sample"] = {**sample.model_dump(), "version": SAMPLE_VERSION}
        return kept.source_key(about), lambda: sampled(cached(whole, folders), spec, sample)
    if isinstance(spec, CsvSpec):
        about |= {"own": own_file.VERSION, **spec.model_dump(exclude={"name", "path"})}
        paths = zip(("content", "test"), _csv_paths(spec, folders, split), strict=False)
        about |= {key: located.file_digest(path, folders.cache) for key, path in paths}
    else:
        about |= {"like": spec.like, "seed": spec.seed, "shape": list(spec.shape)}
    return kept.source_key(about), lambda: parsed(spec, folders, split)


def parsed(spec: AnySpec, folders: Folders, split: Split = "folds", *, empty: bool = False) -> Canonical:
    """The ratings of a spec, parsed now and not kept. Raises like `cached`.

    empty   whether a user's own file without ratings is accepted
    """
    if isinstance(spec, CatalogSpec):
        whole = _whole(spec, located.locate_spec(spec, folders), None)
        return whole if spec.sample is None else sampled(whole, spec, spec.sample)
    if isinstance(spec, CsvSpec):
        raw = []
        for path in _csv_paths(spec, folders, split):
            with with_fix(path, spec):
                raw.append(own_file.parse(path, spec))
        joined = reduce(own_file.joined, raw)
        found = canonicalise(joined, spec.scale.scale, duplicates=spec.duplicates, empty=empty)
        return filtered(found, spec, empty=empty)
    target = Counts(*spec.shape, spec.entry.expected.mean, spec.entry.expected.variance)
    return synthetic.generate(spec.key, target, spec.entry.shape, spec.entry.scale, seed=spec.seed)


def _whole(spec: CatalogSpec, found: located.Located, cache: Path | None) -> Canonical:
    """The parsed ratings of a catalog entry, and the public features of its items if the spec asks for them."""
    canonical = read_catalog(found, cache)
    if not spec.item_features:
        return canonical
    film_list = found.entry.film_list
    assert film_list is not None, "the spec refuses to ask for what the catalog does not have"
    ids, columns = publishers.read_features(found.source, film_list)
    at = np.minimum(np.searchsorted(ids, canonical.item_ids), len(ids) - 1)
    if (ids[at] != canonical.item_ids).any():
        raise DpmfError(
            f"{found.source.paths[0]}: its list of films lacks one that has ratings; {found.source.fix}"
        )
    of_each = {name: column[at] for name, column in columns.items()}
    return replace(canonical, ratings=replace(canonical.ratings, item_columns=of_each))


def read_catalog(found: located.Located, cache: Path | None) -> Canonical:
    """The ratings of a catalog entry, from its files, verified and parsed.

    Raises DpmfError for a file that is not the publisher's, with the first line at fault if there is one.
    """
    entry = found.entry
    if cache is not None and entry.expected.ratings > _LONG and sys.stderr.isatty():
        print(
            f"reading {entry.title} for the first time; the ratings are then kept in {cache}", file=sys.stderr
        )
    wrong, by_digest = located.fault(found, cache)
    form = found.parts[0][2].format
    get = f"{located.how_to_get(entry)} (a version of your own can be described as `kind: csv`)"
    if form in publishers.VERIFIED and (wrong or not by_digest):
        raise DpmfError(f"{wrong or found.source.paths[0]}: it is damaged, or another version; {get}")
    try:
        raw = publishers.PARSERS[form](found.source)
        if not entry.timestamps:
            raw.columns.pop("timestamp", None)
        canonical = canonicalise(raw, entry.scale)
    except DpmfError as error:
        raise DpmfError(f"{error} ({wrong})" if wrong else str(error)) from error
    if wrong:
        raise DpmfError(f"{wrong}: it is damaged, or another version; {get}")
    ratings, expected = canonical.ratings, entry.expected
    there = Sizes(ratings.n_users, ratings.n_items, len(ratings), "counted")
    counts = "{0.ratings:,} ratings by {0.users:,} users of {0.items:,} items"
    counted, complete = map(counts.format, (there, expected))
    if counted != complete:
        raise DpmfError(
            f"{found.source.paths[0]}: {counted}, but {entry.title} has {complete}: it is not complete, or another "
            f"version; {located.how_to_get(entry)}"
        )
    return canonical


_LISTS = {"probe": ("probe.txt",), "judging": ("judging.txt", "grand_prize.tar.gz", "grand_prize")}
_LIST_FIXES = {
    "probe": "it is in the archive of the training set: put probe.txt from there",
    "judging": "put grand_prize.tar.gz, which was released after the prize, or its judging.txt",
}


def _prize_source(
    spec: CatalogSpec, which: PrizeSet, dataset: Dataset, folders: Folders
) -> tuple[str, _Parse]:
    """The key in the cache of a test set of `dataset`, and a function that parses it."""
    # Its own file or folder, in the data folder or beside the ratings; else the place of the ratings.
    source = located.locate_spec(spec, folders).source.paths[0]
    places = (folder / name for folder in (folders.data, source, source.parent) for name in _LISTS[which])
    place = next((place for place in places if place.exists()), source)
    paths = archives.files(place, publishers.list_wanted(place, which)) if place.is_dir() else [place]
    content = located.folder_digest(place, paths, folders.cache)
    key = kept.source_key({"kind": which, "ratings": dataset.identity.checksum, "content": content})
    return key, lambda: _prize_set(which, place, dataset, folders.data)


def _prize_set(which: PrizeSet, place: Path, dataset: Dataset, data: Path) -> Canonical:
    """The listed ratings with the data set's indices, in canonical order."""
    if next(archives.members(place, publishers.list_wanted(place, which)), None) is None:
        looked_for = " or ".join(_LISTS[which])
        raise DpmfError(
            f"{data}: the {which} set is not there (no {looked_for}, and none in {place}); "
            f"{_LIST_FIXES[which]} into {data}"
        )
    movies, customers, *given = publishers.read_list(place, which)
    values = (given[0] if given else np.zeros(len(movies))).astype(np.float32)
    users = _indices(place, "customer", customers, dataset.user_ids)
    items = _indices(place, "movie", movies, dataset.item_ids)
    order = np.lexsort((items, users))
    users, items, values = users[order], items[order], values[order]
    known, scale = dataset.ratings, dataset.ratings.scale
    listed = Ratings(users, items, values, known.n_users, known.n_items, scale)
    there = in_ratings(listed, known)

    def refuse(faulty: Flags, fault: str, get: str) -> None:
        if faulty.any():
            at = int(np.argmax(faulty))
            about = {"rating": values[at], "scale": scale, "title": dataset.identity.title}
            ids = {"customer": dataset.user_ids[users[at]], "movie": dataset.item_ids[items[at]]}
            raise DpmfError(f"{place}: {fault.format(**about, **ids)}; get {get}")

    repeated = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    refuse(repeated, "customer {customer} stands twice under movie {movie}", "the file again")
    if which == "probe":
        absent = "customer {customer} has no rating of movie {movie} in {title}"
        refuse(~there, absent, "the probe.txt of these ratings")
        return Canonical(known.select(in_ratings(known, listed)), dataset.user_ids, dataset.item_ids)
    off = "the rating {rating:g} is off the scale from {scale.minimum:g} to {scale.maximum:g}"
    refuse((values < scale.minimum) | (values > scale.maximum), off, "the file again")
    trained_on = "the rating of movie {movie} by customer {customer} is in the training set"
    refuse(there, trained_on, "the judging.txt of these ratings")
    return Canonical(listed, dataset.user_ids, dataset.item_ids)


def _indices(place: Path, what: str, ids: Ints, known: Ids) -> Ints:
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    strange = known[at] != ids
    if strange.any():
        raise DpmfError(
            f"{place}: {what} {ids[np.argmax(strange)]} has no ratings in the training set; get the file of these "
            "ratings"
        )
    return at.astype(np.int32)


def _csv_paths(spec: CsvSpec, folders: Folders, split: Split) -> list[Path]:
    """The file of own ratings, and that of own test ratings if there is one."""
    named = {f"data set {spec.name}": folders.beside_config(spec.path)}
    if not isinstance(split, str) and split.by == "files":
        named["`split`"] = folders.beside_config(split.path)
    for of, path in named.items():
        if not path.is_file():
            what = "a folder, not a file" if path.is_dir() else "no such file"
            raise DpmfError(f"{path}: {what}; correct `path` of {of}, which is relative to the config file")
    return list(named.values())


@dataclass(frozen=True)
class Sizes:
    """The size of a data set.

    basis   where the numbers come from: `counted` in the ratings, or `expected` from the catalog (or from a synthetic
            set's spec)
    """

    users: int
    items: int
    ratings: int
    basis: Literal["counted", "expected"]

    @property
    def density(self) -> float:
        """The fraction of all (user, item) pairs that are rated."""
        return self.ratings / (self.users * self.items)


def sizes(spec: AnySpec, folders: Folders) -> Sizes:
    """Users, items and ratings; `Sizes.basis` says where the numbers come from.

    An own file that was never read is parsed, and kept for the run.
    """
    if isinstance(spec, SyntheticSpec):
        return expected(spec)
    if isinstance(spec, CatalogSpec) and spec.path is None and located.what_is_missing(spec, folders):
        return expected(spec)
    found = kept.find(_source(spec, folders)[0], folders.cache)
    if found is None and isinstance(spec, CatalogSpec):
        return expected(spec)
    ratings = (found or cached(spec, folders)).ratings
    return Sizes(ratings.n_users, ratings.n_items, len(ratings), "counted")


def expected(spec: CatalogSpec | SyntheticSpec) -> Sizes:
    """The sizes that the catalog or a synthetic spec states; a sample counts all items, and the share of the ratings
    that its users should have."""
    if isinstance(spec, SyntheticSpec):
        return Sizes(*spec.shape, "expected")
    whole = catalog.entry(spec.name).expected
    of = spec.sample or whole
    ratings = of.ratings or round(whole.ratings * of.users / whole.users)
    return Sizes(of.users, whole.items, ratings, "expected")

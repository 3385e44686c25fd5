"""The two test sets of the Netflix Prize, which can be predicted instead of folds.

probe     ratings of the training set that probe.txt lists; the methods train on the other ratings
judging   ratings that were held back for the prize, and released after it in grand_prize/judging.txt

Both are parsed once and kept like the ratings, in the index space of the data set.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.datasets import Dataset, Folders, archives, loading, located
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets.canonical import Canonical, Ids
from dpmf_cli.datasets.formats import netflix
from dpmf_cli.datasets.spec import CatalogSpec, PrizeSet

_NAMES = {"probe": ("probe.txt",), "judging": ("judging.txt", "grand_prize.tar.gz", "grand_prize")}
_SOURCES = {
    "probe": "it is in the archive of the training set: put probe.txt from there",
    "judging": "put grand_prize.tar.gz, which was released after the prize, or its judging.txt",
}


def load_test_set(spec: CatalogSpec, which: PrizeSet, dataset: Dataset, folders: Folders) -> kept.Cached:
    """Returns the ratings of a test set of `dataset`, the data set of `spec`. Parses them if the cache does not have
    them undamaged.

    Raises `DpmfError` if the test set's file is missing or malformed, or belongs to another data set.
    """
    cache = folders.cache
    place = _place(spec, which, folders)
    key = _key(which, place, dataset, cache)

    def get() -> kept.Cached:
        return kept.find(key, cache) or kept.keep(key, _parsed(which, place, dataset, folders.data), cache)

    return kept.verified(get, cache)


def known_test_set(
    spec: CatalogSpec, which: PrizeSet, dataset: Dataset, folders: Folders
) -> kept.Cached | None:
    """Returns what `load_test_set` returns if the test set was parsed before; None otherwise."""
    return kept.find(_key(which, _place(spec, which, folders), dataset, folders.cache), folders.cache)


def _place(spec: CatalogSpec, which: PrizeSet, folders: Folders) -> Path:
    """Returns the test set's own file or folder, in the data folder or beside the ratings; else the ratings' own."""
    source = located.locate_spec(spec, folders).source.paths[0]
    places = (folder / name for folder in (folders.data, source, source.parent) for name in _NAMES[which])
    return next((place for place in places if place.exists()), source)


def _key(which: PrizeSet, place: Path, dataset: Dataset, cache: Path) -> str:
    paths = archives.files(place, netflix.list_wanted(place, f"{which}.txt")) if place.is_dir() else [place]
    return kept.source_key(
        {
            "parser": loading.PARSER_VERSION,
            "kind": which,
            "ratings": dataset.identity.checksum,
            "content": located.folder_digest(place, paths, cache),
        }
    )


def _parsed(which: PrizeSet, place: Path, dataset: Dataset, data: Path) -> Canonical:
    if next(archives.members(place, netflix.list_wanted(place, f"{which}.txt")), None) is None:
        looked_for = " or ".join(_NAMES[which])
        raise DpmfError(
            f"{data}: the {which} set is not there (no {looked_for}, and none in {place}); "
            f"{_SOURCES[which]} into {data}"
        )
    ratings = _probe(place, dataset) if which == "probe" else _judging(place, dataset)
    return Canonical(ratings, dataset.user_ids, dataset.item_ids)


def _probe(place: Path, dataset: Dataset) -> Ratings:
    movies, customers = netflix.read_probe(place)
    ratings = dataset.ratings
    listed = _in_index_space(place, dataset, movies, customers, np.zeros(len(movies), np.float32))
    here = in_ratings(ratings, listed)
    if here.sum() < len(listed):
        at = int(np.argmin(in_ratings(listed, ratings)))
        raise DpmfError(
            f"{place}: customer {dataset.user_ids[listed.users[at]]} has no rating of movie "
            f"{dataset.item_ids[listed.items[at]]} in {dataset.identity.title}; get the probe.txt of these ratings"
        )
    return ratings.select(here)


def _judging(place: Path, dataset: Dataset) -> Ratings:
    movies, customers, values = netflix.read_judging(place)
    scale = dataset.ratings.scale
    wrong = (values < scale.minimum) | (values > scale.maximum)
    if wrong.any():
        raise DpmfError(
            f"{place}: the rating {values[np.argmax(wrong)]:g} is off the scale from {scale.minimum:g} to "
            f"{scale.maximum:g}; get the file again"
        )
    judged = _in_index_space(place, dataset, movies, customers, values)
    known = in_ratings(judged, dataset.ratings)
    if known.any():
        at = int(np.argmax(known))
        raise DpmfError(
            f"{place}: the rating of movie {dataset.item_ids[judged.items[at]]} by customer "
            f"{dataset.user_ids[judged.users[at]]} is in the training set; get the judging.txt of these ratings"
        )
    return judged


def _in_index_space(
    place: Path,
    dataset: Dataset,
    movies: NDArray[np.int32],
    customers: NDArray[np.int32],
    values: NDArray[np.float32],
) -> Ratings:
    """Returns the listed ratings (n,) with the data set's indices, in canonical order."""
    users = _indices(place, "customer", customers, dataset.user_ids)
    items = _indices(place, "movie", movies, dataset.item_ids)
    order = np.lexsort((items, users))
    users, items, values = users[order], items[order], values[order]
    repeated = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    if repeated.any():
        at = int(np.argmax(repeated))
        raise DpmfError(
            f"{place}: customer {dataset.user_ids[users[at]]} stands twice under movie "
            f"{dataset.item_ids[items[at]]}; get the file again"
        )
    ratings = dataset.ratings
    return Ratings(users, items, values, ratings.n_users, ratings.n_items, ratings.scale)


def _indices(place: Path, what: str, ids: NDArray[np.int32], known: Ids) -> NDArray[np.int32]:
    """Returns (n,) the dense index of each id."""
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    strange = known[at] != ids
    if strange.any():
        raise DpmfError(
            f"{place}: {what} {ids[np.argmax(strange)]} has no ratings in the training set; get the file of these "
            "ratings"
        )
    return at.astype(np.int32)

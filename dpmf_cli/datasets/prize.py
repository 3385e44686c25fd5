"""The two test sets of the Netflix Prize, which can be predicted instead of folds.

probe     ratings of the training set that probe.txt lists; the methods train on the other ratings
judging   ratings that were held back for the prize, and released after it in grand_prize/judging.txt

Both are parsed once and kept like the ratings, in the index space of the data set.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, in_ratings
from dpmf_cli.datasets import archives, located
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets.canonical import Canonical, Dataset, Ids
from dpmf_cli.datasets.folders import Folders
from dpmf_cli.datasets.formats import netflix
from dpmf_cli.datasets.spec import CatalogSpec, PrizeSet

_NAMES = {"probe": ("probe.txt",), "judging": ("judging.txt", "grand_prize.tar.gz", "grand_prize")}
_SOURCES = {
    "probe": "it is in the archive of the training set: put probe.txt from there",
    "judging": "put grand_prize.tar.gz, which was released after the prize, or its judging.txt",
}


def prize_source(
    spec: CatalogSpec, which: PrizeSet, dataset: Dataset, folders: Folders
) -> tuple[str, Callable[[], Canonical]]:
    """Returns the key in the cache of a test set of `dataset`, the data set of `spec`, and a function that parses it.

    That raises `DpmfError` if the test set's file is missing or malformed, or belongs to another data set.
    """
    # Its own file or folder, in the data folder or beside the ratings; else the place of the ratings.
    source = located.locate_spec(spec, folders).source.paths[0]
    places = (folder / name for folder in (folders.data, source, source.parent) for name in _NAMES[which])
    place = next((place for place in places if place.exists()), source)
    paths = archives.files(place, netflix.list_wanted(place, which)) if place.is_dir() else [place]
    key = kept.source_key(
        {
            "kind": which,
            "ratings": dataset.identity.checksum,
            "content": located.folder_digest(place, paths, folders.cache),
        }
    )
    return key, lambda: _parsed(which, place, dataset, folders.data)


def _parsed(which: PrizeSet, place: Path, dataset: Dataset, data: Path) -> Canonical:
    """Returns the listed ratings with the data set's indices, in canonical order."""
    if next(archives.members(place, netflix.list_wanted(place, which)), None) is None:
        looked_for = " or ".join(_NAMES[which])
        raise DpmfError(
            f"{data}: the {which} set is not there (no {looked_for}, and none in {place}); "
            f"{_SOURCES[which]} into {data}"
        )
    movies, customers, *given = netflix.read_list(place, which)
    values = (given[0] if given else np.zeros(len(movies))).astype(np.float32)
    users = _indices(place, "customer", customers, dataset.user_ids)
    items = _indices(place, "movie", movies, dataset.item_ids)
    order = np.lexsort((items, users))
    users, items, values = users[order], items[order], values[order]
    known, scale = dataset.ratings, dataset.ratings.scale
    listed = Ratings(users, items, values, known.n_users, known.n_items, scale)
    there = in_ratings(listed, known)

    def first(faulty: NDArray[np.bool_]) -> tuple[Any, Any]:
        at = int(np.argmax(faulty))
        return dataset.user_ids[users[at]], dataset.item_ids[items[at]]

    repeated = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    if repeated.any():
        user, item = first(repeated)
        raise DpmfError(f"{place}: customer {user} stands twice under movie {item}; get the file again")
    if which == "probe":
        if not there.all():
            user, item = first(~there)
            raise DpmfError(
                f"{place}: customer {user} has no rating of movie {item} in {dataset.identity.title}; get the "
                "probe.txt of these ratings"
            )
        return Canonical(known.select(in_ratings(known, listed)), dataset.user_ids, dataset.item_ids)
    wrong = (values < scale.minimum) | (values > scale.maximum)
    if wrong.any():
        raise DpmfError(
            f"{place}: the rating {values[np.argmax(wrong)]:g} is off the scale from {scale.minimum:g} to "
            f"{scale.maximum:g}; get the file again"
        )
    if there.any():
        user, item = first(there)
        raise DpmfError(
            f"{place}: the rating of movie {item} by customer {user} is in the training set; get the judging.txt of "
            "these ratings"
        )
    return Canonical(listed, dataset.user_ids, dataset.item_ids)


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

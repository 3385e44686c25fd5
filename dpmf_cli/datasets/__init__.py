"""Data sets: turns a config's `dataset:` key into canonical, memory-mapped ratings.

load(spec, folders)            finds, verifies, parses once and opens the ratings
known(spec, folders)           does the same, but only if no parsing is needed
open_cached(checksum, cache)   opens the ratings in a worker process, without parsing
look(spec, dataset)            describes the ratings in lines, and warns of what is wrong with them
sizes(spec, folders)           gives a planner the users, items and ratings, without heavy work
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from dpmf_cli.core.files import cache_folder
from dpmf_cli.core.streams import OWN

if TYPE_CHECKING:
    from dpmf_cli.core.ratings import Ratings
    from dpmf_cli.datasets.cache import Cached
    from dpmf_cli.datasets.canonical import Ids
    from dpmf_cli.datasets.sanity import Sanity
    from dpmf_cli.datasets.spec import AnySpec, TestSet


@dataclass(frozen=True)
class DataIdentity:
    """The name of a data set and the content of its ratings.

    key             name in the paths of results
    title           name in tables and figures; no result depends on it
    checksum        of the canonical ratings, in hex; "" if they were never read
    test_checksum   of the ratings of a fixed test set, in hex; "" if folds are held out
    to_stars        whether algorithms see the ratings mapped onto 1 to 5 (`datasets.stars`); False if they see the
                    ratings as they are
    own             whether it is a user's own file
    """

    key: str
    title: str
    checksum: str
    test_checksum: str = ""
    to_stars: bool = False
    own: bool = False

    @property
    def stream(self) -> str:
        """The name in random streams: the same for all own files, so that no result depends on what one is called."""
        return OWN if self.own else self.key

    @property
    def checksums(self) -> tuple[str, ...]:
        """The checksums of all ratings that a fit needs."""
        return (self.checksum, self.test_checksum) if self.test_checksum else (self.checksum,)


def data_folder() -> Path:
    """Returns the folder of data files: $DPMF_DATA, else `datasets` in the current folder."""
    return Path(os.environ.get("DPMF_DATA") or "datasets")


@dataclass(frozen=True)
class Folders:
    """The folders that a command works with.

    data      files of the catalog's data sets
    cache     parsed ratings, and measurements of this machine
    base      the config's own folder, where its relative paths start
    results   task results, and a folder of tables and figures for each experiment
    """

    data: Path
    cache: Path
    base: Path = Path()
    results: Path = Path("results")

    @classmethod
    def named(cls, data: Path | None = None, *, base: Path = Path(), results: Path = Path("results")) -> Self:
        """Takes the folders that a command line names, and all others from the environment."""
        return cls(data or data_folder(), cache_folder(), base, results)

    def beside_config(self, path: str) -> Path:
        """Resolves a path of a config: `~` stands for home, and a relative path starts at `base`."""
        return self.base / Path(path).expanduser()


__all__ = [
    "DataIdentity",
    "Dataset",
    "Folders",
    "Sizes",
    "cache_folder",
    "data_folder",
    "known",
    "load",
    "look",
    "open_cached",
    "sizes",
]


@dataclass(frozen=True)
class Dataset:
    """Ratings with their name.

    ratings    memory-mapped, read-only
    user_ids, item_ids   (n_users,), (n_items,): the source's ids of user u and item i
    merged     number of rows of the source that repeat a (user, item) pair, and so add no rating
    """

    identity: DataIdentity
    ratings: "Ratings"
    user_ids: "Ids"
    item_ids: "Ids"
    merged: int = 0


@dataclass(frozen=True)
class Sizes:
    """The size of a data set.

    basis   where the numbers come from: `counted` in the ratings, `expected` from the catalog (or from a synthetic
            set's spec), or `estimated` from the beginning of a large file
    """

    users: int
    items: int
    ratings: int
    basis: Literal["counted", "expected", "estimated"]


def load(spec: "AnySpec", folders: Folders, test: "TestSet" = "folds") -> Dataset:
    """Opens the ratings of a spec: finds the files of the spec and of its test set, verifies and (once) parses them.

    Raises `DpmfError` for a missing, damaged or malformed file, with the line and the fix.
    """
    from dpmf_cli.datasets import loading, prize
    from dpmf_cli.datasets.spec import CatalogSpec

    dataset = _dataset(spec, loading.verified(spec, folders))
    if test == "folds" or test == "recent" or not isinstance(spec, CatalogSpec):
        return dataset
    return _tested_on(prize.load_test_set(spec, test, dataset, folders), dataset)


def known(spec: "AnySpec", folders: Folders, test: "TestSet" = "folds") -> Dataset | None:
    """Returns what `load` returns if the ratings and the test set were parsed before; None otherwise.

    Raises `DpmfError` for a missing file.
    """
    from dpmf_cli.datasets import loading, prize
    from dpmf_cli.datasets.spec import CatalogSpec

    found = loading.already(spec, folders)
    if found is None:
        return None
    dataset = _dataset(spec, found)
    if test == "folds" or test == "recent" or not isinstance(spec, CatalogSpec):
        return dataset
    tested = prize.known_test_set(spec, test, dataset, folders)
    return _tested_on(tested, dataset) if tested else None


def _dataset(spec: "AnySpec", found: "Cached") -> Dataset:
    from dpmf_cli.datasets.loading import title
    from dpmf_cli.datasets.stars import in_stars

    ratings = found.ratings
    to_stars = not spec.stars and not in_stars(ratings.scale)
    identity = DataIdentity(spec.key, title(spec), found.checksum, to_stars=to_stars, own=spec.kind == "csv")
    return Dataset(identity, ratings, found.user_ids, found.item_ids, found.merged)


def _tested_on(test: "Cached", dataset: Dataset) -> Dataset:
    return replace(dataset, identity=replace(dataset.identity, test_checksum=test.checksum))


def look(spec: "AnySpec", dataset: Dataset) -> "Sanity":
    """Describes the ratings of a spec in lines, and in warnings that name the fix."""
    from dpmf_cli.datasets.sanity import look_at

    return look_at(dataset.ratings, merged=dataset.merged, duplicates=getattr(spec, "duplicates", "error"))


def open_cached(checksum: str, cache: "Path") -> "Ratings":
    """Opens the ratings of a checksum that `load` has returned on this machine, as memory maps."""
    from dpmf_cli.datasets.cache import open_ratings

    return open_ratings(checksum, cache)


def sizes(spec: "AnySpec", folders: Folders) -> Sizes:
    """Returns users, items and ratings without heavy parsing; `Sizes.basis` says where the numbers come from."""
    from dpmf_cli.datasets.loading import sizes_of

    return sizes_of(spec, folders)

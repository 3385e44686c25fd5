"""Data sets: what a config's `dataset:` key means, as canonical, memory-mapped ratings.

load(spec, data=…, cache=…, base=…)   find, verify, parse once, open
open_cached(checksum, cache)          what a worker process calls: no parsing
sizes(spec, …)                        users, items and ratings for a planner: nothing heavy
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dpmf_cli.datasets.canonical import Ids
    from dpmf_cli.datasets.spec import AnySpec
    from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class Dataset:
    """Ratings with their name.

    checksum   of the canonical ratings (not of the file they came in), in hex
    ratings    memory-mapped, read-only
    user_ids, item_ids   (n_users,), (n_items,): what the source calls user u and item i
    """

    key: str
    title: str
    checksum: str
    ratings: "Ratings"
    user_ids: "Ids"
    item_ids: "Ids"


@dataclass(frozen=True)
class Sizes:
    """How large a data set is: `counted` in the ratings, `expected` from the catalog (or from a synthetic
    set's spec), or `estimated` from the beginning of a large file."""

    users: int
    items: int
    ratings: int
    basis: Literal["counted", "expected", "estimated"]


def data_folder() -> Path:
    """Where data files are: $DPMF_DATA, else `datasets` in the current folder."""
    return Path(os.environ.get("DPMF_DATA") or "datasets")


def cache_folder() -> Path:
    """Where parsed ratings are kept: $DPMF_CACHE, else the system's folder for caches."""
    named = os.environ.get("DPMF_CACHE")
    if named:
        return Path(named)
    import pooch

    return Path(pooch.os_cache("dpmf"))


def load(spec: "AnySpec", *, data: Path, cache: Path, base: Path) -> Dataset:
    """Finds the file of a spec, verifies and parses it (the first time) and opens the canonical ratings.

    data    folder of the catalog's files
    cache   folder of parsed ratings
    base    folder from which a spec's relative paths start: the config file's

    Raises `DpmfError` for a missing, damaged or malformed file, with the line and the fix.
    """
    from dpmf_cli.datasets import loading

    found = loading.verified(spec, data, cache, base)
    return Dataset(
        spec.key, loading.title(spec), found.checksum, found.ratings, found.user_ids, found.item_ids
    )


def open_cached(checksum: str, cache: Path) -> "Ratings":
    """The ratings of a checksum that `load` has returned on this machine, as memory maps."""
    from dpmf_cli.datasets.cache import open_ratings

    return open_ratings(checksum, cache)


def sizes(spec: "AnySpec", *, data: Path, cache: Path, base: Path) -> Sizes:
    """Users, items and ratings without parsing anything heavy; see `Sizes` for what they rest on."""
    from dpmf_cli.datasets.sizing import sizes_of

    return sizes_of(spec, data, cache, base)

"""The folders that a command works with, and what a data set is called."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from dpmf_cli.core.files import cache_folder
from dpmf_cli.core.streams import OWN


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

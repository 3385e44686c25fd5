"""The folders of files: data sets as users have them, parsed ratings, configs and results."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dpmf_cli.files import cache_folder


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

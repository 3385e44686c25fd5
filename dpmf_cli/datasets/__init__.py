"""Data sets: turns a config's `dataset:` key into canonical, memory-mapped ratings.

load(spec, folders)            finds, verifies, parses once and opens the ratings
known(spec, folders)           does the same, but only if no parsing is needed
open_cached(checksum, cache)   opens the ratings in a worker process, without parsing
look(spec, dataset)            describes the ratings in lines, and warns of what is wrong with them
sizes(spec, folders)           gives a planner the users, items and ratings
"""

from dpmf_cli.core.files import cache_folder
from dpmf_cli.datasets.cache import open_ratings as open_cached
from dpmf_cli.datasets.canonical import DataIdentity, Dataset
from dpmf_cli.datasets.loading import Sizes, known, load, sizes
from dpmf_cli.datasets.located import Folders, data_folder
from dpmf_cli.datasets.soundness import look

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

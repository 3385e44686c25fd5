"""A folder with a config, and one that also has the results of an undisturbed run."""

import shutil
from pathlib import Path

import pytest

from tests.runs.tiny import TINY, Place


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(tmp_path: Path, cache: Path) -> Place:
    place = Place(tmp_path, cache)
    place.write(TINY)
    return place


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Place:
    """The results of one run in one process, which nobody changes."""
    place = Place(tmp_path_factory.mktemp("undisturbed"), cache)
    place.run(TINY)
    return place


@pytest.fixture
def finished(place: Place, undisturbed: Place) -> Place:
    """A folder for the test alone, with these results."""
    shutil.copytree(undisturbed.folder / "results", place.folder / "results")
    return place

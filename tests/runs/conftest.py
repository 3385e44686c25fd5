"""A folder with a config, in which runs draw pictures or not, and one with the results of an undisturbed run, too."""

import shutil
from pathlib import Path

import pytest

from tests.runs.tiny import TINY, Place


@pytest.fixture
def drawing(tmp_path: Path, session_cache: Path) -> Place:
    place = Place(tmp_path, session_cache)
    place.write(TINY)
    return place


@pytest.fixture
def place(drawing: Place, undrawn: None) -> Place:
    return drawing


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Place:
    """The results of one run in one process, which nobody changes."""
    place = Place(tmp_path_factory.mktemp("undisturbed"), session_cache)
    place.run(TINY)
    return place


@pytest.fixture
def finished(drawing: Place, undisturbed: Place) -> Place:
    """A folder for the test alone, with these results."""
    shutil.copytree(undisturbed.folder / "results", drawing.folder / "results")
    return drawing

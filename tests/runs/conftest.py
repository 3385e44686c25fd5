"""A folder with a config, and one that also has the results of an undisturbed run."""

import shutil
from pathlib import Path

import pytest

from tests.command import dpmf
from tests.runs.tiny import TINY


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with the results of one run in one process, which nobody changes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "tiny.yaml").write_text(TINY)
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    return folder


@pytest.fixture
def finished(folder: Path, undisturbed: Path) -> Path:
    """A folder for the test alone, with these results."""
    shutil.copytree(undisturbed / "results", folder / "results")
    return folder

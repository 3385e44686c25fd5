"""A data folder, a cache, and a catalog entry for tiny data sets."""

from pathlib import Path

import pytest

from tests.datasets.building import Shelf


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def shelf(data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    found = Shelf(data, cache, monkeypatch)
    found.entry()
    return found

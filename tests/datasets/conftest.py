"""A catalog entry for tiny data sets."""

from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.ratings import Scale
from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.catalog import CatalogEntry, Content, Counts, Licence, SourcePart
from tests.datasets.building import WHOLE_STARS, MakeEntry


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def make_entry(monkeypatch: pytest.MonkeyPatch) -> MakeEntry:
    """Puts a data set `tiny` into the catalog. By default it has three ratings in `u.data`."""

    def make(
        *,
        parts: tuple[SourcePart, ...] | None = None,
        contents: tuple[Content, ...] = (Content("u.data", "u.data"),),
        counts: tuple[int, int, int] = (2, 2, 3),
        mean: float = 4.0,
        variance: float = 2 / 3,
        scale: Scale = WHOLE_STARS,
        **rest: Any,
    ) -> CatalogEntry:
        whole = parts or (
            SourcePart(("tiny.zip", "tiny.tar.gz", "tiny.tar", "tiny", "u.data"), contents, **rest),
        )
        entry = CatalogEntry(
            key="tiny",
            title="Tiny set",
            scale=scale,
            parts=whole,
            expected=Counts(*counts, mean, variance),
            licence=Licence("free for tests", "https://example.org/licence"),
            citation="nobody",
            homepage="https://example.org/tiny",
        )
        monkeypatch.setitem(catalog.ENTRIES, "tiny", entry)
        return entry

    return make

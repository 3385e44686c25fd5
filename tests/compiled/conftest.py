"""Caches of machine code for these tests only."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmf_cli.core.compiled import entries


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache for the entries of a test. Messages that are given once are given again."""
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DPMF_KERNELS")
    for once in (entries._private, entries._say):
        once.cache_clear()
    yield entries.place()
    entries._private.cache_clear()

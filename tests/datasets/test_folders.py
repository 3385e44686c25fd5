"""Finds data files, and ratings that were parsed before."""

from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders, known, load
from dpmf_cli.datasets.spec import SyntheticSpec


def test_what_the_command_line_does_not_name_the_environment_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPMF_DATA", "from-environment")
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path))
    assert Folders.named() == Folders(Path("from-environment"), tmp_path, Path(), Path("results"))
    named = Folders.named(Path("mine"), base=Path("configs"), results=Path("out"))
    assert named == Folders(Path("mine"), tmp_path, Path("configs"), Path("out"))
    monkeypatch.delenv("DPMF_DATA")
    assert Folders.named().data == Path("datasets")


def test_a_path_of_a_config_starts_at_its_folder_or_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    folders = Folders(Path("data"), Path("cache"), base=Path("configs"))
    assert folders.beside_config("own/r.csv") == Path("configs/own/r.csv")
    assert folders.beside_config("/own/r.csv") == Path("/own/r.csv")
    assert folders.beside_config("~/r.csv") == Path("/somebody/r.csv")


def test_what_was_read_before_is_known_and_the_same(tmp_path: Path) -> None:
    spec = SyntheticSpec(kind="synthetic", like="ml-100k", users=60, items=40, ratings=900)
    folders = Folders(tmp_path, tmp_path)
    assert known(spec, folders) is None
    loaded, found = load(spec, folders), known(spec, folders)
    assert found is not None
    assert found.identity == loaded.identity
    assert found.identity.checksums == (loaded.identity.checksum,)

"""`dpmf doctor`: its findings, and exit code 1 if anything is damaged."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.health import EXTRAS
from dpmf_cli.cli.main import app
from dpmf_cli.core.compiled import machine_code
from dpmf_cli.core.compiled.machine_code import KernelCache, compiled
from dpmf_cli.kernels import sums

RUNNER = CliRunner()


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one entry of a cache."""
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path))
    monkeypatch.delenv("DPMF_KERNELS")
    machine_code._private.cache_clear()
    (tmp_path / "ratings").mkdir()
    (tmp_path / "ratings" / "users.npy").write_bytes(b"\0" * 2**20)
    compiled()(sums.sums_by.py_func)(np.zeros(1, np.int32), np.zeros(1), 1)
    (path,) = machine_code.entries()
    return path


def asked(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = RUNNER.invoke(app, ["doctor", "--json", *arguments])
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def kernels(**others: Any) -> dict[str, Any]:
    place = {"folder": str(machine_code.place()), "private": True, "size": 0}
    return {**place, "sound": 0, "damaged": [], **others}


def test_a_sound_cache(entry: Path, tmp_path: Path) -> None:
    found = asked()
    assert found["kernels"] == kernels(size=entry.stat().st_size, sound=1)
    assert found["cache"] == {
        "folder": str(tmp_path),
        "sizes": {entry.parent.name: entry.stat().st_size, "ratings": 2**20},
    }
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["memory"] > 2**28
    assert {"dpmf", "python", "numba", "llvmlite"} <= found["versions"].keys()


@pytest.mark.usefixtures("entry")
def test_data_and_extras_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "none"))
    monkeypatch.setitem(EXTRAS, "none", "no_such_module")
    said = RUNNER.invoke(app, ["doctor"]).stdout
    assert "none is not here" in said
    assert f"data      {tmp_path / 'none'}: no data set of the catalog" in said
    assert asked()["data"]["present"] == []


def test_a_damaged_entry_is_named_and_left(entry: Path) -> None:
    os.truncate(entry, 1000)
    assert asked(code=1)["kernels"] == kernels(size=1000, damaged=[str(entry)])
    said = RUNNER.invoke(app, ["doctor"])
    assert said.exit_code == 1
    assert "0 sound, 1 damaged" in said.output
    assert f"damaged: {entry}; it is compiled anew" in said.output
    assert entry.stat().st_size == 1000


def test_a_folder_that_others_may_write_to(entry: Path) -> None:
    entry.parent.chmod(0o777)
    assert asked(code=1)["kernels"]["private"] is False
    assert "not used: it is a link, belongs to another user" in RUNNER.invoke(app, ["doctor"]).output


def test_looking_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "none"))
    monkeypatch.delenv("DPMF_KERNELS")
    assert asked()["kernels"] == kernels()
    assert not (tmp_path / "none").exists()
    assert isinstance(
        sums.sums_by._cache, KernelCache
    )  # kernels of the package have the cache that is inspected

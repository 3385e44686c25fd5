"""Manifests: damage is noticed, and older ones can be read."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.results import manifest
from dpmf_cli.experiment.results.manifest import (
    MANIFEST,
    add_file,
    held,
    read_manifest,
    write_files,
    write_manifest,
)

DATASET = {"key": "k", "title": "t", "checksum": "d", "test_checksum": ""}
BODY: dict[str, Any] = {
    "config": {"seed": 1},
    "config_sha256": "c",
    "dataset": DATASET,
    "last_run": {"wall_seconds": 0.25},
}


def test_what_is_written_is_read_back_unless_a_digit_changes(tmp_path: Path) -> None:
    write_manifest(tmp_path, BODY)
    assert read_manifest(tmp_path) == BODY
    path = tmp_path / MANIFEST
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(DpmfError, match=r"manifest.json: damaged"):
        read_manifest(tmp_path)


def test_one_of_before_there_were_checksums_is_read(tmp_path: Path) -> None:
    older = {**BODY, "dataset": {"key": "k", "title": "t", "checksum": "d"}}
    (tmp_path / MANIFEST).write_text(json.dumps(older))
    assert read_manifest(tmp_path) == BODY


CHANGES: tuple[dict[str, Any], ...] = (
    {"dataset": "k"}, {"dataset": {**DATASET, "key": 1}}, {"config": []}, {"config_sha256": None},
    {"sha256": "0" * 64}, {"files": {"../a.csv": None}}, {"files": {"a.csv": 1}}, {"files": ["a.csv"]},
)  # fmt: skip
DAMAGED = ["", "[]", "{}", "null", "[" * 100_000, '{"sha256": 1}']


@pytest.mark.parametrize("text", [*DAMAGED, *(json.dumps({**BODY, **change}) for change in CHANGES)])
def test_damage_is_one_message(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DpmfError, match=r"manifest.json: damaged, or of another version"):
        read_manifest(tmp_path)


A, B = b"a,b\n1,2\n", b"<svg/>"
DIGEST_A, DIGEST_B = (hashlib.sha256(content).hexdigest() for content in (A, B))


def files(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_manifest(folder)["files"]
    return found


def test_before_a_file_is_written_its_name_says_so(tmp_path: Path) -> None:
    """For a first time, and for another version of dpmf that makes a different file."""
    seen = []

    def look(content: bytes) -> bytes:
        seen.append(files(tmp_path))
        return content

    write_files(tmp_path, BODY, {"a.csv": lambda: look(A), "b.svg": lambda: look(B)})
    assert seen == [{"a.csv": None, "b.svg": None}] * 2
    assert read_manifest(tmp_path) == {**BODY, "files": {"a.csv": DIGEST_A, "b.svg": DIGEST_B}}
    assert (tmp_path / "a.csv").read_bytes() == A
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: B, "b.svg": lambda: look(B)})
    assert seen[2] == {"a.csv": None, "b.svg": DIGEST_B}
    assert files(tmp_path) == {"a.csv": DIGEST_B, "b.svg": DIGEST_B}


def test_an_interruption_is_mended_by_the_same_again(tmp_path: Path) -> None:
    def interrupted() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, BODY, {"a.csv": lambda: A, "b.svg": interrupted})
    assert files(tmp_path) == {"a.csv": None, "b.svg": None}
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A, "b.svg": lambda: B})
    before = (tmp_path / MANIFEST).stat().st_ino
    (tmp_path / "a.csv").write_bytes(b"damaged")
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A, "b.svg": lambda: B})
    assert (tmp_path / MANIFEST).stat().st_ino == before
    assert (tmp_path / "a.csv").read_bytes() == A


def test_what_is_never_made_goes_with_its_name_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, BODY, {"old.png": lambda: A, "a.csv": lambda: A})
    removed: list[dict[str, Any]] = []
    monkeypatch.setattr(manifest, "remove", lambda path: removed.append(files(tmp_path)))
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A}, never=["old.png"])
    assert removed == [{"a.csv": DIGEST_A}]
    monkeypatch.undo()
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A}, never=["old.png"])
    assert not (tmp_path / "old.png").exists()


def test_where_there_is_no_manifest_there_is_no_hash(tmp_path: Path) -> None:
    add_file(tmp_path / "new" / "audit.csv", A)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["audit.csv"]


def test_one_command_at_a_time(tmp_path: Path) -> None:
    """A command that adds a file waits for a run that replaces the manifest, and does not restore the old one."""
    write_manifest(tmp_path, BODY)
    other = threading.Thread(target=add_file, args=(tmp_path / "report.html", B))
    with held(tmp_path):
        other.start()
        other.join(0.2)
        assert other.is_alive()
        write_files(tmp_path, {**BODY, "seed": 8}, {"a.csv": lambda: A})
    other.join()
    assert read_manifest(tmp_path)["seed"] == 8
    assert files(tmp_path) == {"a.csv": DIGEST_A, "report.html": DIGEST_B}

"""Manifests: damage is noticed, and older ones can be read."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.results.manifest import (
    MANIFEST,
    add_file,
    held,
    read_manifest,
    write_files,
    write_manifest,
)

BODY: dict[str, Any] = {
    "config": {"seed": 1},
    "config_sha256": "c",
    "dataset": {"key": "k", "title": "t", "checksum": "d", "test_checksum": ""},
    "last_run": {"wall_seconds": 0.25},
}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_manifest(tmp_path, BODY)
    assert read_manifest(tmp_path) == BODY


def test_one_of_before_there_were_checksums_is_read(tmp_path: Path) -> None:
    older = {**BODY, "dataset": {"key": "k", "title": "t", "checksum": "d"}}
    (tmp_path / MANIFEST).write_text(json.dumps(older))
    assert read_manifest(tmp_path) == BODY


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", "[" * 100_000, '{"sha256": 1}',
        json.dumps({**BODY, "dataset": "k"}), json.dumps({**BODY, "dataset": {**BODY["dataset"], "key": 1}}),
        json.dumps({**BODY, "config": []}), json.dumps({**BODY, "config_sha256": None}),
        json.dumps({**BODY, "sha256": "0" * 64}), json.dumps({**BODY, "files": {"../a.csv": None}}),
        json.dumps({**BODY, "files": {"a.csv": 1}}), json.dumps({**BODY, "files": ["a.csv"]}),
    ],
)  # fmt: skip
def test_damage_is_one_message(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DpmfError, match=r"manifest.json: damaged, or of another version"):
        read_manifest(tmp_path)


def test_a_changed_digit_is_damage(tmp_path: Path) -> None:
    write_manifest(tmp_path, BODY)
    path = tmp_path / MANIFEST
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(DpmfError, match=r"manifest.json: damaged"):
        read_manifest(tmp_path)


A, B = b"a,b\n1,2\n", b"<svg/>"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def files(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_manifest(folder)["files"]
    return found


def test_what_is_written_has_its_hash(tmp_path: Path) -> None:
    write_files(tmp_path, BODY, {"curves.csv": lambda: A, "curves.svg": lambda: B})
    assert read_manifest(tmp_path) == {**BODY, "files": {"curves.csv": digest(A), "curves.svg": digest(B)}}
    assert (tmp_path / "curves.csv").read_bytes() == A


def test_before_a_file_is_written_its_name_says_so(tmp_path: Path) -> None:
    """For a first time, and for another version of dpmf that makes a different file."""
    seen = []

    def look(content: bytes) -> bytes:
        seen.append(files(tmp_path))
        return content

    write_files(tmp_path, BODY, {"a.csv": lambda: look(A), "b.svg": lambda: look(B)})
    assert seen == [{"a.csv": None, "b.svg": None}] * 2
    changed = {"a.csv": lambda: B, "b.svg": lambda: look(B)}
    write_files(tmp_path, read_manifest(tmp_path), changed)
    assert seen[2] == {"a.csv": None, "b.svg": digest(B)}
    assert files(tmp_path) == {"a.csv": digest(B), "b.svg": digest(B)}


def test_an_interruption_is_mended_by_the_same_again(tmp_path: Path) -> None:
    def interrupted() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, BODY, {"a.csv": lambda: A, "b.svg": interrupted})
    assert files(tmp_path) == {"a.csv": None, "b.svg": None}
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A, "b.svg": lambda: B})
    assert files(tmp_path) == {"a.csv": digest(A), "b.svg": digest(B)}


def test_the_same_again_leaves_the_manifest_and_mends_a_file(tmp_path: Path) -> None:
    write_files(tmp_path, BODY, {"a.csv": lambda: A})
    before = (tmp_path / MANIFEST).stat().st_ino
    (tmp_path / "a.csv").write_bytes(b"damaged")
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A})
    assert (tmp_path / MANIFEST).stat().st_ino == before
    assert (tmp_path / "a.csv").read_bytes() == A


def test_what_is_never_made_goes_with_its_name_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, BODY, {"old.png": lambda: A, "a.csv": lambda: A})
    monkeypatch.setattr(
        "dpmf_cli.experiment.results.manifest.remove", lambda path: removed.append(files(tmp_path))
    )
    removed: list[dict[str, Any]] = []
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A}, never=["old.png"])
    assert removed == [{"a.csv": digest(A)}]
    monkeypatch.undo()
    write_files(tmp_path, read_manifest(tmp_path), {"a.csv": lambda: A}, never=["old.png"])
    assert not (tmp_path / "old.png").exists()


def test_one_more_file_joins_the_others(tmp_path: Path) -> None:
    write_files(tmp_path, BODY, {"a.csv": lambda: A})
    add_file(tmp_path / "report.html", B)
    assert files(tmp_path) == {"a.csv": digest(A), "report.html": digest(B)}


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
    assert files(tmp_path) == {"a.csv": digest(A), "report.html": digest(B)}

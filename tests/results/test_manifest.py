"""Manifests: damage is noticed, and older ones can be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.results.manifest import MANIFEST, read_manifest, write_manifest

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

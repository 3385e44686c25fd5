"""Kept audits: one sealed file for each, with a name made from everything that its outcome depends on."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpmf_cli.audit.job import Audited, Job, audit, of_record
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.manifest import add_file, read_manifest
from dpmf_cli.results.store import encode, sealed, unsealed, write_atomically
from dpmf_cli.streams import UnaccountedNoiseError

FORMAT = 1
"""The version of the format. It is raised when the meaning of a file changes."""

FOLDER = "audit"
"""The folder of the results folder in which all audits are kept."""


def known(results: Path, job: Job) -> Audited | None:
    """Returns the kept outcome of a job; None if there is none, or it is damaged."""
    return _read(_path(results, job))


def audited_and_kept(job: Job, results: Path) -> Audited:
    """Runs a job, in any process, and keeps its outcome. Raises DpmfError for noise that bypasses the ledger."""
    try:
        outcome = audit(job)
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{job.algorithm.name}: {error}") from None
    write_atomically(
        _path(results, job), encode(sealed(_plain({"format": FORMAT, "audit": asdict(outcome)})))
    )
    return outcome


def keep_for_experiment(folder: Path, outcomes: list[Audited], config: str) -> None:
    """Keeps the audits of a config's entries in its results folder, for tables; `config` is the config's hash."""
    body = {"format": FORMAT, "config_sha256": config, "audits": [asdict(each) for each in outcomes]}
    add_file(folder / "audit.json", encode(sealed(_plain(body))))


def of_experiment(folder: Path) -> dict[str, Audited]:
    """Returns the audits of a config's entries, by their label; none if the results are of another config."""
    body = _body(folder / "audit.json")
    try:
        if body is None or body["config_sha256"] != read_manifest(folder)["config_sha256"]:
            return {}
        return {each.label: each for each in map(of_record, body["audits"])}
    except (DpmfError, KeyError, TypeError, ValueError):
        return {}


def _path(results: Path, job: Job) -> Path:
    return results / FOLDER / "outcomes" / f"{job.name}.json"


def _read(path: Path) -> Audited | None:
    body = _body(path)
    try:
        return None if body is None else of_record(body["audit"])
    except (KeyError, TypeError, ValueError):
        return None


def _body(path: Path) -> dict[str, Any] | None:
    """Returns the contents of a file; None if it is missing, damaged, or of another version."""
    try:
        body = unsealed(path.read_bytes())
    except OSError:
        return None
    return body if body is not None and body["format"] == FORMAT else None


def _plain(value: Any) -> Any:
    """Turns nan into the string "nan", since JSON has no nan."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value

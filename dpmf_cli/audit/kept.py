"""Audits that are kept: one sealed file for each, named by everything that its outcome depends on."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpmf_cli.audit.job import Audited, Job, audit, of_record
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.contents import add_file
from dpmf_cli.results.manifest import read_manifest
from dpmf_cli.results.store import encode, sealed, unsealed, write_atomically
from dpmf_cli.streams import UnaccountedNoiseError

FORMAT = 1
"""Raised when a file changes its meaning."""

FOLDER = "audit"
"""Of the results folder: where all audits are kept."""


def known(results: Path, job: Job) -> Audited | None:
    """The outcome of a job, if it is kept; None where it is not, or is damaged."""
    return _read(_path(results, job))


def audited_and_kept(job: Job, results: Path) -> Audited:
    """Runs a job, in whichever process, and keeps its outcome. Raises DpmfError for noise past the ledger."""
    try:
        outcome = audit(job)
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{job.algorithm.name}: {error}") from None
    write_atomically(
        _path(results, job), encode(sealed(_plain({"format": FORMAT, "audit": asdict(outcome)})))
    )
    return outcome


def keep_for_experiment(folder: Path, outcomes: list[Audited], config: str) -> None:
    """Keeps the audits of a config's entries in its results folder, for tables; `config` is its hash."""
    body = {"format": FORMAT, "config_sha256": config, "audits": [asdict(each) for each in outcomes]}
    add_file(folder / "audit.json", encode(sealed(_plain(body))))


def of_experiment(folder: Path) -> dict[str, Audited]:
    """The audits of a config's entries, by their label; none where the config that was run is another one."""
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
    """What a file holds; None for one that is not there, is damaged, or is of another version."""
    try:
        body = unsealed(path.read_bytes())
    except OSError:
        return None
    return body if body is not None and body["format"] == FORMAT else None


def _plain(value: Any) -> Any:
    """JSON has no nan: it is the string "nan"."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value

"""Audits that are kept: one sealed file for each, named by everything that its outcome depends on."""

import math
from pathlib import Path
from typing import Any

from dpmf_cli.audit.job import Audited, Job, audit, of_record, record
from dpmf_cli.results.store import encode, sealed, unsealed, write_atomically

FORMAT = 1
"""Raised when a file changes its meaning."""

FOLDER = "audit"
"""Of the results folder: where all audits are kept."""


def known(results: Path, job: Job) -> Audited | None:
    """The outcome of a job, if it is kept; None where it is not, or is damaged."""
    return _read(_path(results, job))


def audited_and_kept(job: Job, results: Path) -> Audited:
    """Runs a job, in whichever process, and keeps its outcome."""
    outcome = audit(job)
    write_atomically(_path(results, job), _written(outcome))
    return outcome


def keep_for_experiment(folder: Path, outcomes: list[Audited]) -> None:
    """Keeps the audits of a config's entries in its results folder, where tables look for them."""
    body = {"format": FORMAT, "audits": [_plain(record(each)) for each in outcomes]}
    write_atomically(folder / "audit.json", encode(sealed(body)))


def of_experiment(folder: Path) -> dict[str, Audited]:
    """The audits of a config's entries, by their label; none where none were made."""
    try:
        body = unsealed((folder / "audit.json").read_bytes())
    except OSError:
        return {}
    if body is None or body["format"] != FORMAT:
        return {}
    found = map(of_record, body["audits"])
    return {each.label: each for each in found}


def _path(results: Path, job: Job) -> Path:
    return results / FOLDER / "outcomes" / f"{job.name}.json"


def _written(outcome: Audited) -> bytes:
    return encode(sealed({"format": FORMAT, "audit": _plain(record(outcome))}))


def _read(path: Path) -> Audited | None:
    try:
        body = unsealed(path.read_bytes())
    except OSError:
        return None
    return None if body is None or body["format"] != FORMAT else of_record(body["audit"])


def _plain(value: Any) -> Any:
    """JSON has no nan: it is the string "nan"."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value

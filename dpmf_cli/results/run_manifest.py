"""The manifest that a run writes: what was run, on what, with what, how long it took, and what failed."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings
from dpmf_cli.results import provenance
from dpmf_cli.results.manifest import MANIFEST, Ran, checksums_of, read_manifest, write_manifest
from dpmf_cli.running.runner import Outcome
from dpmf_cli.terminal import say


def keep_manifest(
    folder: Path,
    ran: Ran,
    ratings: Ratings,
    outcomes: Sequence[Outcome],
    *,
    seconds: float,
    processes: int,
    command: str,
) -> None:
    """Writes the manifest, unless nothing was computed and the one that is there is of this config and data.

    seconds  that the run took, by the clock
    """
    before = _before(folder)
    theirs = (before["config_sha256"], *checksums_of(before)) if before else None
    ours = ran.config.hash, ran.checksum, ran.test_checksum
    if theirs == ours and not outcomes:
        return
    if theirs is not None and theirs != ours:
        what = "another data set" if theirs[1:] != ours[1:] else "another form of this config"
        say(f"{folder}/ was of {what}: its tables are replaced; finished tasks are kept, and found again")
    spent = before.get("spent", {}) if theirs == ours else {}
    manifest = {
        "command": command,
        **_what(ran, ratings),
        "git": provenance.git_state(),
        "versions": provenance.versions(),
        "cpu": provenance.cpu(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **_how_it_went(outcomes, seconds, processes, spent),
    }
    write_manifest(folder, manifest)


def _before(folder: Path) -> dict[str, Any]:
    """The manifest that is there; empty where there is none, or none that can be read, which is told."""
    if not (folder / MANIFEST).exists():
        return {}
    try:
        return read_manifest(folder)
    except DpmfError:
        say(f"{folder / MANIFEST}: damaged, or of another version of dpmf; it is written anew")
        return {}


def _what(ran: Ran, ratings: Ratings) -> dict[str, Any]:
    """What was run, and on what: all that the same command would find again."""
    config = ran.config
    return {
        "config": config.resolved(),
        "config_sha256": config.hash,
        "seed": config.seed,
        "dataset": {
            "key": ran.dataset,
            "title": ran.title,
            "checksum": ran.checksum,
            "test_checksum": ran.test_checksum,
            "users": ratings.n_users,
            "items": ratings.n_items,
            "ratings": len(ratings),
            "scale": asdict(ratings.scale),
        },
        "portions": [asdict(each) for each in ran.portions],
        **({"plugins": config.plugin_sources} if config.plugins else {}),
    }


def _how_it_went(
    outcomes: Sequence[Outcome], seconds: float, processes: int, before: dict[str, Any]
) -> dict[str, Any]:
    """What this run computed, took and failed at; `before` is what the runs before it had `spent`."""
    by_algorithm: dict[str, float] = {}
    peaks: dict[str, int] = {}
    for outcome in outcomes:
        name = outcome.task.algorithm.name
        by_algorithm[name] = by_algorithm.get(name, 0.0) + outcome.seconds
        peaks[outcome.process] = max(peaks.get(outcome.process, 0), outcome.peak_bytes)
    return {
        "last_run": {
            "tasks": len(outcomes),
            "failed": sum(outcome.failure is not None for outcome in outcomes),
            "processes": processes,
            "cpus": sorted({outcome.cpu for outcome in outcomes} - {""}),
            "wall_seconds": round(seconds, 3),
            "task_seconds": {name: round(value, 3) for name, value in by_algorithm.items()},
            "peak_bytes_of_processes": sorted(peaks.values(), reverse=True),
        },
        # Of all runs of this config that ended: what its results took, however often it was resumed.
        "spent": {
            "tasks": before.get("tasks", 0) + sum(outcome.failure is None for outcome in outcomes),
            "wall_seconds": round(before.get("wall_seconds", 0.0) + seconds, 3),
            "task_seconds": round(before.get("task_seconds", 0.0) + sum(by_algorithm.values()), 3),
        },
        "failures": [
            {
                "algorithm": outcome.task.algorithm.name,
                "portion": outcome.task.cut.portion,
                "fold": outcome.task.fold,
                "run": outcome.task.run,
                "traceback": outcome.failure,
            }
            for outcome in outcomes
            if outcome.failure
        ],
    }

"""The manifest of a results folder: which config and data it belongs to, and what its files were made with.

Its `files` are the tables, figures and pages of the folder, with their hashes.

    "files": {"curves.csv": "<SHA-256>", "curves.png": null}

A name without a hash stands for a file that a command is about to write. So however the command ends, each file
either has its hash or is known to need the same command again.
"""

import contextlib
import fcntl
import hashlib
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import make_folder, read_file, remove, sweep
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.experiment.config import ExperimentConfig, config_of
from dpmf_cli.experiment.results import MANIFEST as MANIFEST
from dpmf_cli.experiment.results import provenance
from dpmf_cli.experiment.results.store import encode, errors_named, sealed, write_atomically
from dpmf_cli.experiment.results.task import Outcome


def write_manifest(folder: Path, body: dict[str, Any]) -> None:
    """Writes a manifest with the checksum of its content."""
    whole = json.loads(encode(sealed(body)))
    write_atomically(folder / MANIFEST, json.dumps(whole, indent=2).encode() + b"\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a results folder. Raises DpmfError where there is none, or it is damaged."""
    path = folder / MANIFEST
    try:
        body = json.loads(read_file(path))
        digest = body.pop("sha256", None)  # older ones have none
        sound = digest in (None, hashlib.sha256(encode(body)).hexdigest())
        sound = sound and isinstance(body["config"], dict) and isinstance(body["config_sha256"], str)
        of = body["dataset"]
        known = (of["key"], of["title"], of["checksum"], of.setdefault("test_checksum", ""))
        sound = sound and all(isinstance(text, str) for text in known)
        _added(body)
        for name, digest in body.get("files", {}).items():  # older ones have none
            sound = sound and Path(name).name == name not in ("", "..") and isinstance(digest, str | None)
        if not sound:
            raise ValueError
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise DpmfError(f"{path}: {why}; run the experiment's config first") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DpmfError(f"{path}: damaged, or of another version of dpmf; run the config again") from None
    whole: dict[str, Any] = body
    return whole


def has_tables(folder: Path) -> bool:
    """Whether a run has ended in a results folder, so that it has tables (of whichever config)."""
    try:
        return has_ended(read_manifest(folder))
    except DpmfError:
        return False


def has_ended(manifest: dict[str, Any]) -> bool:
    """Whether a manifest is from a run that has ended. Older manifests have no `files`, and count as ended."""
    return manifest.get("files") != {}


@dataclass(frozen=True)
class Ran:
    """What was run: the config, its data, and its portions (none for a config without `growth`)."""

    config: ExperimentConfig
    data: DataIdentity
    portions: tuple[Portion, ...] = ()

    def with_added(self, added: Mapping[str, Sequence[float]]) -> "Ran":
        """The same with more ε, as in `ExperimentConfig.with_added`."""
        return replace(self, config=self.config.with_added(added))


def what_ran(folder: Path, warn: Callable[[str], None] = say) -> Ran:
    """What was run, from a folder's manifest. Raises DpmfError if this version of dpmf cannot understand it."""
    manifest = read_manifest(folder)
    try:
        config = config_of(manifest["config"]).with_added(_added(manifest))
        portions = tuple(Portion(**each) for each in manifest.get("portions", ()))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"not a config of this version of dpmf ({'.'.join(map(str, first['loc']))}: {first['msg']})"
        raise DpmfError(f"{folder / MANIFEST}: {what}; run the config again") from None
    except TypeError:
        what = "damaged, or of another version of dpmf"
        raise DpmfError(f"{folder / MANIFEST}: {what}; run the config again") from None
    except DpmfError as error:
        raise DpmfError(f"{folder}: {error}") from None
    if manifest.get("plugins", {}) != config.plugin_sources:
        fix = "`dpmf run` the config again to compute anew what depends on the plugin"
        warn(f"{folder}: a plugin has changed since these results were made; {fix}")
    return Ran(config, _data(manifest), portions)


def _data(manifest: dict[str, Any]) -> DataIdentity:
    """The data that the tables beside a manifest were computed from."""
    data, names = manifest["dataset"], [each.name for each in fields(DataIdentity)]
    return DataIdentity(**{name: data[name] for name in names if name in data})


def _added(manifest: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    """For each name of an entry, the ε that a run added to the grid of its config.

    Raises ValueError for a number that is not a positive finite ε. A value of another form raises other errors.
    """
    added = {name: tuple(map(float, epsilons)) for name, epsilons in manifest.get("added", {}).items()}
    if not all(0 < epsilon < math.inf for epsilons in added.values() for epsilon in epsilons):
        raise ValueError
    return added


def refuse_changed_data(folder: Path, config: ExperimentConfig, data: DataIdentity) -> None:
    """Raises DpmfError if a results folder belongs to the same data set as `config`, but to different ratings.

    A config that asks for another data set than before is another experiment, so it is not refused.
    """
    try:
        manifest = read_manifest(folder)
        before = config_of(manifest["config"])
    except (DpmfError, ValidationError):
        return
    if not has_ended(manifest):
        return
    theirs = _data(manifest)
    if (before.dataset, before.test) != (config.dataset, config.test) or theirs.checksums == data.checksums:
        return
    what, was, now = ("ratings", theirs.checksum, data.checksum)
    if was == now:
        what, was, now = ("test set", theirs.test_checksum, data.test_checksum)
    changed = f"changed since these results were made (checksum {was[:12]}… then, {now[:12]}… now)"
    fix = "keep these results and name another folder with --results, or replace them with --new-data"
    raise DpmfError(f"{folder}/: the {what} of {data.title} {changed}; bring the old file back, or {fix}")


def manifest_of_run(
    folder: Path,
    ran: Ran,
    ratings: Ratings,
    outcomes: Sequence[Outcome],
    *,
    seconds: float,
    processes: int,
    command: str,
) -> dict[str, Any]:
    """The manifest to keep after a run: the existing one, or a new one.

    The existing one is kept if nothing was computed, it belongs to this config and data, and its tables are made. A
    new one has no `files`, because the existing files belong to other results.

    seconds  duration of the run, by the clock
    """
    before = _before(folder)
    theirs = (before["config_sha256"], _data(before).checksums) if before else None
    ours = ran.config.hash, ran.data.checksums
    ended = theirs == ours and has_ended(before) and _added(before) == ran.config.added
    if ended and not outcomes:
        return before
    if theirs is not None and theirs != ours:
        what = "another data set" if theirs[1] != ours[1] else "another form of this config"
        kept = "its tables are replaced; finished tasks are kept and can be reused"
        say(f"{folder}/ held results of {what}: {kept}")
    spent = before.get("spent", {}) if theirs == ours else {}
    config = ran.config
    data = {key: value for key, value in asdict(ran.data).items() if key != "own" or value}
    return {
        "command": command,
        "config": config.resolved(),
        "config_sha256": config.hash,
        "seed": config.seed,
        "dataset": {
            **data,
            "users": ratings.n_users,
            "items": ratings.n_items,
            "ratings": len(ratings),
            "scale": asdict(ratings.scale),
        },
        "portions": [asdict(each) for each in ran.portions],
        **({"added": config.added} if config.added else {}),
        **({"plugins": config.plugin_sources} if config.plugins else {}),
        "git": provenance.git_state(),
        "versions": provenance.versions(),
        "cpu": provenance.cpu(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **_how_it_went(outcomes, seconds, processes, spent),
    }


def _before(folder: Path) -> dict[str, Any]:
    """The existing manifest; {} where there is none, or where it cannot be read, which is reported."""
    if not (folder / MANIFEST).exists():
        return {}
    try:
        return read_manifest(folder)
    except DpmfError:
        say(f"{folder / MANIFEST}: damaged, or of another version of dpmf; it is written anew")
        return {}


def _how_it_went(
    outcomes: Sequence[Outcome], seconds: float, processes: int, before: dict[str, Any]
) -> dict[str, Any]:
    """What this run computed, how long it took, and its failures. `before` holds what earlier runs had `spent`."""
    by_algorithm, peaks = defaultdict[str, float](float), defaultdict[str, int](int)
    for outcome in outcomes:
        by_algorithm[outcome.task.algorithm.name] += outcome.seconds
        peaks[outcome.process] = max(peaks[outcome.process], outcome.peak_bytes)
    cpu = before.get("cpu_seconds", 0.0) + sum(by_algorithm.values())
    return {
        "last_run": {
            "tasks": len(outcomes),
            "failed": sum(outcome.failure is not None for outcome in outcomes),
            "processes": processes,
            "cpus": sorted({outcome.cpu for outcome in outcomes} - {""}),
            "wall_seconds": round(seconds, 3),
            "cpu_seconds": {name: round(value, 3) for name, value in by_algorithm.items()},
            "peak_bytes_of_processes": sorted(peaks.values(), reverse=True),
        },
        # The total of all runs of this config that ended: what its results took, however often it was resumed.
        "spent": {
            "tasks": before.get("tasks", 0) + sum(outcome.failure is None for outcome in outcomes),
            "wall_seconds": round(before.get("wall_seconds", 0.0) + seconds, 3),
            # Older runs did not measure it.
            **({"cpu_seconds": round(cpu, 3)} if not before or "cpu_seconds" in before else {}),
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


Maker = Callable[[], bytes]
"""Returns the content of a file. Called only when it is the file's turn, because figures take time."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds a results folder, made if it does not exist, for one command at a time to change. Other commands wait.

    Removes half-written files that killed commands left there. Raises DpmfError where the folder cannot be made.
    """
    with errors_named(folder):
        make_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # without locks in the file system, the later manifest wins
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        sweep(folder)
        yield
    finally:
        os.close(descriptor)


def write_files(
    folder: Path, manifest: dict[str, Any], makers: Mapping[str, Maker], never: Iterable[str] = ()
) -> None:
    """Writes the manifest and the files (by name) of a `held` folder, and removes the files named in `never`.

    If the manifest already has the right hash of every file, only the files are written. Raises DpmfError.
    """
    taken = set(never)
    files = {name: digest for name, digest in manifest.get("files", {}).items() if name not in taken}
    unknown = {name: None for name in makers if files.get(name) is None}
    before = manifest.get("files", {})
    if unknown or len(files) < len(before):
        files |= unknown
        write_manifest(folder, {**manifest, "files": files})
    for name in taken:
        remove(folder / name)
    for name, make in makers.items():
        content = make()
        digest = hashlib.sha256(content).hexdigest()
        if files[name] not in (None, digest):  # another version of dpmf made a different file
            files[name] = None
            write_manifest(folder, {**manifest, "files": files})
        with contextlib.suppress(OSError):
            if read_file(folder / name) == content:
                files[name] = digest
                continue
        write_atomically(folder / name, content)
        files[name] = digest
    if files != before:
        write_manifest(folder, {**manifest, "files": files})


def add_file(path: Path, content: bytes) -> None:
    """Writes one more file into a folder, and its hash into the folder's manifest, if any. Raises DpmfError."""
    folder = path.parent
    with held(folder):
        if (folder / MANIFEST).exists():
            write_files(folder, read_manifest(folder), {path.name: lambda: content})
        else:
            write_atomically(path, content)

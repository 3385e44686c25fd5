"""The manifest of a results folder: which config and data it belongs to, and what its files were made with.

Its `files` are the tables, figures and pages of the folder, with their hashes.

    "files": {"curves.csv": "<SHA-256>", "curves.png": null}

A name without a hash stands for a file that a command is about to write, so that however the command ends, each file
either has its hash or is known to need the same command again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from dpmf_cli.core import __version__
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import PACKAGE, make_folder, read_file, remove, sweep
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.experiment.config import ExperimentConfig, config_of
from dpmf_cli.experiment.results.folders import MANIFEST as MANIFEST
from dpmf_cli.experiment.results.store import encode, errors_named, sealed, write_atomically
from dpmf_cli.experiment.results.task import Outcome

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pandas", "pydantic")
_DAMAGED = "damaged, or of another version of dpmf; run the config again"


class _Known(BaseModel):
    """What dpmf itself reads of a manifest. `added` has, by an entry's name, the ε that a run added to its grid."""

    config: dict[str, Any]
    config_sha256: str
    dataset: DataIdentity
    added: dict[str, tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]] = {}
    files: dict[str, str | None] = {}  # older manifests have none


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
        body["dataset"].setdefault("test_checksum", "")
        names = _Known.model_validate(body).files
        if not (sound and all(Path(name).name == name not in ("", "..") for name in names)):
            raise ValueError
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise DpmfError(f"{path}: {why}; run the experiment's config first") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DpmfError(f"{path}: {_DAMAGED}") from None
    whole: dict[str, Any] = body
    return whole


def has_tables(folder: Path) -> bool:
    """Whether a run has ended in a results folder, so that it has tables (of whichever config)."""
    with contextlib.suppress(DpmfError):
        return has_ended(read_manifest(folder))
    return False


def has_ended(manifest: dict[str, Any]) -> bool:
    """Whether a manifest is from a run that has ended. Older ones have no `files`, and count as ended."""
    return manifest.get("files") != {}


@dataclass(frozen=True)
class Ran:
    """What was run: the config, its data, and its portions (none for a config without `growth`)."""

    config: ExperimentConfig
    data: DataIdentity
    portions: tuple[Portion, ...] = ()


def what_ran(folder: Path, warn: Callable[[str], None] = say) -> Ran:
    """What was run, from a folder's manifest. Raises DpmfError if this version of dpmf cannot understand it."""
    manifest = read_manifest(folder)
    try:
        head = _Known.model_validate(manifest)
        config = config_of(head.config).with_added(head.added)
        portions = tuple(Portion(**each) for each in manifest.get("portions", ()))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"not a config of this version of dpmf ({'.'.join(map(str, first['loc']))}: {first['msg']})"
        raise DpmfError(f"{folder / MANIFEST}: {what}; run the config again") from None
    except TypeError:
        raise DpmfError(f"{folder / MANIFEST}: {_DAMAGED}") from None
    except DpmfError as error:
        raise DpmfError(f"{folder}: {error}") from None
    if manifest.get("plugins", {}) != config.plugin_sources:
        fix = "`dpmf run` the config again to compute anew what depends on the plugin"
        warn(f"{folder}: a plugin has changed since these results were made; {fix}")
    return Ran(config, head.dataset, portions)


def versions() -> dict[str, str]:
    """The versions of dpmf, of Python and of the packages that can change a number."""
    return {
        "dpmf": __version__,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


@lru_cache(maxsize=1)
def cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def git_state() -> dict[str, Any] | None:
    """The commit that dpmf runs from, and whether the checkout differs from that commit; None outside a checkout."""
    folder = PACKAGE.resolve()
    if not (folder.parent / ".git").exists():
        return None  # git would ask a repository around an environment, which may name programs for it to run

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else the checkout is another project's
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain", "--", "."))}
    except (OSError, subprocess.SubprocessError):
        return None


def refuse_changed_data(folder: Path, config: ExperimentConfig, data: DataIdentity) -> None:
    """Raises DpmfError if a results folder belongs to the same data set as `config`, but to different ratings. A
    config that asks for another data set than before is another experiment, so it is not refused."""
    try:
        manifest = read_manifest(folder)
        before = config_of(manifest["config"])
    except (DpmfError, ValidationError):
        return
    if not has_ended(manifest):
        return
    theirs = _Known.model_validate(manifest).dataset
    if (before.dataset, before.split) != (config.dataset, config.split) or theirs.checksums == data.checksums:
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
    before: dict[str, Any] = {}
    if (folder / MANIFEST).exists():
        try:
            before = read_manifest(folder)
        except DpmfError:
            say(f"{folder / MANIFEST}: damaged, or of another version of dpmf; it is written anew")
    head = _Known.model_validate(before) if before else None
    theirs = (head.config_sha256, head.dataset.checksums) if head else None
    ours = ran.config.hash, ran.data.checksums
    if not outcomes and head and theirs == ours and has_ended(before) and head.added == ran.config.added:
        return before
    if theirs is not None and theirs != ours:
        what = "another data set" if theirs[1] != ours[1] else "another form of this config"
        kept = "its tables are replaced; finished tasks are kept and can be reused"
        say(f"{folder}/ held results of {what}: {kept}")
    config, spent = ran.config, before.get("spent", {}) if theirs == ours else {}
    by_algorithm, peaks = defaultdict[str, float](float), defaultdict[int, int](int)
    for outcome in outcomes:
        by_algorithm[outcome.task.algorithm.name] += outcome.seconds
        peaks[outcome.process] = max(peaks[outcome.process], outcome.peak_bytes)
    cpu_seconds = spent.get("cpu_seconds", 0.0) + sum(by_algorithm.values())
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
        "git": git_state(),
        "versions": versions(),
        "cpu": cpu(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "last_run": {
            "tasks": len(outcomes),
            "failed": sum(outcome.failure is not None for outcome in outcomes),
            "processes": processes,
            "wall_seconds": round(seconds, 3),
            "cpu_seconds": {name: round(value, 3) for name, value in by_algorithm.items()},
            "peak_bytes_of_processes": sorted(peaks.values(), reverse=True),
        },
        # The total of all runs of this config that ended: what its results took, however often it was resumed.
        "spent": {
            "tasks": spent.get("tasks", 0) + sum(outcome.failure is None for outcome in outcomes),
            "wall_seconds": round(spent.get("wall_seconds", 0.0) + seconds, 3),
            # Older runs did not measure it.
            **({"cpu_seconds": round(cpu_seconds, 3)} if not spent or "cpu_seconds" in spent else {}),
        },
        "failures": [
            {
                "algorithm": outcome.task.algorithm.name,
                "portion": outcome.task.cut.portion,
                "fold": outcome.task.cut.fold,
                "run": outcome.task.run,
                "traceback": outcome.failure,
            }
            for outcome in outcomes
            if outcome.failure
        ],
    }


Maker = Callable[[], bytes]
"""The content of a file, called only when it is the file's turn, because figures take time."""


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

"""Verifies results without changing them: task files, manifests, the files with hashes, and the data behind them."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING, read_file, sha256
from dpmf_cli.datasets import Folders
from dpmf_cli.datasets.soundness import Soundness, add_source, of_cache
from dpmf_cli.experiment.results.manifest import MANIFEST, Ran, has_ended, read_manifest, what_ran
from dpmf_cli.experiment.results.store import DamagedError, Store, read_result
from dpmf_cli.experiment.results.task import Task, tasks_of

_COMPUTE = "`dpmf run` its config: the task is computed again; if it is of no config, delete it"


@dataclass(frozen=True, eq=False)
class RanExperiment:
    """What was run, its manifest, and the folders of its results, its data and its parsed ratings."""

    folder: Path
    ran: Ran
    manifest: dict[str, Any]
    folders: Folders


@dataclass
class Verified:
    """The findings about the parts of results.

    experiments   the experiments whose manifest this version understands
    grids         the ε of each sound task file
    """

    folders: Folders
    tasks: Soundness = field(default_factory=lambda: Soundness("task files"))
    manifests: Soundness = field(default_factory=lambda: Soundness("manifests"))
    files: Soundness = field(default_factory=lambda: Soundness("tables, figures, reports"))
    cache: Soundness = field(default_factory=lambda: Soundness("parsed ratings, ids"))
    data: Soundness = field(default_factory=lambda: Soundness("data files"))
    experiments: list[RanExperiment] = field(default_factory=list)
    grids: dict[Path, tuple[float, ...]] = field(default_factory=dict)

    @property
    def checks(self) -> list[Soundness]:
        return [self.tasks, self.manifests, self.files, self.cache, self.data]

    def finished(self) -> list[tuple[Path, Task, RanExperiment]]:
        """Each sound task file of what was run, once, with its task; the task's grid is the ε in the file."""
        found = {
            path: (path, replace(task, epsilons=self.grids[path]), experiment)
            for experiment in self.experiments
            for path, task in _files_of(experiment.folder, experiment.ran)
            if path in self.grids
        }
        return sorted(found.values(), key=lambda each: each[0])


def verify_results(root: Path, folders: Folders) -> Verified:
    """Verifies all task files and experiments of a folder of results, and all parsed ratings in the cache.

    Raises DpmfError where there are no results.
    """
    found = Verified(folders)
    for path in sorted(root.glob("tasks/*/*/*.json")):
        _add_task(found, path, root)
    for path in sorted(root.glob(f"*/{MANIFEST}")):
        _add_experiment(found, path.parent, None)
    if not any((found.grids, found.tasks.off, found.manifests.sound, found.manifests.off)):
        raise DpmfError(
            f"{root}: no results here; name a folder of results, the folder of an experiment, or a config"
        )
    found.cache = of_cache(folders.cache)
    _add_data(found)
    return found


def verify_experiment(folder: Path, folders: Folders, base: Path | None = None) -> Verified:
    """Verifies one experiment, its task files and its ratings; `base` is the folder of its config, if known.

    Raises DpmfError where the experiment was never run.
    """
    if not (folder / MANIFEST).exists():
        raise DpmfError(f"{folder}: no {MANIFEST}, so no results of an experiment; run its config first")
    found = Verified(folders)
    try:
        ran = what_ran(folder, lambda _: None)
    except DpmfError:
        pass  # reported below, by `_add_experiment`
    else:
        for path in sorted({path for path, _ in _files_of(folder, ran)}):
            _add_task(found, path, folder.parent)
        found.cache = of_cache(folders.cache, ran.data.checksums)
    _add_experiment(found, folder, base)
    _add_data(found)
    return found


def joined(parts: Sequence[Verified]) -> Verified:
    """Merges several findings into the first of them."""
    first, *others = parts
    for other in others:
        for ours, theirs in zip(first.checks, other.checks, strict=True):
            ours.sound += theirs.sound
            ours.off += theirs.off
            ours.notes += theirs.notes
        first.experiments += other.experiments
        first.grids |= other.grids
    return first


def _add_data(found: Verified) -> None:
    """Adds the data files of the experiments, each once."""
    seen = []
    for experiment in found.experiments:
        of = experiment.ran.config.dataset, experiment.folders.base, experiment.ran.data.checksum
        if of not in seen:
            seen.append(of)
            add_source(found.data, of[0], experiment.folders, of[2])


def _paths_of_each(folder: Path, ran: Ran) -> Iterator[tuple[Task, list[Path]]]:
    """Each task of what was run, with its existing files."""
    for entry in ran.config.entries:
        yield from Store(folder.parent).paths_of_each(tasks_of(ran.config, entry, ran.data))


def _files_of(folder: Path, ran: Ran) -> Iterator[tuple[Path, Task]]:
    """The existing task files of what was run, each with its task."""
    return ((path, task) for task, paths in _paths_of_each(folder, ran) for path in paths)


def _add_task(found: Verified, path: Path, root: Path) -> None:
    try:
        found.grids[path] = read_result(path, root).epsilons
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        found.tasks.add(path, what, "make it readable, or delete it")
    except DamagedError as error:
        found.tasks.add(path, f"damaged: {error}", _COMPUTE)
    except DpmfError as error:
        what, _, fix = str(error).removeprefix(f"{path}: ").rpartition("; ")
        found.tasks.add(path, what, fix)
    else:
        found.tasks.add(path, None, "")


def _add_experiment(found: Verified, folder: Path, base: Path | None) -> None:
    try:
        manifest = read_manifest(folder)
    except DpmfError as error:
        found.manifests.add(folder / MANIFEST, str(error).partition(": ")[2], "run its config again")
        return
    _add_files(found.files, folder, manifest)
    try:
        ran = what_ran(folder, found.manifests.notes.append)
    except DpmfError as error:
        found.manifests.sound += 1
        found.manifests.notes.append(f"the tasks of an experiment were not counted: {error}")
        return
    where = replace(found.folders, base=_base(manifest) if base is None else base, results=folder.parent)
    found.experiments.append(RanExperiment(folder, ran, manifest, where))
    left = -len(manifest.get("failures", ()))
    for task, paths in _paths_of_each(folder, ran):
        left += not {each for path in paths for each in found.grids.get(path, ())}.issuperset(task.epsilons)
    wrong = f"{left} of its tasks have no sound result" if left > 0 else None
    if wrong and not has_ended(manifest):
        found.manifests.notes.append(f"{folder}: its run has not ended; {wrong}; {_again(manifest)}")
        wrong = None
    found.manifests.add(folder / MANIFEST, wrong, _again(manifest))


def _base(manifest: dict[str, Any]) -> Path:
    """The folder of the config that was run, relative to the current folder, as far as the command tells."""
    try:
        words = shlex.split(str(manifest.get("command", "")))
    except ValueError:
        return Path()
    return Path(words[2]).parent if words[:2] == ["dpmf", "run"] and len(words) > 2 else Path()


def _add_files(files: Soundness, folder: Path, manifest: dict[str, Any]) -> None:
    hashes = manifest.get("files", {})
    for name, digest in sorted(hashes.items()):
        drawn = "run `dpmf report` or `dpmf plot` again"
        fix = drawn if name.endswith((".html", ".pdf")) else _again(manifest)
        files.add(folder / name, _fault(folder / name, digest), fix)
    covered = {MANIFEST, *hashes}
    others = [
        path.name
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in covered and not path.name.startswith(WRITING)
    ]
    if others:
        older = ", made by an older version: run its config again to cover tables"
        files.notes.append(
            f"{folder}: no hashes of {', '.join(others)}{'' if 'files' in manifest else older}"
        )


def _fault(path: Path, digest: str | None) -> str | None:
    """What is wrong with a file that should have this SHA-256 (hex). Without a hash, its writing was interrupted."""
    if digest is None:
        return "interrupted while it was written"
    try:
        content = read_file(path)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None if sha256(content) == digest else "damaged: its content does not fit its hash"


def _again(manifest: dict[str, Any]) -> str:
    command = manifest.get("command")
    return f"run the same command again: {command}" if command else "run its config again"

"""Results verified without changing them: task files, manifests, the files with hashes, and the data behind them.

`recompute` also computes finished tasks anew, and compares the bytes.
"""

import json
import random
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING, read_file, sha256
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import SECRET
from dpmf_cli.datasets import Folders, loading, open_cached
from dpmf_cli.datasets.canonical import checksum
from dpmf_cli.datasets.soundness import Soundness, add_cache, add_source
from dpmf_cli.experiment.results import manifest as manifests
from dpmf_cli.experiment.results.manifest import MANIFEST, Ran, cpu, what_ran
from dpmf_cli.experiment.results.store import DamagedError, Store, content, read_result
from dpmf_cli.experiment.results.task import Task, tasks_of
from dpmf_cli.experiment.running.batches import execute
from dpmf_cli.experiment.running.cutting import cut_ratings

_COMPUTE = "`dpmf run` its config: the task is computed again; if it is of no config, delete it"

AGREE = 1e-6
"""Largest difference of an RMSE between kinds of processors: the width of their SIMD changes how sums are rounded."""


@dataclass(frozen=True, eq=False)
class RanExperiment:
    """What was run, its manifest, and the folders of its results, its data and its parsed ratings."""

    ran: Ran
    manifest: dict[str, Any]
    folders: Folders


@dataclass
class Verified:
    """The findings about the parts of results.

    experiments   the experiments whose manifest this version understands
    grids         the ε of each sound task file
    """

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


def verify_results(found: Verified, root: Path, folders: Folders) -> None:
    """Verifies all task files and experiments of a folder of results, and all parsed ratings in the cache. Raises
    DpmfError where there are no results."""
    paths, manifests = sorted(root.glob("tasks/*/*/*.json")), sorted(root.glob(f"*/{MANIFEST}"))
    if not paths and not manifests:
        fix = "name a folder of results, the folder of an experiment, or a config"
        raise DpmfError(f"{root}: no results here; {fix}")
    for path in paths:
        _add_task(found, path, root)
    add_cache(found.cache, folders.cache)
    _add_experiments(found, [path.parent for path in manifests], folders, None)


def verify_experiment(found: Verified, folder: Path, folders: Folders, base: Path | None = None) -> None:
    """Verifies one experiment, its task files and its ratings; `base` is the folder of its config, if known. Raises
    DpmfError where the experiment was never run."""
    if not (folder / MANIFEST).exists():
        raise DpmfError(f"{folder}: no {MANIFEST}, so no results of an experiment; run its config first")
    try:
        ran = what_ran(folder, lambda _: None)
    except DpmfError:
        pass  # reported below, by `_add_experiments`
    else:
        for path in sorted({path for _, paths in _paths_of_each(folder.parent, ran) for path in paths}):
            _add_task(found, path, folder.parent)
        add_cache(found.cache, folders.cache, ran.data.checksums)
    _add_experiments(found, [folder], folders, base)


def _paths_of_each(results: Path, ran: Ran) -> Iterator[tuple[Task, list[Path]]]:
    for entry in ran.config.entries:
        yield from Store(results).paths_of_each(tasks_of(ran.config, entry, ran.data))


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


def _add_experiments(found: Verified, folders: Sequence[Path], of: Folders, base: Path | None) -> None:
    """Adds experiments, by their folders, and their data files, each once."""
    seen = []
    for folder in folders:
        experiment = _add_experiment(found, folder, of, base)
        if experiment is None:
            continue
        found.experiments.append(experiment)
        data = experiment.ran.config.dataset, experiment.folders.base, experiment.ran.data.checksum
        if data not in seen:
            seen.append(data)
            add_source(found.data, data[0], experiment.folders, data[2], experiment.ran.config.split)


def _add_experiment(found: Verified, folder: Path, of: Folders, base: Path | None) -> RanExperiment | None:
    try:
        manifest = manifests.read_manifest(folder)
    except DpmfError as error:
        found.manifests.add(folder / MANIFEST, str(error).partition(": ")[2], "run its config again")
        return None
    command = manifest.get("command")
    again = f"run the same command again: {command}" if command else "run its config again"
    _add_files(found.files, folder, manifest, again)
    try:
        ran = what_ran(folder, found.manifests.notes.append)
    except DpmfError as error:
        found.manifests.sound += 1
        found.manifests.notes.append(f"the tasks of an experiment were not counted: {error}")
        return None
    left = -len(manifest.get("failures", ()))
    for task, paths in _paths_of_each(folder.parent, ran):
        left += not {each for path in paths for each in found.grids.get(path, ())}.issuperset(task.epsilons)
    wrong = f"{left} of its tasks have no sound result" if left > 0 else None
    if wrong and not manifests.has_ended(manifest):
        found.manifests.notes.append(f"{folder}: its run has not ended; {wrong}; {again}")
        wrong = None
    found.manifests.add(folder / MANIFEST, wrong, again)
    if base is None:  # as far as the command tells
        try:
            words = shlex.split(str(command or ""))
        except ValueError:
            words = []
        base = Path(words[2]).parent if words[:2] == ["dpmf", "run"] and len(words) > 2 else Path()
    return RanExperiment(ran, manifest, replace(of, base=base, results=folder.parent))


def _add_files(files: Soundness, folder: Path, manifest: dict[str, Any], again: str) -> None:
    hashes = manifest.get("files", {})
    for name, digest in sorted(hashes.items()):
        path, wrong = folder / name, None
        try:
            if digest is None:
                wrong = "interrupted while it was written"
            elif sha256(read_file(path)) != digest:
                wrong = "damaged: its content does not fit its hash"
        except FileNotFoundError:
            wrong = "missing"
        except OSError as error:
            wrong = f"cannot be read: {error.strerror or error}"
        drawn = name.endswith((".html", ".pdf"))
        files.add(path, wrong, "run `dpmf report` or `dpmf plot` again" if drawn else again)
    covered = {MANIFEST, *hashes}
    there = [path.name for path in sorted(folder.iterdir()) if path.is_file()]
    others = [name for name in there if name not in covered and not name.startswith(WRITING)]
    if others:
        older = ", made by an older version: run its config again to cover tables"
        files.notes.append(
            f"{folder}: no hashes of {', '.join(others)}{'' if 'files' in manifest else older}"
        )


def recompute(verified: Verified, number: int, seed: int) -> Soundness:
    """Whether `number` of the sound task files, drawn by `seed` and computed anew, have the same bytes. Stores
    nothing."""
    finished = {
        path: (path, replace(task, epsilons=verified.grids[path]), experiment)  # the grid in the file
        for experiment in verified.experiments
        for task, paths in _paths_of_each(experiment.folders.results, experiment.ran)
        for path in paths
        if path in verified.grids
    }
    found = Soundness("computed anew")
    known = [finished[path] for path in sorted(finished) if finished[path][1].seed != SECRET]
    if len(known) < len(finished):
        found.notes.append(
            f"{len(finished) - len(known)} tasks have a secret seed, which was not kept: they cannot be computed anew"
        )
    ratings = lru_cache(maxsize=2)(_ratings)
    for path, task, experiment in random.Random(seed).sample(known, min(number, len(known))):
        data, cache = experiment.ran.data, experiment.folders.cache
        try:
            whole = ratings(data.checksum, experiment)
            test = open_cached(data.test_checksum, cache) if data.test_checksum else None
        except DpmfError as error:
            found.notes.append(f"{path}: not computed anew, because its ratings are not available: {error}")
            continue
        try:
            split = cut_ratings(whole, task.cut, dataset=task.data.stream, seed=task.seed, test=test)
            with threadpool_limits(1):
                result = execute([task], *split)[0]
            # Without measurements that the version of dpmf which stored the file did not make.
            then = json.loads(read_file(path))
            others = {key: errors for key, errors in result.others.items() if key in then}
            now = content(task, replace(result, others=others))
        except Exception as error:
            found.add(
                path, f"computing it anew fails: {type(error).__name__}: {error}", "see docs/operations.md"
            )
            continue
        _compare(found, path, now, experiment)
    return found


def _ratings(name: str, experiment: RanExperiment) -> Ratings:
    """The ratings with the checksum `name`, from the cache or the source. Raises DpmfError if neither matches."""
    try:
        kept = open_cached(name, experiment.folders.cache)
        if checksum(kept) == name:
            return kept
    except DpmfError:
        pass  # not in the cache, or damaged
    config = experiment.ran.config
    parsed = loading.parsed(config.dataset, experiment.folders, config.split).ratings
    if checksum(parsed) != name:
        raise DpmfError(f"the ratings changed since (checksum {name[:12]}… then)")
    return parsed


def _compare(found: Soundness, path: Path, now: bytes, experiment: RanExperiment) -> None:
    then = read_file(path)
    if now == then:
        found.sound += 1
        return
    ours, theirs = (json.loads(each) for each in (now, then))
    pairs = zip(map(float, ours["rmse"]), map(float, theirs["rmse"]), strict=True)
    largest = max(0.0 if a == b else abs(a - b) for a, b in pairs)
    what = f"when computed anew, its bytes differ; RMSEs differ by at most {largest:.3g}"
    manifest = experiment.manifest
    made_on = {manifest.get("cpu", ""), *manifest.get("last_run", {}).get("cpus", ())} - {""}
    if made_on and cpu() not in made_on:
        what += f"; made on {' or '.join(sorted(made_on))}, this is {cpu()}"
        if largest <= AGREE and ours["epsilons"] == theirs["epsilons"]:
            found.sound += 1
            found.notes.append(f"{path}: {what}; differences up to {AGREE:g} are rounding")
            return
    for name, old in manifest.get("versions", {}).items():
        if (current := manifests.versions().get(name)) != old:
            what += f"; {name} {old} then, {current} now"
    found.add(path, what, "move it away and run its config again, and compare; see docs/operations.md")

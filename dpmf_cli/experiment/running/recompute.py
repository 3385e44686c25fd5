"""Computes finished tasks anew and compares the bytes with the stored ones. Stores nothing."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import read_file
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import SECRET
from dpmf_cli.datasets import loading, open_cached
from dpmf_cli.datasets.canonical import checksum
from dpmf_cli.datasets.soundness import Soundness
from dpmf_cli.experiment.results import provenance
from dpmf_cli.experiment.results.store import content
from dpmf_cli.experiment.results.task import Task, TaskResult
from dpmf_cli.experiment.results.verify import RanExperiment
from dpmf_cli.experiment.running.batches import execute
from dpmf_cli.experiment.running.cutting import cut_ratings

AGREE = 1e-6
"""Largest difference of an RMSE between kinds of processors: the width of their SIMD changes how sums are rounded."""


def recompute(finished: Sequence[tuple[Path, Task, RanExperiment]], number: int, seed: int) -> Soundness:
    """Computes `number` of the finished tasks, drawn by `seed`, anew and compares them with their stored files."""
    found = Soundness("computed anew")
    known = [each for each in finished if each[1].seed != SECRET]
    if len(known) < len(finished):
        found.notes.append(
            f"{len(finished) - len(known)} tasks have a secret seed, which nobody knows: they cannot be computed anew"
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
                now = content(task, _as_of_then(execute([task], *split)[0], path))
        except Exception as error:
            found.add(
                path, f"computing it anew fails: {type(error).__name__}: {error}", "see docs/operations.md"
            )
            continue
        _compare(found, path, now, experiment)
    return found


def _as_of_then(result: TaskResult, path: Path) -> TaskResult:
    """The result without measurements that the version of dpmf which stored the file did not make."""
    then = json.loads(read_file(path))
    return replace(result, others={key: errors for key, errors in result.others.items() if key in then})


def _ratings(name: str, experiment: RanExperiment) -> Ratings:
    """The ratings with the checksum `name`, from the cache or the source. Raises DpmfError if neither matches."""
    try:
        kept = open_cached(name, experiment.folders.cache)
        if checksum(kept) == name:
            return kept
    except DpmfError:
        pass  # not in the cache, or damaged
    parsed = loading.parsed(experiment.ran.config.dataset, experiment.folders).ratings
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
    if made_on and provenance.cpu() not in made_on:
        what += f"; made on {' or '.join(sorted(made_on))}, this is {provenance.cpu()}"
        if largest <= AGREE and ours["epsilons"] == theirs["epsilons"]:
            found.sound += 1
            found.notes.append(f"{path}: {what}; differences up to {AGREE:g} are rounding")
            return
    versions = provenance.versions()
    changed = [
        f"{name} {old} then, {versions.get(name)} now"
        for name, old in manifest.get("versions", {}).items()
        if versions.get(name) != old
    ]
    what = "; ".join([what, *changed])
    found.add(path, what, "move it away and run its config again, and compare; see docs/operations.md")

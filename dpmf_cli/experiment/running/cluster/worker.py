"""Fits and measures a batch on a worker of the cluster, if the worker's versions and ratings are the client's."""

import functools
import os
import pickle
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from threading import Lock

import distributed
from distributed.diagnostics.plugin import WorkerPlugin
from threadpoolctl import threadpool_limits

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets import cache_folder
from dpmf_cli.experiment.results import provenance
from dpmf_cli.experiment.results.task import Outcome, Task
from dpmf_cli.experiment.running.batches import forget_split, run_batch

_CACHE = Lock()
"""Held while ratings are checked or replaced, so that no thread discards ratings that were just delivered."""


class RatingsAbsentError(DpmfError):
    """The worker's cache does not hold the ratings that a task needs, or held damaged ones."""


@functools.lru_cache(maxsize=1)
def fingerprint() -> dict[str, str]:
    """Everything that must be the same here and on a worker; otherwise results could depend on where a task ran."""
    return {
        **provenance.versions(),
        "distributed": metadata.version("distributed"),
        "dpmf's code": provenance.code_digest()[:12],
    }


def execute_batch(batch: bytes, *, expected: Mapping[str, str]) -> list[Outcome]:
    """The outcomes of a pickled batch, computed on a worker for a client with the fingerprint `expected`.

    Raises DpmfError if the worker has other versions, RatingsAbsentError if it lacks the data. Versions are checked
    before the batch is unpickled, because it may not fit the classes of another version.
    """
    _check_versions(expected)
    tasks: tuple[Task, ...] = pickle.loads(batch)
    _check_ratings(tasks)
    _one_thread_each()
    return run_batch(tasks, cache_folder())


class Delivery(WorkerPlugin):
    """Puts ratings into the cache of every worker that is present or joins later, once."""

    def __init__(self, name: str, checksum: str, files: Mapping[str, bytes]) -> None:
        self.name, self._checksum, self._files = name, checksum, files

    def setup(self, worker: distributed.Worker) -> None:
        files, self._files = self._files, {}
        with _CACHE:
            kept.unpack(self._checksum, files, cache_folder())


def _me() -> str:
    return f"worker {distributed.get_worker().address} on {platform.node()}, process {os.getpid()}"


def _check_versions(expected: Mapping[str, str]) -> None:
    ours = fingerprint()
    names = [name for name in {**expected, **ours} if expected.get(name) != ours.get(name)]
    if names:
        differing = ", ".join(f"{name} {ours.get(name)} instead of {expected.get(name)}" for name in names)
        why = "its results could differ from this machine's: install the same versions on the worker"
        raise DpmfError(f"{_me()}: {differing}; {why}")


def _check_ratings(tasks: tuple[Task, ...]) -> None:
    cache = cache_folder()
    for checksum in tasks[0].data.checksums:
        try:
            with _CACHE:
                kept.open_ratings(checksum, cache)
                _verify(checksum, cache)
        except DpmfError as error:
            raise RatingsAbsentError(f"{_me()}: {error}") from None


@functools.cache
def _verify(checksum: str, cache: Path) -> None:
    """Raises DpmfError for damaged ratings, which are then discarded. Reads intact ratings only once."""
    if not kept.intact(checksum, kept.open_ratings(checksum, cache), cache):
        forget_split()
        raise DpmfError(f"the ratings {checksum} in {cache} were damaged")


@functools.lru_cache(maxsize=1)
def _one_thread_each() -> None:
    """Sets BLAS to one thread permanently.

    `run_batch` also sets and resets this. In a worker with several threads, a task that ends must not reset it for
    the other tasks.
    """
    threadpool_limits(1)

"""Groups tasks that share a fit into batches, and executes a batch in the current process."""

import errno
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from dpmf_cli.datasets import DataIdentity, open_cached
from dpmf_cli.errors import DpmfError
from dpmf_cli.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.ratings import Ratings
from dpmf_cli.results import provenance
from dpmf_cli.results.task import Cut, Outcome, Task, TaskResult
from dpmf_cli.running.cutting import cut_ratings
from dpmf_cli.running.execute import execute
from dpmf_cli.streams import Seed, UnaccountedNoiseError

Batch = tuple[Task, ...]
"""One task, or several that share a fit, executed together in one process."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_TRY_AGAIN = "free some space and run the same command again. Finished tasks are kept"


def together(tasks: Iterable[Task]) -> list[Batch]:
    """Groups tasks into batches: those whose algorithms share a fit, up to the lanes of one pass; others alone.

    Batches are ordered by their first task.
    """
    batches: list[list[Task]] = []
    last: dict[tuple[Any, ...], list[Task]] = {}
    for task in tasks:
        shared = task.algorithm.shared_fit
        key = (task.data, task.seed, task.cut, task.run, task.algorithm.algorithm, shared)
        batch = last.get(key, []) if shared else []
        if batch and sum(len(each.epsilons) for each in (*batch, task)) <= MAXIMUM_WIDTH:
            batch.append(task)
        else:
            last[key] = [task]
            batches.append(last[key])
    return [tuple(batch) for batch in batches]


def run_batch(tasks: Batch, cache: Path) -> list[Outcome]:
    """Fits and measures a batch in the current process. Raises DpmfError for what a user has to mend first."""
    begin = time.thread_time()
    results: Sequence[TaskResult | None] = [None] * len(tasks)
    failure = None
    first = tasks[0]
    try:
        with _threads(len(sys.modules)).limit(limits=1):
            train, test = _split(first.data, first.seed, first.cut, cache)
            results = execute(tasks, train, test)
    except DpmfError:
        raise
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{first.algorithm.name}: {error}") from None
    except OSError as error:
        if error.errno in _FULL:
            raise DpmfError(
                f"{error.filename or 'the disk'}: cannot be written: {error.strerror}; {_TRY_AGAIN}"
            ) from None
        failure = traceback.format_exc()
    except MemoryError:
        raise DpmfError(
            f"not enough memory for {first.algorithm.name} on {first.data.key}; use a smaller -j, or see "
            "`dpmf plan`. Finished tasks are kept"
        ) from None
    except Exception:
        failure = traceback.format_exc()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = (time.thread_time() - begin) / len(tasks)
    where = f"{platform.node()}:{os.getpid()}"
    return [
        Outcome(task, result, seconds, where, provenance.cpu(), peak, failure)
        for task, result in zip(tasks, results, strict=True)
    ]


@lru_cache(maxsize=1)
def _threads(modules: int) -> ThreadpoolController:
    """The controller of the threads of the loaded libraries.

    Looking for libraries takes as long as a small fit. More of them can only be loaded if there are more `modules`,
    so the number of modules is the key of the cache.
    """
    return ThreadpoolController()


@lru_cache(maxsize=1)
def _split(data: DataIdentity, seed: Seed, cut: Cut, cache: Path) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings), cached while a process works on tasks of one cut."""
    test = open_cached(data.test_checksum, cache) if data.test_checksum else None
    return cut_ratings(open_cached(data.checksum, cache), cut, dataset=data.stream, seed=seed, test=test)


def forget_split() -> None:
    """Makes the next task open its ratings again, because the cached ones may be damaged."""
    _split.cache_clear()

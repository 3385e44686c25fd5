"""The runner: executes tasks in this process or in several, stores each result as it comes, and tells."""

import errno
import os
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from threadpoolctl import threadpool_limits

from dpmf_cli.datasets import open_cached
from dpmf_cli.errors import DpmfError
from dpmf_cli.interrupts import interrupts_held
from dpmf_cli.plan import Plan
from dpmf_cli.progress import Progress
from dpmf_cli.ratings import Ratings
from dpmf_cli.store import Store
from dpmf_cli.tasks import Cut, Task, cut_ratings, execute

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_TRY_AGAIN = "free some space and run the same command again. Finished tasks are kept"


@dataclass(frozen=True)
class Outcome:
    """How a task ended. `failure` is its traceback, `refusal` the message of a DpmfError: no more tasks."""

    task: Task
    seconds: float
    process: int
    peak_bytes: int
    failure: str | None = None
    refusal: str | None = None


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_plan(plan: Plan, store: Store, cache: Path, jobs: int, progress: Progress) -> list[Outcome]:
    """Executes the tasks that are left, stores their results, and returns how each ended.

    A task that raises is recorded and the others go on. Raises DpmfError where results cannot be kept, and
    KeyboardInterrupt on Ctrl-C: what was finished stays finished either way.
    """
    outcomes = []
    batches = plan.batches
    with progress:
        for outcome in _outcomes(batches, store, cache, min(jobs, len(batches))):
            if outcome.refusal is not None:
                raise DpmfError(outcome.refusal)
            progress.finished(outcome.task.algorithm.name, plan.cost_of(outcome.task))
            outcomes.append(outcome)
    return outcomes


def _outcomes(batches: list[tuple[Task, ...]], store: Store, cache: Path, jobs: int) -> Iterator[Outcome]:
    """Outcomes in the order in which batches of tasks finish."""
    if jobs <= 1:
        for batch in batches:
            yield from _run_batch(batch, store.root, cache)
        return
    executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_become_worker)
    try:
        with interrupts_held():
            futures = [executor.submit(_run_batch, batch, store.root, cache) for batch in batches]
        for future in as_completed(futures):
            yield from future.result()
    except BrokenProcessPool:
        raise DpmfError(
            "a worker process was killed (out of memory, or by hand); finished tasks are kept: run the same "
            "command again, with a smaller -j if memory was short"
        ) from None
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in active_children():
            worker.terminate()


def _become_worker() -> None:
    """Leaves Ctrl-C to the parent, which ends its workers itself, and ends with the parent if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """Waits until the process of that sentinel has ended, then ends this one. What it had not stored is lost."""
    wait([sentinel])
    os._exit(1)


@lru_cache(maxsize=1)
def _split(dataset: str, checksum: str, seed: int, cut: Cut, cache: Path) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings), kept while a process works on tasks of one cut."""
    test = open_cached(cut.test_checksum, cache) if cut.test_checksum else None
    return cut_ratings(open_cached(checksum, cache), cut, dataset=dataset, seed=seed, test=test)


def _run_batch(tasks: tuple[Task, ...], results: Path, cache: Path) -> list[Outcome]:
    """One task, or several that share a fit, in whichever process: fit, measure, store."""
    begin = time.perf_counter()
    failure = refusal = None
    try:
        with threadpool_limits(1):
            first = tasks[0]
            train, test = _split(first.dataset, first.checksum, first.seed, first.cut, cache)
            found = execute(tasks, train, test)
        for task, result in zip(tasks, found, strict=True):
            Store(results).write(task, result)
    except DpmfError as error:
        refusal = str(error)
    except OSError as error:
        if error.errno in _FULL:
            refusal = f"{error.filename or 'the disk'}: cannot be written: {error.strerror}; {_TRY_AGAIN}"
        else:
            failure = traceback.format_exc()
    except Exception:
        failure = traceback.format_exc()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = (time.perf_counter() - begin) / len(tasks)
    return [Outcome(task, seconds, os.getpid(), peak, failure, refusal) for task in tasks]

"""The runner: has tasks executed here or elsewhere, stores each result as it comes, and tells."""

import errno
import os
import platform
import resource
import signal
import time
import traceback
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Protocol

from threadpoolctl import threadpool_limits

from dpmf_cli.datasets import open_cached
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings
from dpmf_cli.results import provenance
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Cut, Task, TaskResult, cut_ratings, execute
from dpmf_cli.running.interrupts import interrupts_held
from dpmf_cli.running.plan import Plan
from dpmf_cli.terminal import Progress

Batch = tuple[Task, ...]
"""One task, or several that share a fit: what is executed in one place."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_TRY_AGAIN = "free some space and run the same command again. Finished tasks are kept"


@dataclass(frozen=True)
class Outcome:
    """How a task ended: with a result, or with a `failure`, its traceback.

    process, cpu   host and process id, and processor; "" where the process did not live to tell
    """

    task: Task
    result: TaskResult | None
    seconds: float
    process: str
    cpu: str
    peak_bytes: int
    failure: str | None = None


class Executor(Protocol):
    """Where batches of tasks are executed."""

    @property
    def processes(self) -> int:
        """How many processes execute tasks, as far as is known."""
        ...

    def outcomes(self, batches: Sequence[Batch], cache: Path) -> Generator[list[Outcome]]:
        """The outcomes of each batch, in the order in which they end; the data are in `cache` on this machine.

        Raises DpmfError for what a user can mend. Whoever stops iterating stops what is not finished.
        """
        ...


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_plan(plan: Plan, store: Store, cache: Path, executor: Executor, progress: Progress) -> list[Outcome]:
    """Has the tasks that are left executed, stores their results, and returns how each ended.

    A task that raises is recorded and the others go on. Raises DpmfError where results cannot be kept, and
    KeyboardInterrupt on Ctrl-C: what was finished stays finished either way.
    """
    ended: list[Outcome] = []
    batches = plan.batches
    if not batches:
        return ended
    with progress, closing(executor.outcomes(batches, cache)) as found:
        for outcomes in found:
            for outcome in outcomes:
                if outcome.result is not None:
                    store.write(outcome.task, outcome.result)
                progress.finished(outcome.task.algorithm.name, plan.cost_of(outcome.task))
            # Results are in the store now: a long run need not hold them.
            ended += (replace(outcome, result=None) for outcome in outcomes)
    return ended


@dataclass(frozen=True)
class LocalProcesses:
    """Executes in this process (`processes` = 1) or in several of this machine."""

    processes: int

    def outcomes(self, batches: Sequence[Batch], cache: Path) -> Generator[list[Outcome]]:
        jobs = min(self.processes, len(batches))
        if jobs <= 1:
            for batch in batches:
                yield run_batch(batch, cache)
            return
        with interrupts_held():  # its queues start a process, too
            executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_become_worker)
        try:
            with interrupts_held():
                futures = [executor.submit(run_batch, batch, cache) for batch in batches]
            for future in as_completed(futures):
                yield future.result()
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


def forget_split() -> None:
    """Has the next task open its ratings again: those that were kept here may be damaged."""
    _split.cache_clear()


def run_batch(tasks: Batch, cache: Path) -> list[Outcome]:
    """Fits and measures a batch, in whichever process. Raises DpmfError for what a user has to mend first."""
    begin = time.perf_counter()
    results: Sequence[TaskResult | None] = [None] * len(tasks)
    failure = None
    first = tasks[0]
    try:
        with threadpool_limits(1):
            train, test = _split(first.dataset, first.checksum, first.seed, first.cut, cache)
            results = execute(tasks, train, test)
    except DpmfError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise DpmfError(
                f"{error.filename or 'the disk'}: cannot be written: {error.strerror}; {_TRY_AGAIN}"
            ) from None
        failure = traceback.format_exc()
    except MemoryError:
        raise DpmfError(
            f"not enough memory for {first.algorithm.name} on {first.dataset}; use a smaller -j, or see `dpmf plan`. "
            "Finished tasks are kept"
        ) from None
    except Exception:
        failure = traceback.format_exc()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = (time.perf_counter() - begin) / len(tasks)
    where = f"{platform.node()}:{os.getpid()}"
    return [
        Outcome(task, result, seconds, where, provenance.cpu(), peak, failure)
        for task, result in zip(tasks, results, strict=True)
    ]

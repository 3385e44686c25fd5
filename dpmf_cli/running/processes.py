"""Executes batches on this machine: in this process, or in several."""

import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import TypeVar

from dpmf_cli.compiled import entries
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.task import Outcome
from dpmf_cli.running.batches import Batch, run_batch
from dpmf_cli.running.interrupts import interrupts_held

A = TypeVar("A")
R = TypeVar("R")


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class LocalProcesses:
    """Executes in this process (`processes` = 1) or in several of this machine."""

    processes: int

    def outcomes(self, batches: Sequence[Batch], cache: Path) -> Generator[list[Outcome]]:
        yield from each_of(partial(run_batch, cache=cache), batches, self.processes)


def each_of(function: Callable[[A], R], items: Sequence[A], processes: int) -> Generator[R]:
    """What a function of a module returns for each item, as it comes: here, or from several processes.

    Raises DpmfError where one of them is killed. Whoever stops iterating stops what is not finished.
    """
    jobs = min(processes, len(items))
    if jobs <= 1:
        for item in items:
            yield function(item)
        return
    entries.folder()  # what is wrong with it is said here, once for all processes
    with interrupts_held():  # its queues start a process, too
        executor = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_become_worker)
    try:
        with interrupts_held():
            futures = [executor.submit(function, item) for item in items]
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

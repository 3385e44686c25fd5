"""Executes batches on this machine: in this process, or in several.

A pipe to each worker, and nothing else. The standard library's pools share named semaphores besides, which stay in
memory when a run is killed, and give a worker more than it works on.
"""

import os
import signal
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

from dpmf_cli.errors import DpmfError
from dpmf_cli.results.task import Outcome
from dpmf_cli.running.batches import Batch, run_batch
from dpmf_cli.running.interrupts import end_with, starting_a_process

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
    return _from_workers(function, iter(items), jobs) if jobs > 1 else (function(item) for item in items)


def _from_workers(function: Callable[[A], R], items: Iterator[A], jobs: int) -> Generator[R]:
    workers: dict[Connection, SpawnProcess] = {}
    try:
        for item in islice(items, jobs):
            connection, process = _start(function)
            workers[connection] = process
            _send(connection, item)
        busy = set(workers)
        while busy:
            ready = wait(busy)
            for connection in [each for each in busy if each in ready]:
                result = _received(connection)
                try:
                    _send(connection, next(items))
                except StopIteration:
                    busy.remove(connection)
                yield result
    finally:
        for process in workers.values():
            process.kill()
            process.join()


def _start(function: Callable[[A], R]) -> tuple[Connection, SpawnProcess]:
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=_work, args=(function, theirs, os.getpid()))
    with starting_a_process():
        process.start()
    theirs.close()  # so that the end of the process is the end of the pipe
    return ours, process


def _work(function: Callable[[A], R], connection: Connection, parent: int) -> None:
    """Answers each item with what the function makes of it, or with what it raises, until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to answer
    end_with(parent)
    with suppress(EOFError, ConnectionError):
        while True:
            item = connection.recv()
            answer: tuple[R | None, Exception | None]
            try:
                answer = function(item), None
            except (DpmfError, MemoryError) as error:
                answer = None, error
            except Exception:
                answer = None, RuntimeError(traceback.format_exc())
            connection.send(answer)


def _send(connection: Connection, item: object) -> None:
    with suppress(ConnectionError):  # what it was killed by is said where its answer is waited for
        connection.send(item)


def _received(connection: Connection) -> Any:
    try:
        result, error = connection.recv()
    except (EOFError, ConnectionError):
        raise DpmfError(
            "a worker process was killed (out of memory, or by hand); finished tasks are kept: run the same "
            "command again, with a smaller -j if memory was short"
        ) from None
    if error is not None:
        raise error
    return result

"""A function executed for many items in several processes, and batches of tasks shared by runs of the same results.

A run claims a task by a lock on one byte of `tasks/claims`, at a place that the task's name determines. The lock ends
with the process that holds it, however the process ends, and the file stays empty. Where a file system has no locks,
each run computes all of its tasks, and all runs write the same bytes.

Each worker process has a pipe to its parent, and nothing else. The pools of the standard library also share named
semaphores, which stay in memory when a run is killed, and give a worker more items than it is working on.
"""

import fcntl
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from subprocess import DEVNULL, Popen
from typing import Any, Self, TypeVar

from dpmf_cli.core import terminal
from dpmf_cli.core.children import python
from dpmf_cli.core.compiled import machine_code
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import lock_name, open_for_locks
from dpmf_cli.experiment.results.store import Store, errors_named
from dpmf_cli.experiment.results.task import Task
from dpmf_cli.experiment.running.batches import Batch

POLL_SECONDS = 0.5
"""Seconds between two looks at whether other runs have finished, or given up, the tasks that this run waits for."""


class Claims:
    """Batches, each claimed when the iterator returns it. Leaving this context manager gives up all claims.

    The iterator returns None while other runs work on all remaining batches: ask again after `POLL_SECONDS`.

    elsewhere  called with each task that another run has finished in the meantime
    """

    def __init__(self, store: Store, batches: Sequence[Batch], elsewhere: Callable[[Task], None]) -> None:
        self._store, self._left, self._elsewhere = store, deque(batches), elsewhere
        self._waited, self._file = False, -1

    def __iter__(self) -> Iterator[Batch | None]:
        while self._left:
            for _ in range(len(self._left)):
                batch = self._left.popleft()
                if not self._claimed(batch):
                    self._left.append(batch)
                    continue
                # Another run may have finished some of its tasks since the plan was made.
                known = self._store
                done = [task for task in batch if known.path(task).exists() and not known.missing(task)]
                self.release(done)
                for task in done:
                    self._elsewhere(task)
                if unfinished := tuple(task for task in batch if task not in done):
                    yield unfinished
            if self._left:
                if not self._waited:
                    self._waited = True
                    left = sum(map(len, self._left))
                    terminal.say(f"another run computes the {left} tasks that are left: waiting for that run")
                yield None

    def release(self, tasks: Iterable[Task]) -> None:
        """Gives up the claims on tasks that are done or have failed."""
        for task in tasks:
            lock_name(self._file, self._name(task), fcntl.LOCK_UN)

    def _claimed(self, batch: Batch) -> bool:
        for number, task in enumerate(batch):
            if not lock_name(self._file, self._name(task), fcntl.LOCK_EX | fcntl.LOCK_NB):
                self.release(batch[:number])
                return False
        return True

    def _name(self, task: Task) -> bytes:
        return bytes(self._store.path(task).relative_to(self._store.root))

    def __enter__(self) -> Self:
        path = self._store.root / "tasks" / "claims"
        with errors_named(path):
            self._file = open_for_locks(path)
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)


A = TypeVar("A")
R = TypeVar("R")
_END: Any = object()
_WORKER = "from dpmf_cli.experiment.running.processes import work; work(int(sys.argv[1]))"


APART = ContextVar("APART", default=False)
"""Whether a single process is another one, too, so that an interrupt of this process need not wait for a kernel."""


def each_of(function: Callable[[A], R], items: Iterable[A | None], processes: int) -> Generator[R]:
    """What a module's function returns for each item, as results come: from this process, or from several.

    Raises DpmfError if a worker process is killed. When the caller stops iterating, unfinished items are stopped.

    items   an item None means that no item is available now, but one may be soon
    """
    if processes > 1 or APART.get():
        machine_code.folder()  # reports here, once for all processes, what is wrong with the folder
        yield from _from_workers(function, iter(items), processes)
        return
    for item in items:
        if item is None:
            time.sleep(POLL_SECONDS)
        else:
            yield function(item)


def _from_workers(function: Callable[[A], R], items: Iterator[A | None], processes: int) -> Generator[R]:
    workers: dict[Connection, Popen[bytes]] = {}
    busy: set[Connection] = set()
    results: list[R] = []
    more = True
    try:
        while True:
            while more and len(busy) < processes:
                item = next(items, _END)
                if item is None:
                    break
                if item is _END:
                    more = False
                    continue
                connection = next((each for each in workers if each not in busy), None)
                if connection is None:
                    connection, process = _start(function)
                    workers[connection] = process
                busy.add(connection)
                _send(connection, item)
            yield from results  # after the workers have new items, so that they need not wait for this
            if not busy and not more:
                return
            ready = wait(busy, POLL_SECONDS if more and len(busy) < processes else None)
            answered = [connection for connection in busy if connection in ready]
            busy.difference_update(answered)
            results, failure = [], None
            for connection in answered:
                try:
                    results.append(_received(connection))
                except Exception as error:
                    failure = error
            if failure is not None:
                yield from results
                raise failure
    finally:
        for process in workers.values():
            process.kill()
            process.wait()


def _start(function: Callable[[A], R]) -> tuple[Connection, Popen[bytes]]:
    try:
        ours, theirs = Pipe()
        process = Popen(python(_WORKER, theirs.fileno()), stdin=DEVNULL, pass_fds=[theirs.fileno()])
    except OSError as error:
        raise DpmfError(f"no process can be started: {error.strerror or error}; try a smaller -j") from None
    theirs.close()  # so that the pipe ends when the process ends
    _send(ours, function)
    return ours, process


def work(descriptor: int) -> None:
    """Answers each item that comes through a pipe, after a function, with what the function returns or raises."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    terminal.guard()
    connection = Connection(descriptor)
    with suppress(EOFError, ConnectionError):
        function: Callable[[Any], Any] = connection.recv()
        while True:
            item = connection.recv()
            answer: tuple[Any, Exception | None]
            try:
                answer = function(item), None
            except (DpmfError, MemoryError) as error:
                answer = None, error
            except Exception:
                answer = None, RuntimeError(traceback.format_exc())
            connection.send(answer)


def _send(connection: Connection, item: object) -> None:
    with suppress(ConnectionError):  # a killed worker is reported by `_received`
        connection.send(item)


def _received(connection: Connection) -> Any:
    try:
        result, error = connection.recv()
    except (EOFError, ConnectionError):
        again = "run the same command again, with a smaller -j if memory was short"
        why = "a worker process was killed (out of memory, or by hand)"
        raise DpmfError(f"{why}; finished tasks are kept: {again}") from None
    if error is not None:
        raise error
    return result

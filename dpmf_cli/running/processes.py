"""Executes batches on this machine: in this process, or in several.

Each worker process has a pipe to its parent, and nothing else. The pools of the standard library also share named
semaphores, which stay in memory when a run is killed. They also give a worker more items than it is working on.
"""

import signal
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any, TypeVar

from dpmf_cli import escapes
from dpmf_cli.children import python
from dpmf_cli.compiled import entries
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.task import Outcome
from dpmf_cli.running.batches import run_batch
from dpmf_cli.running.claims import POLL_SECONDS, Claims

A = TypeVar("A")
R = TypeVar("R")
_END: Any = object()
_WORKER = "from dpmf_cli.running.processes import work; work(int(sys.argv[1]))"


@dataclass(frozen=True)
class LocalProcesses:
    """Executes batches in this process (`processes` = 1) or in several processes on this machine."""

    processes: int

    def outcomes(self, batches: Claims, cache: Path) -> Generator[list[Outcome]]:
        yield from each_of(partial(run_batch, cache=cache), batches, min(self.processes, len(batches)))


def each_of(function: Callable[[A], R], items: Iterable[A | None], processes: int) -> Generator[R]:
    """What a module's function returns for each item, as results come: from this process, or from several.

    Raises DpmfError if a worker process is killed. When the caller stops iterating, unfinished items are stopped.

    items   an item None means that no item is available now, but one may be soon
    """
    if processes > 1:
        entries.folder()  # reports here, once for all processes, what is wrong with the folder
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
    """Answers each item that comes through a pipe with what a function returns or raises, until the parent ends.

    The first message is the function.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    escapes.guard()
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
        raise DpmfError(
            "a worker process was killed (out of memory, or by hand); finished tasks are kept: run the same "
            "command again, with a smaller -j if memory was short"
        ) from None
    if error is not None:
        raise error
    return result

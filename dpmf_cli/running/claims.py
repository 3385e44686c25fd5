"""Shares batches between runs that work on the same results at the same time: one run computes each task.

A run claims a task by a lock on one byte of `tasks/claims`, at a place that the task's name determines. The lock
ends with the process that holds it, however the process ends. The file stays empty. Where a file system has no locks,
each run computes all of its tasks, and all runs write the same bytes.
"""

import fcntl
import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from dpmf_cli.files import open_for_locks
from dpmf_cli.results.store import Store, errors_named
from dpmf_cli.results.task import Task
from dpmf_cli.running.batches import Batch

POLL_SECONDS = 0.5
"""Seconds between two looks at whether other runs have finished, or given up, the tasks that this run waits for."""

ROUND = 2000
"""Largest number of batches given to a cluster at a time. For each new lock the system searches all locks of the
file."""


class Claims:
    """Batches, each claimed when the iterator returns it. Leaving this context manager gives up all claims.

    The iterator returns None while other runs work on all remaining batches: ask again after `POLL_SECONDS`.

    elsewhere  called with each task that another run has finished in the meantime
    waiting    called once, with the number of remaining tasks, when all of them are claimed by other runs
    """

    def __init__(
        self,
        store: Store,
        batches: Sequence[Batch],
        elsewhere: Callable[[Task], None],
        waiting: Callable[[int], None],
    ) -> None:
        self._store, self._left = store, deque(batches)
        self._elsewhere, self._waiting = elsewhere, waiting
        self._waited = False
        self._file = -1

    def __len__(self) -> int:
        return len(self._left)

    def __iter__(self) -> Iterator[Batch | None]:
        while self._left:
            for _ in range(len(self._left)):
                batch = self._left.popleft()
                if not self._claimed(batch):
                    self._left.append(batch)
                    continue
                left = self._unfinished(batch)
                if left:
                    yield left
            if self._left:
                if not self._waited:
                    self._waited = True
                    self._waiting(sum(map(len, self._left)))
                yield None

    def release(self, tasks: Iterable[Task]) -> None:
        """Gives up the claims on tasks that are done or have failed."""
        for task in tasks:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._place(task))

    def _claimed(self, batch: Batch) -> bool:
        for number, task in enumerate(batch):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._place(task))
            except (BlockingIOError, PermissionError):
                self.release(batch[:number])
                return False
            except OSError:
                return True  # a file system without locks
        return True

    def _unfinished(self, batch: Batch) -> Batch:
        """The batch without the tasks that another run has finished since the plan was made."""
        done = [task for task in batch if self._store.path(task).exists() and not self._store.missing(task)]
        self.release(done)
        for task in done:
            self._elsewhere(task)
        return tuple(task for task in batch if task not in done)

    def _place(self, task: Task) -> int:
        name = self._store.path(task).relative_to(self._store.root)
        return int.from_bytes(hashlib.sha256(bytes(name)).digest()[:7])

    def __enter__(self) -> Self:
        path = self._store.root / "tasks" / "claims"
        with errors_named(path):
            self._file = open_for_locks(path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def in_rounds(batches: Iterable[Batch | None]) -> Iterator[list[Batch]]:
    """Lists of the batches that can be claimed now, at most `ROUND` each, until no batch is left."""
    some: list[Batch] = []
    for batch in batches:
        if batch is not None:
            some.append(batch)
        elif not some:
            time.sleep(POLL_SECONDS)
        if some and (batch is None or len(some) == ROUND):
            yield some
            some = []
    if some:
        yield some

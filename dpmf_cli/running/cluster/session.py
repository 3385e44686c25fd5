"""One connection to a scheduler: submits batches, returns their outcomes, sends data to workers that lack them."""

import pickle
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from dpmf_cli.datasets import cache as kept
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.task import Outcome
from dpmf_cli.running.batches import Batch
from dpmf_cli.running.cluster import worker

POLL_SECONDS, WATCH_SECONDS = 0.05, 2.0
FETCH_SECONDS = 60.0
TRIES = 3
"""How many times a batch is submitted if workers fail before they execute it."""

LARGEST_DELIVERY = 2_000_000_000
"""Largest number of bytes to send: the serialiser of Dask's messages stops at 2 GiB."""


class ConnectionLostError(Exception):
    """The scheduler is gone, or has forgotten the batches that were submitted to it."""


class Session:
    """Batches on the workers of one scheduler, until all are done or the connection is lost.

    wait   seconds to wait while there is no worker
    say    called with messages for the user
    """

    def __init__(
        self,
        client: Client,
        batches: Mapping[int, Batch],
        cache: Path,
        wait: float,
        say: Callable[[str], None],
    ) -> None:
        self._client, self._batches, self._cache, self._wait, self._say = client, batches, cache, wait, say
        # No other session may have the same keys: results of a lost session may still be on the scheduler.
        self._name = f"dpmf-{uuid.uuid4().hex[:12]}"
        self._running: dict[str, tuple[int, Future[Any]]] = {}
        self._unfetched: dict[str, float] = {}
        self._ended = as_completed(with_results=True, raise_errors=False, loop=client.loop)
        self._tries: Counter[int] = Counter()
        self._delivered: list[str] = []
        self._alone_since: float | None = None
        self.processes = 0

    def outcomes(self) -> Iterator[tuple[int, list[Outcome]]]:
        """The number of each batch that ends, with its outcomes. Raises ConnectionLostError, and DpmfError."""
        self._submit(list(self._batches))
        watched = -WATCH_SECONDS
        try:
            while self._running:
                ended = self._ended.next_batch(block=False)
                for future, found in ended:
                    number, _ = self._running.pop(future.key)
                    outcomes = self._outcomes_of(number, future, found)
                    if outcomes is not None:
                        yield number, outcomes
                if time.monotonic() - watched >= WATCH_SECONDS:
                    watched = time.monotonic()
                    self._watch_scheduler(watched)
                    self._watch_results(watched)
                if not ended:
                    time.sleep(POLL_SECONDS)
        finally:
            if self._client.status == "running":  # else the scheduler is gone, with all that it kept
                for name in self._delivered:
                    with suppress(Exception):
                        self._client.unregister_worker_plugin(name)

    def _submit(self, numbers: list[int]) -> None:
        keys = [f"{self._name}-{number}-{self._tries[number]}" for number in numbers]
        payloads = [pickle.dumps(self._batches[number]) for number in numbers]
        with self._connection():
            futures = self._client.map(
                worker.execute_batch, payloads, key=keys, pure=False, expected=worker.fingerprint()
            )
        self._running.update(zip(keys, zip(numbers, futures, strict=True), strict=True))
        self._ended.update(futures)

    def _outcomes_of(self, number: int, future: Future[Any], found: Any) -> list[Outcome] | None:
        """The outcomes of a batch whose future has ended; None if the batch had to be submitted again."""
        if future.status == "finished":
            outcomes: list[Outcome] = found
            return outcomes
        if future.status != "error":
            raise ConnectionLostError
        error = found[1]
        if isinstance(error, KilledWorker):
            return [_killed_with(task, error) for task in self._batches[number]]
        absent = isinstance(error, worker.RatingsAbsentError)
        self._tries[number] += 1
        if isinstance(error, DpmfError) and not (absent and self._tries[number] < TRIES):
            raise error
        # A task's own exceptions are in its outcome. Any other exception is a fault of the worker, which may pass:
        # for example, two threads that import at the same time can disturb each other.
        if self._tries[number] >= TRIES:
            raise _unfit(error)
        if absent:
            self._deliver(self._batches[number])
        self._submit([number])
        return None

    def _deliver(self, batch: Batch) -> None:
        """Sends the ratings of a batch to all present and future workers, once in a session."""
        for checksum in batch[0].data.checksums:
            name = f"{self._name}-{checksum}"
            if name in self._delivered:
                continue
            files = kept.packed(checksum, self._cache)
            size = sum(map(len, files.values()))
            if size > LARGEST_DELIVERY:
                raise DpmfError(
                    f"a worker lacks the ratings, and {size / 1e9:.1f} GB are too much to send: set $DPMF_CACHE, "
                    "here and for the workers, to a folder that all machines share"
                )
            self._say(f"a worker lacks the ratings: sending {size / 1e6:.1f} MB to each worker, once")
            self._delivered.append(name)
            with self._connection():
                try:
                    self._client.register_plugin(worker.Delivery(name, checksum, files))
                except (OSError, DpmfError):
                    raise
                except Exception as error:
                    raise _unfit(error) from None

    def _watch_results(self, now: float) -> None:
        """Gives up the session if a finished result does not arrive: Dask forgets results that it failed to fetch."""
        done = (key for key, (_, future) in self._running.items() if future.done())
        self._unfetched = {key: self._unfetched.get(key, now) for key in done}
        if any(now - since >= FETCH_SECONDS for since in self._unfetched.values()):
            raise ConnectionLostError

    def _watch_scheduler(self, now: float) -> None:
        """Notices a lost scheduler, and reports that there is no worker. Raises DpmfError if none comes in time."""
        with self._connection():
            present = sum(self._client.nthreads().values())
        self.processes = max(self.processes, present)
        if present:
            self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since = now
            self._say(f"the scheduler has no workers: waiting up to {self._wait:.0f} s for one")
        if now - self._alone_since >= self._wait:
            raise DpmfError(
                f"no worker came within {self._wait:.0f} s; start some (`dask worker` with the scheduler's address), "
                "or wait longer with --wait"
            )

    @contextmanager
    def _connection(self) -> Generator[None]:
        """Turns errors that arise because the scheduler does not answer into ConnectionLostError."""
        if self._client.status != "running":
            raise ConnectionLostError
        try:
            yield
        except OSError:  # includes a closed connection and a timeout
            raise ConnectionLostError from None


def _killed_with(task: Any, error: KilledWorker) -> Outcome:
    failure = f"{error}\n\nIts workers were killed each time, perhaps out of memory; see their logs."
    return Outcome(task, None, 0.0, "", "", 0, failure)


def _unfit(error: Exception) -> DpmfError:
    return DpmfError(
        f"a worker cannot run dpmf's tasks ({type(error).__name__}: {error}); install the same dpmf, with the extra "
        "`cluster`, for every worker"
    )

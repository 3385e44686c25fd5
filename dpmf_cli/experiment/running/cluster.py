"""Executes batches on the workers of a Dask cluster, whose scheduler may be lost and come back.

`execute_batch` and `Delivery` run on a worker; a `Session` is one connection to the scheduler. Everything here needs
the extra `dpmf[cluster]`.
"""

import asyncio
import functools
import hashlib
import logging
import os
import pickle
import platform
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from threading import Lock
from typing import Any

from distributed import Client, Future, KilledWorker, Security, Worker, as_completed, get_worker
from distributed.core import rpc
from distributed.diagnostics.plugin import WorkerPlugin
from threadpoolctl import threadpool_limits

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import PACKAGE
from dpmf_cli.datasets import cache as kept, cache_folder
from dpmf_cli.experiment.results.manifest import cpu, versions
from dpmf_cli.experiment.results.task import Outcome, Task
from dpmf_cli.experiment.running.batches import Batch, opened_split, run_batch
from dpmf_cli.experiment.running.processes import Claims, in_rounds

_CACHE = Lock()
"""Held while ratings are checked or replaced, so that no thread discards ratings that were just delivered."""

_limit_threads = functools.cache(threadpool_limits)
"""Limits the threads of BLAS permanently. `run_batch` also sets and resets them. In a worker with several threads, a
task that ends must not reset them for the other tasks."""


class RatingsAbsentError(DpmfError):
    """The worker's cache does not hold the ratings that a task needs, or held damaged ones."""


@functools.lru_cache(maxsize=1)
def fingerprint() -> dict[str, str]:
    """Everything that must be the same here and on a worker; otherwise results could depend on where a task ran."""
    root, code = PACKAGE.resolve(), hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        code.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return {
        **versions(),
        "distributed": metadata.version("distributed"),
        "dpmf's code": code.hexdigest()[:12],
    }


def execute_batch(batch: bytes, *, expected: Mapping[str, str]) -> list[Outcome]:
    """The outcomes of a pickled batch, computed on a worker for a client with the fingerprint `expected`.

    Raises DpmfError if the worker has other versions, RatingsAbsentError if it lacks the data. Versions are checked
    before the batch is unpickled, because it may not fit the classes of another version.
    """
    me = f"worker {get_worker().address} on {platform.node()}, process {os.getpid()}"
    ours = fingerprint()
    names = [name for name in {**expected, **ours} if expected.get(name) != ours.get(name)]
    if names:
        differing = ", ".join(f"{name} {ours.get(name)} instead of {expected.get(name)}" for name in names)
        why = "its results could differ from this machine's: install the same versions on the worker"
        raise DpmfError(f"{me}: {differing}; {why}")
    tasks: tuple[Task, ...] = pickle.loads(batch)
    cache = cache_folder()
    for checksum in tasks[0].data.checksums:
        try:
            with _CACHE:
                kept.open_ratings(checksum, cache)
                _verify(checksum, cache)
        except DpmfError as error:
            raise RatingsAbsentError(f"{me}: {error}") from None
    _limit_threads(1)
    return run_batch(tasks, cache)


class Delivery(WorkerPlugin):
    """Puts ratings into the cache of every worker that is present or joins later, once."""

    def __init__(self, name: str, checksum: str, content: bytes) -> None:
        self.name, self._checksum, self._content = name, checksum, content

    def setup(self, worker: Worker) -> None:
        content, self._content = self._content, b""
        with _CACHE:
            kept.unpack(self._checksum, content, cache_folder())


@functools.cache
def _verify(checksum: str, cache: Path) -> None:
    """Raises DpmfError for damaged ratings, which are then discarded. Reads intact ratings only once."""
    if not kept.intact(checksum, kept.open_ratings(checksum, cache), cache):
        opened_split.cache_clear()
        raise DpmfError(f"the ratings {checksum} in {cache} were damaged")


POLL_SECONDS, WATCH_SECONDS = 0.05, 2.0
FETCH_SECONDS = 60.0
TRIES = 3
"""How many times a batch is submitted if workers fail before they execute it."""

LARGEST_DELIVERY = 2_000_000_000
"""Largest number of bytes to send: the serialiser of Dask's messages stops at 2 GiB."""


class ConnectionLostError(Exception):
    """The scheduler is gone, or has forgotten the batches that were submitted to it."""


class Session:
    """Batches on the workers of one scheduler, until all are done or the connection is lost."""

    def __init__(
        self, of: "ClusterExecutor", client: Client, batches: Mapping[int, Batch], cache: Path
    ) -> None:
        self._of, self._client, self._batches, self._cache = of, client, batches, cache
        # No other session may have the same keys: results of a lost session may still be on the scheduler.
        self._name = f"dpmf-{uuid.uuid4().hex[:12]}"
        self._running: dict[str, tuple[int, Future[Any]]] = {}
        self._unfetched: dict[str, float] = {}
        self._ended = as_completed(with_results=True, raise_errors=False, loop=client.loop)
        self._tries: Counter[int] = Counter()
        self._delivered: list[str] = []
        self._alone_since: float | None = None

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
            futures = self._client.map(execute_batch, payloads, key=keys, pure=False, expected=fingerprint())
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
            why = f"{error}\n\nIts workers were killed each time, perhaps out of memory; see their logs."
            return [Outcome(task, None, 0.0, "", "", 0, why) for task in self._batches[number]]
        absent = isinstance(error, RatingsAbsentError)
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
            content = kept.packed(checksum, self._cache)
            if (size := len(content)) > LARGEST_DELIVERY:
                fix = "set $DPMF_CACHE, here and for the workers, to a folder that all machines share"
                much = f"{size / 1e9:.1f} GB are too much to send"
                raise DpmfError(f"a worker lacks the ratings, and {much}: {fix}")
            self._of.say(f"a worker lacks the ratings: sending {size / 1e6:.1f} MB to each worker, once")
            self._delivered.append(name)
            with self._connection():
                try:
                    self._client.register_plugin(Delivery(name, checksum, content))
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
        self._of.processes = max(self._of.processes, present)
        if present:
            self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since = now
            self._of.say(f"the scheduler has no workers: waiting up to {self._of.wait:.0f} s for one")
        if now - self._alone_since >= self._of.wait:
            fix = "start some (`dask worker` with the scheduler's address), or wait longer with --wait"
            raise DpmfError(f"no worker came within {self._of.wait:.0f} s; {fix}")

    @contextmanager
    def _connection(self) -> Generator[None]:
        """Turns errors that arise because the scheduler does not answer into ConnectionLostError."""
        if self._client.status != "running":
            raise ConnectionLostError
        try:
            yield
        except OSError:  # includes a closed connection and a timeout
            raise ConnectionLostError from None


def _unfit(error: Exception) -> DpmfError:
    return DpmfError(
        f"a worker cannot run dpmf's tasks ({type(error).__name__}: {error}); install the same dpmf, with the extra "
        "`cluster`, for every worker"
    )


CONNECT_SECONDS, CLOSE_SECONDS = 10.0, 5.0
FRUITLESS = 5
"""Largest number of sessions in a row that may be lost before any batch has ended."""
KEPT = "finished tasks are kept: run the same command again to go on, with or without --scheduler"


class ClusterExecutor:
    """The workers of the scheduler at `address`; each batch is one Dask task.

    If a worker dies, the scheduler gives its batches to other workers. If the scheduler is lost, batches that had not
    ended are submitted again once it is back. Both only cost time. A task that raises counts as a failure, as in a
    local run.

    wait   seconds to wait for a worker, or for a lost scheduler
    """

    def __init__(self, address: str, wait: float, say: Callable[[str], None]) -> None:
        self.address, self.wait, self.say, self.processes = address, wait, say, 0
        self._cpus = {cpu(), ""}
        # Dask's client and its event loop log lost connections with tracebacks. This class reports them in one line.
        for name in ("distributed", "distributed.client", "tornado.application", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def outcomes(self, batches: Claims, cache: Path) -> Generator[list[Outcome]]:
        for some in in_rounds(batches):
            yield from self._outcomes(some, cache)

    def _outcomes(self, batches: Sequence[Batch], cache: Path) -> Generator[list[Outcome]]:
        left = dict(enumerate(batches))
        seconds, fruitless = CONNECT_SECONDS, 0
        while left:
            try:
                with self._connected(seconds) as client:
                    for number, outcomes in Session(self, client, left, cache).outcomes():
                        del left[number]
                        fruitless = 0
                        for other in {outcome.cpu for outcome in outcomes} - self._cpus:
                            self._cpus.add(other)
                            which = f"some workers have another processor than this machine ({other})"
                            differ = "their RMSEs may differ from this machine's by rounding, about 1e-6"
                            self.say(f"{which}: {differ}")
                        yield outcomes
            except ConnectionLostError:
                fruitless += 1
                if fruitless > FRUITLESS:
                    often = f"lost {fruitless} times without a task finished in between"
                    raise DpmfError(f"{self.address}: {often}; {KEPT}") from None
                waiting = f"waiting up to {self.wait:.0f} s for it to return"
                again = f"{len(left)} of {len(batches)} fits are then submitted again"
                self.say(f"the connection to {self.address} was lost: {waiting}; {again}")
                seconds = max(self.wait, CONNECT_SECONDS)

    @contextmanager
    def _connected(self, seconds: float) -> Generator[Client]:
        try:
            with ThreadPoolExecutor(1) as pool:  # the current thread may already run an event loop
                pool.submit(asyncio.run, _answers(self.address, seconds)).result()
            client = Client(self.address, timeout=seconds, set_as_default=False, name="dpmf")
        except (OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
            why = f"no scheduler answers there ({str(error) or type(error).__name__})"
            fix = "start one with `dask scheduler` and name it as tcp://host:8786"
            raise DpmfError(f"{self.address}: {why}; {fix}; {KEPT}") from None
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=CLOSE_SECONDS)


async def _answers(address: str, seconds: float) -> None:
    """Returns if a scheduler answers. Raises OSError, or whatever Dask raises if the peer is not a scheduler. Dask's
    client itself waits forever for a peer that never answers, or answers in another protocol."""
    connection = Security().get_connection_args("client")
    async with rpc(address, timeout=seconds, connection_args=connection) as scheduler:
        await asyncio.wait_for(scheduler.identity(), seconds)

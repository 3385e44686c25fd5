"""Executes batches on a Dask cluster, whose scheduler may be lost and come back."""

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed import Client, Security
from distributed.core import rpc

from dpmf_cli.errors import DpmfError
from dpmf_cli.results import provenance
from dpmf_cli.results.task import Outcome
from dpmf_cli.running.batches import Batch
from dpmf_cli.running.claims import Claims, in_rounds
from dpmf_cli.running.cluster.session import ConnectionLostError, Session

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
        self.address, self.wait, self.processes = address, wait, 0
        self._say = say
        self._cpus = {provenance.cpu(), ""}
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
                    session = Session(client, left, cache, self.wait, self._say)
                    for number, outcomes in session.outcomes():
                        del left[number]
                        fruitless = 0
                        self.processes = max(self.processes, session.processes)
                        self._tell_of_processors(outcomes)
                        yield outcomes
            except ConnectionLostError:
                fruitless += 1
                if fruitless > FRUITLESS:
                    raise DpmfError(
                        f"{self.address}: lost {fruitless} times without a task finished in between; {KEPT}"
                    ) from None
                self._say(
                    f"the connection to {self.address} was lost: waiting up to {self.wait:.0f} s for it to return; "
                    f"{len(left)} of {len(batches)} fits are then submitted again"
                )
                seconds = max(self.wait, CONNECT_SECONDS)

    @contextmanager
    def _connected(self, seconds: float) -> Generator[Client]:
        try:
            with ThreadPoolExecutor(
                1
            ) as pool:  # in a notebook, the current thread may already run an event loop
                pool.submit(asyncio.run, _answers(self.address, seconds)).result()
            client = Client(self.address, timeout=seconds, set_as_default=False, name="dpmf")
        except (OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
            why = str(error) or type(error).__name__
            raise DpmfError(
                f"{self.address}: no scheduler answers there ({why}); start one with `dask scheduler` and name it "
                f"as tcp://host:8786; {KEPT}"
            ) from None
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=CLOSE_SECONDS)

    def _tell_of_processors(self, outcomes: list[Outcome]) -> None:
        for cpu in {outcome.cpu for outcome in outcomes} - self._cpus:
            self._cpus.add(cpu)
            self._say(
                f"some workers have another processor than this machine ({cpu}): their RMSEs may differ from "
                "this machine's by rounding, about 1e-6"
            )


async def _answers(address: str, seconds: float) -> None:
    """Returns if a scheduler answers. Raises OSError, or whatever Dask raises if the peer is not a scheduler.

    Dask's client itself waits forever for a peer that never answers, or answers in another protocol.
    """
    connection = Security().get_connection_args("client")
    async with rpc(address, timeout=seconds, connection_args=connection) as scheduler:
        await asyncio.wait_for(scheduler.identity(), seconds)

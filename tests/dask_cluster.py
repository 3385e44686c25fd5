"""A Dask cluster of real processes on loopback, to be disturbed: a scheduler, and workers that are restarted."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from distributed import Client

WORKER = (
    "--no-nanny",
    "--no-dashboard",
    "--memory-limit",
    "0",
    "--death-timeout",
    "60",
    "--host",
    "127.0.0.1",
)
SCHEDULER = ("--host", "127.0.0.1", "--no-dashboard", "--idle-timeout", "5 minutes")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def until(true: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """What `true` returns once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain: {what}"
        time.sleep(0.02)
    return found


class Supervised:
    """A process that is started again whenever it ends, as under Slurm, Kubernetes or systemd."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self._command, self._log, self._environment = command, log, environment
        self._stopping = Event()
        self.process = self._start()
        self._thread = Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )

    def _supervise(self) -> None:
        while not self._stopping.is_set():
            try:
                self.process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            if not self._stopping.is_set():
                self.process = self._start()

    def send(self, number: signal.Signals) -> None:
        """SIGKILLs the process; the supervisor starts it again."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.send(signal.SIGKILL)
        self.process.wait()


def _state(client: Client, key: str) -> tuple[str, int]:
    """What the scheduler knows about a task: its state, and how many workers have died with it."""
    state: tuple[str, int] = client.run_on_scheduler(
        lambda dask_scheduler, key: (
            (task.state, task.suspicious) if (task := dask_scheduler.tasks.get(key)) else ("forgotten", 0)
        ),
        key=key,
    )
    return state


class DaskCluster:
    """A scheduler, with Dask's settings as environment variables, and workers with the names given to `join`. A
    context manager: none of its processes outlives it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self._workers: dict[str, Supervised] = {}
        port = self.address.rpartition(":")[2]
        self._scheduler = self._supervised("scheduler", "scheduler", *SCHEDULER, "--port", port, **settings)

    def _supervised(self, log: str, *arguments: str, **environment: str) -> Supervised:
        command = [sys.executable, "-m", "dask", *arguments]
        return Supervised(command, self._folder / f"{log}.log", {**os.environ, **environment})

    def join(self, name: str, cache: Path, *options: str, threads: int = 1) -> None:
        """Starts a worker with its own $DPMF_CACHE."""
        folder = ("--local-directory", str(self._folder / name))
        options = (self.address, *WORKER, "--nthreads", str(threads), "--name", name, *folder, *options)
        self._workers[name] = self._supervised(name, "worker", *options, DPMF_CACHE=str(cache))

    def leave(self, name: str) -> None:
        self._workers.pop(name).stop()

    @contextmanager
    def client(self) -> Iterator[Client]:
        with Client(self.address, set_as_default=False, timeout=30) as client:
            yield client

    def wait_for_workers(self) -> None:
        with self.client() as client:
            client.wait_for_workers(len(self._workers), timeout=60)

    def kill_worker_mid_task(self, going_on: Callable[[], bool]) -> bool:
        """SIGKILLs a worker in the middle of a task, unless `going_on` ends first; returns whether it did.

        The worker is stopped first, so that the task cannot end in between. The scheduler then confirms that the
        task was lost with its worker.
        """
        with self.client() as client:
            while going_on():
                workers = client.scheduler_info(n_workers=-1)["workers"]
                for worker, stacks in client.call_stack().items():
                    name = workers.get(worker, {}).get("name")
                    if (
                        name in self._workers
                        and stacks
                        and self._kill_within(client, name, next(iter(stacks)))
                    ):
                        return True
                time.sleep(0.02)
        return False

    def _kill_within(self, client: Client, name: str, key: str) -> bool:
        """SIGKILLs a worker if the task of that key has still not ended on it."""
        victim = self._workers[name]
        victim.send(signal.SIGSTOP)
        state, deaths = _state(client, key)
        if state != "processing":
            victim.send(signal.SIGCONT)
            return False
        victim.send(signal.SIGKILL)
        before = (state, deaths)
        until(lambda: _state(client, key) != before, f"the scheduler notices that {name} was killed")
        return _state(client, key)[1] > deaths

    def restart_scheduler(self) -> None:
        """SIGKILLs the scheduler, which forgets all tasks and whose workers end with it."""
        old = self._scheduler.process.pid
        self._scheduler.send(signal.SIGKILL)
        until(lambda: self._scheduler.process.pid != old, "the supervisor restarts the scheduler")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._workers):
            self.leave(name)
        self._scheduler.stop()

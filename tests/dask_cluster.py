"""A Dask cluster of real processes on loopback, to be disturbed: a scheduler, and workers that are restarted."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from distributed import Client

WORKER = [
    "--no-nanny",
    "--no-dashboard",
    "--memory-limit",
    "0",
    "--death-timeout",
    "60",
    "--host",
    "127.0.0.1",
]
SCHEDULER = ("--host", "127.0.0.1", "--no-dashboard", "--idle-timeout", "5 minutes")
LOOP = 'while kill -0 "$PPID"; do "$@" & echo $! > "$0"; wait $!; done'
"""Starts a command again whenever it ends, as Slurm, Kubernetes or systemd do, until the tests end."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
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
    """A process of Dask that is started again whenever it ends."""

    def __init__(self, log: Path, *arguments: str, **environment: str) -> None:
        self._file = log.with_suffix(".pid")
        command = ["sh", "-c", LOOP, str(self._file), sys.executable, "-m", "dask", *arguments]
        with log.open("ab") as said:
            self._loop = subprocess.Popen(
                command, stdout=said, stderr=said, env={**os.environ, **environment}, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return int(until(lambda: self._file.exists() and self._file.read_text().strip(), "a process starts"))

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def stop(self) -> None:
        os.killpg(self._loop.pid, signal.SIGKILL)
        self._loop.wait()


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
        self._folder, port = Path(tempfile.mkdtemp(dir=folder)), str(free_port())
        self.address = f"tcp://127.0.0.1:{port}"
        self._workers: dict[str, Supervised] = {}
        log = self._folder / "scheduler.log"
        self._scheduler = Supervised(log, "scheduler", *SCHEDULER, "--port", port, **settings)

    def join(self, name: str, cache: Path, *options: str, threads: int = 1) -> None:
        """Starts a worker with its own $DPMF_CACHE."""
        own = ("--nthreads", str(threads), "--name", name, "--local-directory", str(self._folder / name))
        log = self._folder / f"{name}.log"
        self._workers[name] = Supervised(
            log, "worker", self.address, *WORKER, *own, *options, DPMF_CACHE=str(cache)
        )

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
        before = state, deaths = _state(client, key)
        if state != "processing":
            victim.send(signal.SIGCONT)
            return False
        victim.send(signal.SIGKILL)
        until(lambda: _state(client, key) != before, f"the scheduler notices that {name} was killed")
        return _state(client, key)[1] > deaths

    def restart_scheduler(self) -> None:
        """SIGKILLs the scheduler, which forgets all tasks and whose workers end with it."""
        old = self._scheduler.pid
        self._scheduler.send(signal.SIGKILL)
        until(lambda: self._scheduler.pid != old, "the scheduler is started again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for each in (*self._workers.values(), self._scheduler):
            each.stop()

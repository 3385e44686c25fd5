"""Signals at random moments of commands: imports, loading and compiling kernels, kernels, tables, plots."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from dpmf_cli.experiment.running.interrupts import INTERRUPTED
from tests.faults.arena import CONFIG, NAME, PATIENCE, Arena, differing, files
from tests.faults.tally import FULL, Interrupts, Tally, times
from tests.processes import session_ended

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG = "long"
LONG_CONFIG = CONFIG.partition("folds:")[0] + (
    "folds: 2\nepsilons: [0.5, 1, 2, 8]\nalgorithms:\n  - {algorithm: isgd, factors: 20, epochs: 10000000}\n"
)
"""A run whose kernel takes far more than a minute."""


@dataclass(frozen=True)
class Kind:
    """What is interrupted.

    commands   one of them is drawn
    window     the signal comes within so many times what a run takes, of the same kind
    compiling  with nothing in the caches, so that ratings are parsed and kernels compiled
    after      what has to have been said before the time is counted: the signal comes in the second second from there
    """

    name: str
    commands: tuple[str, ...]
    window: float = 1.0
    compiling: bool = False
    after: str | None = None


RUN_1, RUN_2 = f"run {NAME}.yaml -j 1", f"run {NAME}.yaml -j 2"
KINDS = (
    (Kind("a run, -j 1", (RUN_1,)), 300, 6),
    (Kind("a run, -j 2", (RUN_2,)), 200, 6),
    (Kind("a run that compiles", (RUN_1, RUN_2), compiling=True), 100, 6),
    (Kind("a kernel of minutes, -j 1", (f"run {LONG}.yaml -j 1",), after=" left"), 40, 3),
    (
        Kind("tables and pages", ("crossings", f"compare {NAME} {NAME}", "plot", "report", "baselines")),
        280,
        5,
    ),
    (Kind("an audit", (f"audit {NAME}.yaml --pairs 2 -j 1", f"audit {NAME}.yaml --pairs 2 -j 2")), 30, 2),
    (Kind("a plan", (f"plan {NAME}.yaml",), 0.7), 24, 1),
    (Kind("a download", ("datasets fetch ml-100k --yes --data data",)), 26, 1),
)


class Ended(NamedTuple):
    """code: exit code; latency: seconds from the signal until no process of the command was left."""

    code: int
    said: str
    latency: float


def ready(pid: int) -> bool:
    """Whether dpmf already answers signals: it then handles the end of a child. Before that, Python answers them."""
    found = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return found is not None and bool(int(found[1], 16) >> (signal.SIGCHLD - 1) & 1)


@dataclass
class Interrupter:
    """Starts commands in a folder, interrupts them, and adds the counts to `row`."""

    arena: Arena
    rng: random.Random
    silent: str
    row: Interrupts = field(default_factory=Interrupts)

    def interrupt(self, kind: Kind) -> bool:
        """Returns False if the command had ended before."""
        number = self.rng.choice(SIGNALS)
        if kind.compiling:
            self.arena.forget()
        ended = self._interrupted(self.rng.choice(kind.commands).split(), kind, number)
        if ended is None:
            return False
        self.row.signals += 1
        self.row.crashes += ended.code not in (0, 128 + number)
        self.row.lost += ended.code == 0
        self.row.tracebacks += "Traceback" in ended.said or "Exception ignored" in ended.said
        self.row.failed += "tasks failed" in ended.said
        self.row.worst = max(self.row.worst, round(1000 * ended.latency))
        assert ended.code == 128 + number, ended.said
        assert ended.said.endswith(f"{INTERRUPTED}\n"), ended.said
        return True

    def _interrupted(self, command: list[str], kind: Kind, number: signal.Signals) -> Ended | None:
        said = self.arena.folder / "said"
        with said.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "dpmf_cli", *command],
                cwd=self.arena.folder,
                env={
                    **os.environ,
                    "DPMF_CACHE": str(self.arena.cache),
                    "HTTPS_PROXY": self.silent,
                    **self.arena.more,
                },
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        while process.poll() is None and not ready(process.pid):
            time.sleep(0.001)
        earliest, latest = 0.0, kind.window * self.arena.seconds["compiling" if kind.compiling else "again"]
        if kind.after is not None:
            while process.poll() is None and kind.after not in said.read_text():
                time.sleep(0.01)
            earliest, latest = 1.0, 2.0  # the kernel is loaded by then
        time.sleep(self.rng.uniform(earliest, latest))
        if process.poll() is not None:
            return None
        begin = time.monotonic()
        (os.killpg if self.rng.random() < 0.5 else os.kill)(process.pid, number)
        code = process.wait(PATIENCE)
        assert session_ended(process.pid), "a process outlives its command"
        return Ended(code, said.read_text(), time.monotonic() - begin)

    def check(self) -> None:
        """Resumes the run to its end, and compares its files; files that other commands have written are left out."""
        self.arena.finish()
        self.row.resumed += 1
        found = files(self.arena.results)
        here = {name: found.get(name, b"") for name in self.arena.expected}
        self.row.differing += differing(here, self.arena.expected)


@pytest.fixture(scope="module")
def places(measured: Arena, tmp_path_factory: pytest.TempPathFactory) -> list[Arena]:
    """Separate folders with finished results, for commands that are interrupted side by side."""
    found = []
    for _ in range(2 if FULL else 1):
        arena = Arena(tmp_path_factory.mktemp("place"), measured.expected, measured.seconds)
        (arena.folder / f"{LONG}.yaml").write_text(LONG_CONFIG)
        found.append(arena)
    first = found[0]
    first.more = {"DPMF_KERNELS": str(first.kernels)}
    measured.seconds["compiling"] = first.timed()
    first.clear()
    measured.seconds["again"] = first.timed()
    return found


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """A proxy that accepts connections and never answers, so that a download lasts until it is interrupted."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "full", "short"), KINDS, ids=[kind.name for kind, *_ in KINDS])
def test_interrupts(
    places: list[Arena], silent: str, tally: Tally, kind: Kind, full: int, short: int
) -> None:
    """Each interrupt gives the line and the exit code. Now and then the run is resumed, and gives the same bytes."""
    each = times(full, short) // len(places)

    def some(number: int) -> Interrupts:
        arena, rng = places[number], random.Random(f"{kind.name} {number}")
        here = Interrupter(arena, rng, silent)
        arena.more = {"DPMF_KERNELS": str(arena.kernels)} if kind.compiling else {}
        arena.finish()
        writes = kind.commands[0].startswith("run")
        tries = 0
        while here.row.signals < each:
            tries += 1
            assert tries < 20 * each, "nearly all had ended before"
            if writes and rng.random() < 0.3:
                arena.clear()
            here.interrupt(kind)
            if writes and rng.random() < 0.05:
                here.check()
        here.check()
        return here.row

    with ThreadPoolExecutor(len(places)) as pool:
        for row in pool.map(some, range(len(places))):
            tally.interrupts.setdefault(kind.name, Interrupts()).add(row)
    total = tally.interrupts[kind.name]
    assert (total.crashes, total.lost, total.tracebacks, total.failed, total.differing) == (0, 0, 0, 0, 0)
    assert total.worst < (2000 if FULL else 10_000)

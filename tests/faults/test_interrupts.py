"""Signals at random moments of commands: imports, loading and compiling kernels, kernels, tables, plots."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpmf_cli.cli.entry import INTERRUPTED
from tests.command import environment, session_ended
from tests.faults.arena import CONFIG, NAME, PATIENCE, Arena, differing, files
from tests.faults.tally import FULL, Row, Tally, times

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG = "long"
LONG_CONFIG = CONFIG.partition("folds:")[0] + (
    "folds: 2\nepsilons: [0.5, 1, 2, 8]\nalgorithms:\n  - {algorithm: isgd, factors: 20, epochs: 10000000}\n"
)
"""A run whose kernel takes far more than a minute."""


@dataclass(frozen=True)
class Kind:
    """What is interrupted, how often in the full form and in the short one.

    commands   one of them is drawn
    window     the signal comes within so many times what a run takes, of the same kind
    compiling  with nothing in the caches, so that ratings are parsed and kernels compiled
    after      what has to have been said before the time is counted: the signal comes in the second second from there
    """

    name: str
    commands: tuple[str, ...]
    full: int
    short: int
    window: float = 1.0
    compiling: bool = False
    after: str | None = None


RUN_1, RUN_2 = f"run {NAME}.yaml -j 1", f"run {NAME}.yaml -j 2"
TABLES = ("crossings", f"compare {NAME} {NAME}", "plot", "report", "baselines")
AUDITS = (f"audit {NAME}.yaml --pairs 2 -j 1", f"audit {NAME}.yaml --pairs 2 -j 2")
KINDS = (
    Kind("a run, -j 1", (RUN_1,), 300, 6),
    Kind("a run, -j 2", (RUN_2,), 200, 6),
    Kind("a run that compiles", (RUN_1, RUN_2), 100, 6, compiling=True),
    Kind("a kernel of minutes, -j 1", (f"run {LONG}.yaml -j 1",), 40, 3, after=" left"),
    Kind("tables and pages", TABLES, 280, 5),
    Kind("an audit", AUDITS, 30, 2),
    Kind("a plan", (f"plan {NAME}.yaml",), 24, 1, window=0.7),
    Kind("a download", ("datasets fetch ml-100k --yes --data data",), 26, 1),
)


def ready(pid: int) -> bool:
    """Whether dpmf already answers signals: it then handles the end of a child. Before that, Python answers them."""
    found = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return found is not None and bool(int(found[1], 16) >> (signal.SIGCHLD - 1) & 1)


def interrupt(arena: Arena, kind: Kind, rng: random.Random, silent: str) -> float | None:
    """Interrupts a command: the seconds until no process of it was left, or None if it had ended before."""
    number, words = rng.choice(SIGNALS), rng.choice(kind.commands).split()
    if kind.compiling:
        for place in (arena.cache, arena.kernels):
            shutil.rmtree(place, ignore_errors=True)
    output = arena.folder / "said"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "dpmf_cli", *words],
            cwd=arena.folder,
            env={**environment(arena.cache), "HTTPS_PROXY": silent, **arena.more},
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        )
    while process.poll() is None and not ready(process.pid):
        time.sleep(0.001)
    earliest, latest = 0.0, kind.window * arena.seconds["compiling" if kind.compiling else "again"]
    if kind.after is not None:
        while process.poll() is None and kind.after not in output.read_text():
            time.sleep(0.01)
        earliest, latest = 1.0, 2.0  # the kernel is loaded by then
    time.sleep(rng.uniform(earliest, latest))
    if process.poll() is not None:
        return None
    begin = time.monotonic()
    (os.killpg if rng.random() < 0.5 else os.kill)(process.pid, number)
    code = process.wait(PATIENCE)
    assert session_ended(process.pid), "a process outlives its command"
    latency, said = time.monotonic() - begin, output.read_text()
    assert (code, said[-len(INTERRUPTED) - 1 :]) == (128 + number, f"{INTERRUPTED}\n"), said
    assert not re.search("Traceback|Exception ignored|tasks failed", said), said
    return latency


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
@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_interrupts(places: list[Arena], silent: str, tally: Tally, kind: Kind) -> None:
    """Each interrupt gives the line and the exit code. Now and then the run is resumed, and gives the same bytes."""
    each, total = times(kind.full, kind.short) // len(places), tally.row(kind.name, "interrupts")

    def some(number: int) -> Row:
        arena, rng, row = places[number], random.Random(f"{kind.name} {number}"), Row(worst=0)

        def check() -> None:
            """Files that other commands have written are left out."""
            arena.finish()
            row.resumed += 1
            found = files(arena.results)
            row.differing += differing(
                {name: found.get(name, b"") for name in arena.expected}, arena.expected
            )

        arena.more = {"DPMF_KERNELS": str(arena.kernels)} if kind.compiling else {}
        arena.finish()
        writes, tries = kind.commands[0].startswith("run"), 0
        while row.injected < each:
            tries += 1
            assert tries < 20 * each, "nearly all had ended before"
            if writes and rng.random() < 0.3:
                arena.clear()
            latency = interrupt(arena, kind, rng, silent)
            if latency is not None:
                row.injected += 1
                row.worst = max(row.worst or 0, round(1000 * latency))
            if writes and rng.random() < 0.05:
                check()
        check()
        return row

    with ThreadPoolExecutor(len(places)) as pool:
        for row in pool.map(some, range(len(places))):
            total.injected += row.injected
            total.resumed += row.resumed
            total.differing += row.differing
            total.worst = max(total.worst or 0, row.worst or 0)
    assert total.differing == 0
    assert (total.worst or 0) < (2000 if FULL else 10_000)

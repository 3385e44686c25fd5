"""Processes that are killed, at random moments of the time that a run takes."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable

import pytest

from tests.command import session_ended, workers
from tests.faults.arena import PATIENCE, Arena
from tests.faults.tally import Row, Tally, full


def inject(
    arena: Arena, row: Row, fault: Callable[[int], bool], rng: random.Random, jobs: int, *, warm: bool
) -> tuple[int, str] | None:
    """Starts a run and applies `fault` at a random moment: (exit code, output). None if the run had ended
    before, or the fault found nothing to hit."""
    process = arena.start(jobs=jobs, warm=warm)
    time.sleep(rng.uniform(0, arena.seconds[f"warm {jobs}" if warm else "cold"]))
    hit = process.poll() is None and fault(process.pid)
    row.injected += hit
    _, said = process.communicate(timeout=PATIENCE)
    assert session_ended(process.pid), "a process outlives its run"
    assert process.returncode is not None
    return (process.returncode, said) if hit else None


def killing(number: signal.Signals) -> Callable[[int], bool]:
    def kill(pid: int) -> bool:
        os.kill(pid, number)
        return True

    return kill


def killing_child(rng: random.Random) -> Callable[[int], bool]:
    def kill(pid: int) -> bool:
        deadline = time.monotonic() + 20
        while (
            time.monotonic() < deadline
        ):  # until the processes have started; if none ever does, this is no hit
            if started := workers(pid):
                os.kill(rng.choice(started), signal.SIGKILL)
                return True
            if not os.path.exists(f"/proc/{pid}/exe"):  # it has ended; its exit code is not yet read
                return False
            time.sleep(0.01)
        return False

    return kill


@pytest.mark.slow
def test_one_after_the_other(arena: Arena, tally: Tally) -> None:
    """The short form: three faults in one experiment, and one run that finishes it."""
    rng, row = random.Random("short"), tally.row("killed, killed worker, ended, in one run")
    for fault in (killing(signal.SIGKILL), killing_child(rng), killing(signal.SIGTERM)):
        inject(arena, row, fault, rng, 2, warm=False)
    arena.resume(row)
    assert row.injected
    assert row.differing == 0


@full
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_parent(arena: Arena, tally: Tally, jobs: int) -> None:
    rng, row = random.Random(f"parent {jobs}"), tally.row("parent killed (SIGKILL)")
    goal = row.injected + 25
    while row.injected < goal:
        inject(arena, row, killing(signal.SIGKILL), rng, jobs, warm=rng.random() < 0.8)
        if rng.random() < 0.2:
            shutil.rmtree(arena.cache, ignore_errors=True)
        arena.resume(row, warm=True)
    assert row.differing == 0


@full
def test_a_killed_child(arena: Arena, tally: Tally) -> None:
    rng, row = random.Random("child"), tally.row("child killed (SIGKILL)")
    while row.injected < 50:
        ended = inject(arena, row, killing_child(rng), rng, 2, warm=True)
        if ended is not None:
            code, said = ended
            assert code in (0, 2), said
            assert code == 0 or "a worker process was killed" in said
            assert "Traceback" not in said
        arena.resume(row, warm=True)
    assert row.differing == 0

"""Full or read-only disks: small memory disks if the test runs as root. In tests/results/test_store.py a system call
fails."""

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import command
from tests.faults.arena import PATIENCE, Arena
from tests.faults.tally import Tally, full
from tests.skips import ROOT_ONLY


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(arena: Arena) -> Iterator[Path]:
    """A memory disk under the results. Its size and whether it is read-only can be changed."""
    arena.results.mkdir(exist_ok=True)
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=16m", "dpmf-faults", str(arena.results)):
        pytest.skip(ROOT_ONLY)
    yield arena.results
    subprocess.run(["umount", str(arena.results)], check=True)


FAULTS = {"full": "No space left on device; free some space and run", "read-only": "Read-only file system"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_fails_once(
    arena: Arena, run_here: Callable[..., tuple[int, str]], disk: Path, tally: Tally, fault: str
) -> None:
    """The short form, in this process."""
    row = tally.row(f"disk {fault}, in one process")
    assert mount("-o", "remount,ro" if fault == "read-only" else "remount,size=60k", str(disk))
    code, said = run_here()
    row.injected += 1
    assert code == 2
    assert FAULTS[fault] in said
    assert "Finished tasks are kept" in said
    assert mount("-o", "remount,rw,size=16m", str(disk))
    assert bool(list(disk.glob("tasks/*/*/*.json"))) == (fault == "full")
    assert run_here()[0] == 0
    arena.compare(row)
    arena.clear()
    assert row.differing == 0


@full
def test_a_full_disk(arena: Arena, disk: Path, tally: Tally) -> None:
    rng, row = random.Random("full"), tally.row("disk full (tmpfs)")
    needed = sum(map(len, arena.expected.values()))
    while row.injected < 12:
        size = 4096 * rng.randint(1, needed // 4096)
        assert mount("-o", f"remount,size={size}", str(disk))
        _, said = command.ended(arena.start(jobs=rng.choice([1, 2]), warm=True), 2)
        assert "No space left on device; free some space and run the same command again" in said
        row.injected += 1
        assert mount("-o", "remount,size=16m", str(disk))
        arena.resume(row, warm=True)
    assert row.differing == 0


@full
def test_a_disk_that_turns_read_only(arena: Arena, disk: Path, tally: Tally) -> None:
    rng, row = random.Random("read-only"), tally.row("results read-only (remounted)")
    while row.injected < 12:
        jobs = rng.choice([1, 2])
        process = arena.start(jobs=jobs, warm=True)
        time.sleep(rng.choice([0, rng.uniform(0, arena.seconds[f"warm {jobs}"])]))
        while process.poll() is None and not mount("-o", "remount,ro", str(disk)):
            time.sleep(0.001)  # a file is being written
        _, said = process.communicate(timeout=PATIENCE)
        if process.returncode:
            assert process.returncode == 2, said
            assert "cannot be written: Read-only file system" in said
            row.injected += 1
        assert "Traceback" not in said
        assert mount("-o", "remount,rw", str(disk))
        arena.resume(row, warm=True)
    assert row.differing == 0

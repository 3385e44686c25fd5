"""Runs that are killed, interrupted or disturbed: after resuming the same bytes, nothing lost, no process left."""

import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from dpmf_cli.experiment.running.interrupts import INTERRUPTED
from tests.command import dpmf, fork, start, task_files, wait_for_tasks
from tests.processes import session_ended, workers
from tests.runs.tiny import TASKS, outputs


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed_gives_the_same_bytes(
    folder: Path, cache: Path, undisturbed: Path, jobs: str
) -> None:
    rng = random.Random(int(jobs))
    interrupted = 0
    for _ in range(5):
        process = fork(folder, cache, "run", "tiny.yaml", "-j", jobs)
        wait_for_tasks(folder, process, min(len(task_files(folder)) + rng.randint(1, 8), TASKS - 1))
        interrupted += process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert interrupted >= 2
    dpmf(folder, cache, "run", "tiny.yaml", "-j", jobs)
    assert outputs(folder) == outputs(undisturbed)
    assert task_files(folder) == task_files(undisturbed)


@pytest.mark.parametrize(
    ("number", "jobs"),
    [
        (signal.SIGINT, "1"),
        pytest.param(signal.SIGINT, "2", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "2", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_or_a_closed_terminal_keeps_finished_tasks_and_says_how_to_go_on(
    folder: Path, cache: Path, undisturbed: Path, number: signal.Signals, jobs: str
) -> None:
    for _ in range(5):  # a busy machine may let a run end before it is interrupted
        process = start(folder, cache, "run", "tiny.yaml", "-j", jobs)
        wait_for_tasks(folder, process, 3)
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=60)
        if process.returncode:
            break
        shutil.rmtree(folder / "results")
    assert process.returncode == 128 + number, errors
    assert errors.endswith(f"{INTERRUPTED}\n")
    assert "Traceback" not in errors
    assert "died unexpectedly" not in errors
    assert 3 <= len(task_files(folder)) <= TASKS
    dpmf(folder, cache, "run", "tiny.yaml", "-j", jobs)
    assert outputs(folder) == outputs(undisturbed)


@pytest.mark.slow
def test_ctrl_c_while_workers_are_still_starting_is_as_quiet(folder: Path, cache: Path) -> None:
    process = start(folder, cache, "run", "tiny.yaml", "-j", "2")
    while len(workers(process.pid)) < 2 and process.poll() is None:
        time.sleep(0.005)
    time.sleep(0.3)  # while they import
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.endswith(f"{INTERRUPTED}\n")
    assert "Traceback" not in errors


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(folder: Path, cache: Path, undisturbed: Path) -> None:
    process = fork(folder, cache, "run", "tiny.yaml", "-j", "2")
    wait_for_tasks(folder, process, 3)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert session_ended(process.pid)
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    assert outputs(folder) == outputs(undisturbed)


@pytest.mark.slow
def test_a_killed_worker_is_said_and_what_was_finished_is_kept(folder: Path, cache: Path) -> None:
    process = fork(folder, cache, "run", "tiny.yaml", "-j", "2")
    wait_for_tasks(folder, process, 3)
    os.kill(workers(process.pid)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert "a worker process was killed" in errors
    assert "Traceback" not in errors
    assert len(task_files(folder)) >= 3


@pytest.mark.slow
def test_two_runs_at_once_compute_each_task_once(folder: Path, cache: Path, undisturbed: Path) -> None:
    both = [fork(folder, cache, "run", "tiny.yaml", "-j", jobs) for jobs in ("1", "2")]
    computed = 0
    for process in both:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        computed += sum(map(int, re.findall(r"computed (\d+) tasks", errors)))
    assert computed == TASKS
    assert outputs(folder) == outputs(undisturbed)
    assert task_files(folder) == task_files(undisturbed)


def test_tasks_deleted_during_a_run_are_missed(folder: Path, cache: Path) -> None:
    process = fork(folder, cache, "run", "tiny.yaml", "-j", "1")
    wait_for_tasks(folder, process, 5)
    next((folder / "results").glob("tasks/**/*.json")).unlink()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "1 tasks have no result though they were run" in errors

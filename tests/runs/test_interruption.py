"""Runs that are killed, interrupted or disturbed: after resuming the same bytes, nothing lost, no process left.

`tests/faults` does this at any moment.
"""

import os
import re
import shutil
import signal

import pytest

from dpmf_cli.cli.entry import INTERRUPTED
from tests.command import ended, fork, start, wait_for_tasks
from tests.runs.tiny import TASKS, Place


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_ctrl_c_keeps_finished_tasks_and_says_how_to_go_on(
    drawing: Place, undisturbed: Place, jobs: str
) -> None:
    for _ in range(5):  # a busy machine may let a run end before it is interrupted
        process = start(drawing.folder, drawing.cache, "run", "tiny.yaml", "-j", jobs)
        wait_for_tasks(drawing.folder, process, 3)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if process.returncode:
            break
        shutil.rmtree(drawing.folder / "results")
    assert process.returncode == 130, errors
    assert errors.endswith(f"{INTERRUPTED}\n")
    assert "Traceback" not in errors
    assert 3 <= len(drawing.tasks) <= TASKS
    drawing.run(jobs=int(jobs))
    assert drawing.outputs == undisturbed.outputs


@pytest.mark.slow
def test_two_runs_at_once_compute_each_task_once(drawing: Place, undisturbed: Place) -> None:
    both = [fork(drawing.folder, drawing.cache, "run", "tiny.yaml", "-j", jobs) for jobs in ("1", "2")]
    said = "".join(ended(process)[1] for process in both)
    assert sum(map(int, re.findall(r"computed (\d+) tasks", said))) == TASKS
    assert (drawing.outputs, drawing.tasks) == (undisturbed.outputs, undisturbed.tasks)


@pytest.mark.slow
def test_what_a_killed_run_claimed_is_computed_by_another(drawing: Place, undisturbed: Place) -> None:
    one, other = (fork(drawing.folder, drawing.cache, "run", "tiny.yaml", "-j", "1") for _ in range(2))
    wait_for_tasks(drawing.folder, one, 3)
    os.kill(one.pid, signal.SIGKILL)
    ended(other)
    one.communicate(timeout=60)
    assert (drawing.outputs, drawing.tasks) == (undisturbed.outputs, undisturbed.tasks)


def test_tasks_deleted_during_a_run_are_missed(place: Place) -> None:
    process = fork(place.folder, place.cache, "run", "tiny.yaml", "-j", "1")
    wait_for_tasks(place.folder, process, 5)
    next((place.folder / "results").glob("tasks/**/*.json")).unlink()
    assert "1 tasks have no result though they were run" in ended(process, 1)[1]

"""Runs that share results: which run computes which task."""

import errno
import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Task
from dpmf_cli.running import claims as module
from dpmf_cli.running.batches import Batch
from dpmf_cli.running.claims import Claims, in_rounds
from tests.results.test_store import result, task

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+")
for place in map(int, sys.argv[2:]):
    fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
print("held", flush=True)
sys.stdin.read()
"""
TASKS = tuple(task(run=run) for run in range(3))
ALONE: tuple[Batch, ...] = tuple((each,) for each in TASKS)


class Told(list[object]):
    """A store's claims, which add what they report to this list."""

    def claims(self, folder: Path, batches: tuple[Batch, ...] = ALONE) -> Claims:
        return Claims(Store(folder), batches, self.append, self.append)


@contextmanager
def held_by_another(claims: Claims, folder: Path, *tasks: Task) -> Iterator[Callable[[], None]]:
    """Another process, which holds these tasks until the returned function kills it."""
    command = [sys.executable, "-c", HOLD, str(folder / "tasks" / "claims")]
    process = subprocess.Popen(
        [*command, *(str(claims._place(each)) for each in tasks)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"

    def kill() -> None:
        process.kill()
        process.wait()

    try:
        yield kill
    finally:
        kill()
        process.communicate()


def test_a_run_alone_gets_each_batch_once_in_order(tmp_path: Path) -> None:
    told = Told()
    with told.claims(tmp_path) as claims:
        assert len(claims) == 3
        assert list(claims) == list(ALONE)
    assert told == []


def test_what_another_finishes_is_left_to_it(tmp_path: Path) -> None:
    told = Told()
    with told.claims(tmp_path) as claims, held_by_another(claims, tmp_path, TASKS[0]) as kill:
        given = iter(claims)
        assert [next(given) for _ in range(4)] == [ALONE[1], ALONE[2], None, None]
        assert told == [1]
        Store(tmp_path).write(TASKS[0], result())
        kill()
        assert list(given) == []
        assert told == [1, TASKS[0]]


def test_what_another_gives_up_is_taken(tmp_path: Path) -> None:
    told = Told()
    with told.claims(tmp_path) as claims, held_by_another(claims, tmp_path, *TASKS) as kill:
        given = iter(claims)
        assert next(given) is None
        assert told == [3]
        kill()
        assert list(given) == list(ALONE)


def test_of_tasks_that_share_a_fit_those_are_left_that_nobody_did(tmp_path: Path) -> None:
    told = Told()
    Store(tmp_path).write(TASKS[1], result())
    with told.claims(tmp_path, (TASKS,)) as claims:
        assert list(claims) == [(TASKS[0], TASKS[2])]
    assert told == [TASKS[1]]


def test_what_is_done_is_let_go_and_of_tasks_that_share_a_fit_none_is_held_where_one_is_held_elsewhere(
    tmp_path: Path,
) -> None:
    with Told().claims(tmp_path, (TASKS,)) as claims, held_by_another(claims, tmp_path, TASKS[2]) as kill:
        assert next(iter(claims)) is None
        with held_by_another(claims, tmp_path, *TASKS[:2]):
            pass  # it could have them
        kill()
        assert list(claims) == [TASKS]
        claims.release(TASKS)
        with held_by_another(claims, tmp_path, *TASKS):
            pass


def test_a_file_system_without_locks_shares_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with Told().claims(tmp_path) as claims:
        assert list(claims) == list(ALONE)


def test_rounds_are_what_can_be_had_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(module, "ROUND", 2)
    a, b, c = ALONE
    assert list(in_rounds([None, a, None, None, b])) == [[a], [b]]
    assert list(in_rounds([a, b, c])) == [[a, b], [c]]


def test_a_folder_that_cannot_hold_the_locks_is_said(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "claims").mkdir(parents=True)
    with pytest.raises(DpmfError, match=r"tasks/claims: cannot be written: .*; make the folder writable"):
        Told().claims(tmp_path).__enter__()


def test_a_file_of_another_grid_under_the_name_of_a_task_is_not_its_result(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(task((5.0,), run=0), result((5.0,)))
    store.path(task((5.0,), run=0)).rename(store.path(TASKS[0]))
    with Told().claims(tmp_path) as claims:
        assert next(iter(claims)) == ALONE[0]

"""A function over items in several processes: its results, its errors, and what it leaves behind.

Runs that share results: which run computes which task.
"""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Task
from dpmf_cli.experiment.running import processes
from dpmf_cli.experiment.running import processes as module
from dpmf_cli.experiment.running.batches import Batch
from dpmf_cli.experiment.running.processes import Claims, each_of, in_rounds
from tests.command import children
from tests.results.test_store import result, task


def cube(number: int) -> int:
    return number**3


def refuse(number: int) -> int:
    raise DpmfError(f"{number}: refused")


def divide(number: int) -> float:
    return 1 / number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def nap(number: int) -> int:
    time.sleep(60 if number else 0)
    return number


@pytest.mark.parametrize("processes", [1, 2])
def test_each_item_is_answered_once_and_what_is_not_there_yet_is_waited_for(processes: int) -> None:
    items = iter([None, 1, None, *range(2, 7), None, None, 7, None])
    assert sorted(each_of(cube, items, processes)) == [number**3 for number in range(1, 8)]
    assert list(each_of(cube, [], processes)) == []


@pytest.mark.parametrize(
    ("work", "error", "said"),
    [
        (refuse, DpmfError, r"^0: refused$"),
        (divide, RuntimeError, r"in divide\n[^Z]*ZeroDivisionError"),
        (die, DpmfError, "a worker process was killed"),
    ],
)
def test_what_ends_a_process_is_said(
    work: Callable[[int], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(each_of(work, [0, 0], 2))


def test_who_stops_iterating_stops_the_work() -> None:
    before = children(os.getpid())
    answers = each_of(nap, [0, 1], 2)
    assert next(answers) == 0
    assert len(children(os.getpid())) == len(before) + 2
    answers.close()
    assert children(os.getpid()) == before


def test_nothing_is_shared_that_outlives_a_killed_run() -> None:
    """Named semaphores, which the standard library's pools use, would stay in memory."""
    code = (
        "import sys\nfrom dpmf_cli.experiment.running.processes import each_of\n"
        "if __name__ == '__main__':\n    next(each_of(abs, [1, 2], 2))\n"
        "    print('multiprocessing.synchronize' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_a_result_that_comes_beside_an_error_is_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_for_all(busy: set[Connection], timeout: float | None) -> list[Connection]:
        return [connection for connection in busy if connection.poll(60)]

    monkeypatch.setattr(processes, "wait", wait_for_all)
    answers = each_of(divide, [4, 0], 2)
    assert next(answers) == 0.25
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        next(answers)


def test_a_worker_ends_with_its_parent_while_it_still_imports() -> None:
    """What a worker imports before it is set to end with its parent takes a few hundredths of a second."""
    code = "import sys, dpmf_cli.core.children; print(sorted({'numpy', 'numba', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


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

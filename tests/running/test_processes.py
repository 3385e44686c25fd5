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
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from dpmf_cli.core import terminal
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Task
from dpmf_cli.experiment.running import processes
from dpmf_cli.experiment.running.batches import Batch
from dpmf_cli.experiment.running.processes import Claims, each_of
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
        list(each_of(work, [0], 2))


def test_who_stops_iterating_stops_the_work() -> None:
    before = children(os.getpid())
    answers = each_of(nap, [0, 1], 2)
    assert next(answers) == 0
    assert len(children(os.getpid())) == len(before) + 2
    answers.close()
    assert children(os.getpid()) == before


SHARED = """
import sys
from dpmf_cli.experiment.running.processes import each_of
if __name__ == '__main__':
    next(each_of(abs, [1], 2))
    print('multiprocessing.synchronize' in sys.modules)
"""
EARLY = "import sys, dpmf_cli.core.children; print(bool({'numpy', 'numba', 'pydantic'} & sys.modules.keys()))"


@pytest.mark.parametrize("code", [SHARED, EARLY])
def test_what_is_not_imported(code: str) -> None:
    """Named semaphores, which the standard library's pools use, would stay in memory after a killed run. And what a
    worker imports before it is set to end with its parent takes a few hundredths of a second."""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_a_result_that_comes_beside_an_error_is_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_for_all(busy: set[Connection], timeout: float | None) -> list[Connection]:
        return [connection for connection in busy if connection.poll(60)]

    monkeypatch.setattr(processes, "wait", wait_for_all)
    answers = each_of(divide, [4, 0], 2)
    assert next(answers) == 0.25
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        next(answers)


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


Make = Callable[..., Claims]


@pytest.fixture
def told() -> list[object]:
    return []


@pytest.fixture
def claims(tmp_path: Path, told: list[object], monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes claims of batches, which add what they report to `told`: tasks, and how many are waited for."""
    monkeypatch.setattr(terminal, "say", lambda line: told.append(int(line.split()[4])))
    return lambda batches=ALONE: Claims(Store(tmp_path), batches, told.append)


@contextmanager
def held_by_another(claims: Claims, *tasks: Task) -> Iterator[Callable[[], object]]:
    """Another process, which holds these tasks until the returned function ends it."""
    path = str(claims._store.root / "tasks" / "claims")
    places = (int.from_bytes(sha256(claims._name(each)).digest()[:7]) for each in tasks)
    command = [sys.executable, "-c", HOLD, path, *map(str, places)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.communicate
        process.kill()


def test_a_run_alone_gets_each_batch_once_in_order(claims: Make, told: list[object]) -> None:
    with claims() as held:
        assert list(held) == list(ALONE)
    assert told == []


def test_what_another_finishes_is_left_to_it(claims: Make, told: list[object], tmp_path: Path) -> None:
    with claims() as held, held_by_another(held, TASKS[0]) as end:
        given = iter(held)
        assert [next(given) for _ in range(4)] == [ALONE[1], ALONE[2], None, None]
        assert told == [1]
        Store(tmp_path).write(TASKS[0], result())
        end()
        assert list(given) == []
        assert told == [1, TASKS[0]]


def test_what_another_gives_up_is_taken(claims: Make, told: list[object]) -> None:
    with claims() as held, held_by_another(held, *TASKS) as end:
        given = iter(held)
        assert next(given) is None
        assert told == [3]
        end()
        assert list(given) == list(ALONE)


def test_of_tasks_that_share_a_fit_those_are_left_that_nobody_did(
    claims: Make, told: list[object], tmp_path: Path
) -> None:
    Store(tmp_path).write(TASKS[1], result())
    with claims((TASKS,)) as held:
        assert list(held) == [(TASKS[0], TASKS[2])]
    assert told == [TASKS[1]]


def test_what_is_done_is_let_go_and_of_tasks_that_share_a_fit_none_is_held_where_one_is_held_elsewhere(
    claims: Make,
) -> None:
    with claims((TASKS,)) as held, held_by_another(held, TASKS[2]) as end:
        assert next(iter(held)) is None
        with held_by_another(held, *TASKS[:2]):
            pass  # it could have them
        end()
        assert list(held) == [TASKS]
        held.release(TASKS)
        with held_by_another(held, *TASKS):
            pass


def test_a_file_system_without_locks_shares_nothing(claims: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with claims() as held:
        assert list(held) == list(ALONE)


def test_a_folder_that_cannot_hold_the_locks_is_said(claims: Make, tmp_path: Path) -> None:
    (tmp_path / "tasks" / "claims").mkdir(parents=True)
    with pytest.raises(DpmfError, match=r"tasks/claims: cannot be written: .*; make the folder writable"):
        claims().__enter__()


def test_a_file_of_another_grid_under_the_name_of_a_task_is_not_its_result(
    claims: Make, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.write(task((5.0,), run=0), result((5.0,)))
    store.path(task((5.0,), run=0)).rename(store.path(TASKS[0]))
    with claims() as held:
        assert next(iter(held)) == ALONE[0]

"""A function over items in several processes: its results, its errors, and what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

from dpmf_cli.errors import DpmfError
from dpmf_cli.running import processes
from dpmf_cli.running.processes import each_of
from tests.processes import children


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
        "import sys\nfrom dpmf_cli.running.processes import each_of\n"
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
    code = "import sys, dpmf_cli.children; print(sorted({'numpy', 'numba', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"

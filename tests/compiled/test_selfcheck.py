"""Machine code that does not do what its source says is found before it is used, and is never kept."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf_cli.compiled import decorator, entries
from dpmf_cli.compiled.decorator import check, compiled, twin
from dpmf_cli.errors import DpmfError
from tests.compiled.made import RIGHT, doubled, example, fresh, moved, result


def test_a_twin_runs_the_same_source_without_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(moved), "__call__", lambda *_: pytest.fail("compiled"))
    assert result(twin(fresh())) == RIGHT


def test_wrong_machine_code_is_refused_each_time_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decorator, "twin", lambda _: lambda values, out: out.fill(7))
    dispatcher = fresh()
    for _ in range(2):
        with pytest.raises(DpmfError, match=r"made\.doubled: the machine code .* is wrong on this machine"):
            result(dispatcher)
    assert not any(".doubled-" in path.name for path in entries.entries())
    monkeypatch.undo()


def test_what_is_checked_stays_as_it_was() -> None:
    """An example is made again for machine code and twin, and no random stream is advanced."""
    state = str(np.random.get_state())  # noqa: NPY002
    values = np.arange(4.0)
    result(compiled(lambda kinds: {"values": values, "out": values})(doubled))
    assert values.tolist() == [0, 1, 2, 3]
    assert str(np.random.get_state()) == state  # noqa: NPY002


def entry_point(found: Any) -> Callable[..., Any]:
    """Machine code that writes `found`, whatever its arguments."""

    def run(values: np.ndarray, out: np.ndarray) -> None:
        out[:] = found

    return run


@pytest.mark.parametrize("found", [[1, 3, 5, 7 + 1e-7], [0, 0, 0, 0], [1, 3, 5, np.nan]])
def test_one_number_that_is_off_is_enough(found: Any) -> None:
    dispatcher = fresh()
    kinds = ("values' type", "out's type")
    check(dispatcher, entry_point(RIGHT), kinds, [example])
    with pytest.raises(DpmfError):
        check(dispatcher, entry_point(found), kinds, [example])

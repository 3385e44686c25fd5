"""Progress follows a clock that nobody can set."""

import io
import sys
import time

import pytest

from dpmf_cli.core import terminal
from dpmf_cli.core.terminal import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_a_wall_clock_that_is_set_back_does_not_show(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    out = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    wall, steady = iter(range(10**6, 0, -3600)), iter(range(0, 10**6, 20))
    monkeypatch.setattr(time, "time", lambda: float(next(wall)))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(steady)))
    with Progress("x", tasks=4, total_cost=8.0) as progress:
        for _ in range(4):
            progress.finished("PGE", 2.0)
    said = out.getvalue()
    if terminal:
        shown = [part for part in said.split("\r") if "tasks" in part]
        assert "20 s<60 s, 1/4 tasks, PGE" in shown[0]
        assert "80 s<0 s, 4/4 tasks, PGE" in shown[-1]
        assert "100%" in shown[-1]
    else:
        assert "1/4 tasks, 25 %, 20 s elapsed, about 60 s left" in said
        assert "4/4 tasks, 100 %, 80 s elapsed, about 0 s left" in said


def test_a_bar_moves_the_cursor_of_a_guarded_terminal_and_its_words_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    terminal.guard()
    with Progress("x\x1b", tasks=1, total_cost=1.0) as progress:
        progress.finished("PGE\x9b", 1.0)
    said = out.getvalue()
    assert "\r" in said
    assert not {"\x1b", "\x9b"} & set(said)
    assert r"x\u001b" in said
    assert r"PGE\u009b" in said

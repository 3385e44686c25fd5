"""Invisible characters are written out, in text, in cells and in streams; and progress follows a clock that nobody can
set."""

import csv
import io
import json
import sys
import time

import pytest
from hypothesis import given, strategies as st

from dpmf_cli.core import terminal
from dpmf_cli.core.terminal import Progress, csv_text, printable

ANY_TEXT = st.text(
    st.characters(codec=None) | st.sampled_from("\n\r\t\x1b\x9b\u202e\u200b\ud800\U000e0041=+-@'")
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ε = 0.5 ≤ ∞, Łódź, 日本, 👍, a\u00a0b\u2009c", "ε = 0.5 ≤ ∞, Łódź, 日本, 👍, a\u00a0b\u2009c"),
        ("a\x1b[31mb", r"a\u001b[31mb"),
        ("\0\t\r\n\x7f\x80\x9b", r"\u0000\u0009\u000d\u000a\u007f\u0080\u009b"),
        ("\u202e\u2066\u200b\u200f\u061c\ufeff\u00ad", r"\u202e\u2066\u200b\u200f\u061c\ufeff\u00ad"),
        ("\u2028\u2029\ud800\udcff", r"\u2028\u2029\ud800\udcff"),
        ("\U000e0041", r"\udb40\udc41"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY_TEXT)
def test_it_is_done_once_and_for_all(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    assert "\n" not in shown
    assert printable(text, keep="\n").replace("\n", r"\u000a") == shown
    shown.encode()


@given(st.text())
def test_what_was_json_stays_json(text: str) -> None:
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text


@given(st.lists(st.lists(ANY_TEXT | st.integers() | st.floats(allow_nan=False), min_size=1), min_size=1))
def test_no_cell_is_a_formula_or_more_than_one_line(rows: list[list[object]]) -> None:
    text = csv_text(rows)
    assert printable(text, keep="\n") == text
    for row, read in zip(rows, csv.reader(io.StringIO(text)), strict=True):
        for cell, got in zip(row, read, strict=True):
            if isinstance(cell, str):
                assert got in (printable(cell), "'" + printable(cell))
                assert not got.startswith(("=", "@"))
                assert not got.startswith(("+", "-")) or isinstance(float(got), float)
            else:
                assert type(cell)(got) == cell  # type: ignore[call-arg]


@pytest.mark.parametrize("cell", ['=HYPERLINK("x")', "+1+1", "-x", "@SUM(1)", "＝1+1", "-1e", "--1"])
def test_formulas_get_an_apostrophe(cell: str) -> None:
    assert next(csv.reader([csv_text([[cell]])])) == [f"'{cell}"]


@pytest.mark.parametrize("cell", ["-1", "+2.5", "-inf", "-1e-5", "a=b", "", "–", -1.5, None])
def test_numbers_and_other_text_stay(cell: object) -> None:
    assert csv_text([[cell, 1]]) == f"{'' if cell is None else cell},1\n"


def test_streams_show_what_they_are_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    terminal.guard()
    terminal.guard()
    print("a\x1bb")
    sys.stdout.writelines(["c\u202e\n", "d\n"])
    print("e\x9bf", file=sys.stderr)
    assert (terminal.unguarded(sys.stdout), terminal.unguarded(sys.stderr)) == streams
    said = capsys.readouterr()
    assert said == ("a\\u001bb\nc\\u202e\nd\n", "e\\u009bf\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", ["terminal", "notebook", ""])
def test_a_wall_clock_that_is_set_back_does_not_show(monkeypatch: pytest.MonkeyPatch, terminal: str) -> None:
    out = Terminal() if terminal == "terminal" else io.StringIO()
    if terminal == "notebook":
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
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

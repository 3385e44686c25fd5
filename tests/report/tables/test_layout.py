"""Text tables keep every cell whole, aligned and escaped, in each drawing, and LaTeX tables fit a column of a page."""

import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given, strategies as st
from matplotlib.ft2font import FT2Font
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.papers.beside_print import beside_print, with_printed_values
from dpmf_cli.report.tables.crossings import baseline_rows, baselines_table, crossings_table
from dpmf_cli.report.tables.layout import (
    Group,
    TextTable,
    draw,
    escape_latex,
    escape_markdown,
    first_rows,
    latex,
    markdown,
    terminal,
)
from tests.configs import SHIPPED, loaded
from tests.report.conftest import make, of_theta

TABLE = TextTable(
    header=("name", "ε"),
    alignment="lr",
    groups=(Group("first", (("a", "1.5"), ("longer", "∞"))), Group("second", (("b", "12"),))),
    notes=("a note",),
)


def test_every_text_of_a_table_is_seen_and_on_one_line_in_each_drawing() -> None:
    bad = "a\x1b[5m\n\u202e"
    shown = r"a\u001b[5m\u000a\u202e"
    whole = TextTable((bad, "b"), "ll", (Group(bad, ((bad, "c"),), bad),), (bad,))
    same = TextTable((shown, "b"), "ll", (Group(shown, ((shown, "c"),), shown),), (shown,))
    for drawn in (terminal, markdown, latex):
        assert drawn(whole) == drawn(same), drawn


def test_in_a_narrow_window_the_last_columns_are_below_their_row_and_notes_wrap() -> None:
    rows = (("0.1", "PGE", "1.23 [1, 2]", "–"), ("10", "ISGD", "1.0", "PGE; ISGD, tuned"))
    table = TextTable(("ε", "leads", "RMSE", "beside"), "rlll", (Group("", rows),), ("a note of many words",))
    assert terminal(table, 23).splitlines() == [
        *("", "  ε  leads  RMSE", "─" * 23, "0.1  PGE    1.23 [1, 2]", " 10  ISGD   1.0"),
        *("  beside PGE; ISGD,", "  tuned", "", "a note of many words"),
    ]
    assert terminal(table, 22).splitlines()[3:5] == ["0.1  PGE", "  RMSE 1.23 [1, 2]"]
    assert terminal(table, 100) == terminal(table)


def test_the_first_rows_say_what_is_left_out() -> None:
    assert first_rows(TABLE, 3, "all.csv") is TABLE
    cut = first_rows(TABLE, 1, "all.csv")
    assert [group.rows for group in cut.groups] == [(("a", "1.5"),)]
    assert cut.notes == ("a note", "2 of 3 rows are left out here; all of them: all.csv")
    assert [len(group.rows) for group in first_rows(TABLE, 2, "").groups] == [2]


def test_every_letter_of_a_shipped_label_is_one_that_latex_prints() -> None:
    """pdflatex prints the Unicode that its default input encoding knows. Other characters need a command of
    their own."""
    known = "–—’“”…·²³é"
    entries = [entry for path in SHIPPED for entry in loaded(path).entries]
    labels = [entry.label for entry in entries if entry.label]
    letters = {letter for label in labels for letter in escape_latex(label) if ord(letter) > 127}
    assert any("α" in label for label in labels)
    assert letters <= set(known)


@given(st.text(alphabet="ab_&%$#{}~^\\<>ε±∞−×†*θδΔ‡§", max_size=30))
def test_escaped_latex_has_no_bare_special_character(text: str) -> None:
    escaped = escape_latex(text)
    for command in (
        r"\\textbackslash\{\}",
        r"\\textascii(tilde|circum)\{\}",
        r"\\textsuperscript\{(\*|\\S|\$\\d?dagger\$)\}",
        r"\$(<|>|-|−|\\(varepsilon|pm|infty|times|theta|delta|Delta))\$",
        r"\\_\\allowbreak\{\}",
        r"\\[&%$#{}]",
    ):
        escaped = re.sub(command, "", escaped)
    assert not re.search(r"[&%$#_{}~^\\<>ε±∞−×†*θδΔ‡§]", escaped)


def test_escaped_markdown_stays_in_its_cell() -> None:
    assert escape_markdown("a|b*c_d<e") == r"a\|b\*c\_d\<e"


COLUMN = 241.0
"""Points of a column in ACM's two-column format, the narrowest of the common ones."""
GAP = 6.0
"""Points between two columns: twice \tabcolsep."""
SMALL = 8 / 7
"""How much wider letters of 7 points are than letters of 10 points made smaller."""


def points(text: str) -> float:
    r"""The width of a LaTeX cell in \scriptsize; each command counts as a letter."""
    plain = re.sub(r"\\allowbreak\{\}|\\textsuperscript|[${}]", "", text).replace("–", "--")
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts/ttf/cmr10.ttf"))
    font.set_size(7, 72)
    font.set_text(re.sub(r"\\[A-Za-z]+", "m", plain).replace("\\", ""))
    return SMALL * font.get_width_height()[0] / 64


def least_width(drawn: str) -> float:
    """The width that a table needs: the longest word of columns that break lines, the longest cell of others."""
    spec = re.search(r"tabularx\}\{\\linewidth\}\{@\{\}(.*)@\{\}\}", drawn)
    assert spec
    sides = spec.group(1).replace(r">{\raggedright\arraybackslash}", "")
    rows = [line.removesuffix(r" \\").split(" & ") for line in drawn.splitlines() if " & " in line]
    assert all(len(row) == len(sides) for row in rows)
    columns = zip(sides, zip(*rows, strict=True), strict=True)
    widths = [
        max(
            points(word)
            for cell in cells
            for word in (re.split(r" |\\allowbreak\{\}", cell) if side == "X" else [cell])
        )
        for side, cells in columns
    ]
    return sum(widths) + GAP * (len(sides) - 1)


@pytest.mark.parametrize("form", ["own", "printed", "theta"])
def test_crossings_fit_a_column(form: str) -> None:
    experiment = replace(of_theta(make(4)) if form == "theta" else make(6), name="ml1m_bounded")
    longer = replace(
        experiment.curves[0], label="Gradient perturbation, private_covariance_estimate, λ = 0.05"
    )
    experiment = replace(experiment, curves=(longer, *experiment.curves[1:]))
    printed = form == "printed"
    crossings = with_printed_values(beside_print(experiment)) if printed else find_crossings(experiment)
    drawn = draw(crossings_table(crossings), "latex")
    assert "not reached in the grid" in drawn
    assert ("printed" in drawn.splitlines()[3]) == (form == "printed")
    assert 120 < least_width(drawn) <= COLUMN


def test_baselines_fit_a_column() -> None:
    assert least_width(draw(baselines_table(baseline_rows(make(1))), "latex")) <= COLUMN


def test_the_command_adds_printed_values_by_what_is_in_the_data_folder(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ml-1m.zip").touch()
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    asked = ["crossings", str(results / "ml100k_bounded"), "--printed", "--format"]
    rows = json.loads(CliRunner().invoke(app, [*asked, "json"], catch_exceptions=False).stdout)
    added = {(row["dataset"], row["status"]) for row in rows if not row["experiment"]}
    absent = {(key, "data not present") for key in ("ml-100k", "ml-10m", "netflix")}
    assert added == {("ml-1m", "not run"), *absent}
    note = "not run: no experiment here reproduces this value of Friedman et al.'s tables 4 and 5\n"
    assert note in CliRunner().invoke(app, [*asked, "table"], catch_exceptions=False).stdout
    assert "not run" not in CliRunner().invoke(app, asked[:2], catch_exceptions=False).stdout


def test_the_command_sets_print_beside_what_reproduces_a_table(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmf_cli.papers.beside_print.printed_crossing", lambda *_: 0.25)
    asked = ["crossings", *(str(results / name) for name in ("ml100k_bounded", "mine")), "--format", "json"]
    rows = json.loads(CliRunner().invoke(app, asked, catch_exceptions=False).stdout)
    assert {(row["experiment"], row["printed"]) for row in rows} == {("ml100k_bounded", 0.25), ("mine", None)}

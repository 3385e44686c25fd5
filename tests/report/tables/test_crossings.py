"""Tables and macros of crossings."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.printed_cells import with_printed_cells
from dpmf_cli.report.tables.crossings import baseline_rows, baselines_table, crossings_table
from dpmf_cli.report.tables.layout import draw
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def test_the_command_adds_printed_cells_by_what_is_in_the_data_folder(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ml-1m.zip").touch()
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    asked = ["crossings", str(results / "ml100k_bounded"), "--printed", "--format"]
    rows = json.loads(CliRunner().invoke(app, [*asked, "json"], catch_exceptions=False).stdout)
    added = {(row["dataset"], row["status"]) for row in rows if not row["experiment"]}
    absent = {(key, "data not present") for key in ("ml-100k", "ml-10m", "netflix")}
    assert added == {("ml-1m", "not run"), *absent}
    note = "not run: no experiment here reproduces this cell of Friedman et al.'s tables 4 and 5\n"
    assert note in CliRunner().invoke(app, [*asked, "table"], catch_exceptions=False).stdout
    assert "not run" not in CliRunner().invoke(app, asked[:2], catch_exceptions=False).stdout


def test_the_command_sets_print_beside_what_reproduces_a_table(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmf_cli.papers.printed_cells.printed_crossing", lambda *_: 0.25)
    asked = ["crossings", *(str(results / name) for name in ("ml100k_bounded", "mine")), "--format", "json"]
    rows = json.loads(CliRunner().invoke(app, asked, catch_exceptions=False).stdout)
    assert {(row["experiment"], row["printed"]) for row in rows} == {("ml100k_bounded", 0.25), ("mine", None)}


def test_latex_has_only_letters_that_it_prints(made: Make) -> None:
    crossings = [*find_crossings(of_theta(made(3))), *find_crossings(made(2))]
    drawn = draw(crossings_table(with_printed_cells(crossings), {}), "latex") + draw(
        baselines_table(baseline_rows(made())), "latex"
    )
    assert " & provable & audited \\\\\n" in drawn
    assert {letter for letter in drawn if ord(letter) > 127} <= set("–é…")

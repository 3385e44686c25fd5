"""Tables and macros of crossings."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table
from dpmf_cli.report.tables.crossings import crossings_table, figure_macros
from dpmf_cli.report.tables.layout import draw
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]

CROSSED = Crossing(
    dataset="ml-1m",
    neighbours="bounded",
    mode="published",
    algorithm="isgd",
    label="isgd",
    baseline="GE",
    status=Status.CROSSED,
    printed=2.7,
    reproduced=2.4,
    low=2.1,
    high=Status.NOT_REACHED,
    recrosses=True,
    claimed=2.4,
    provable=float("inf"),
    over="runs",
    folds=1,
    runs=5,
    grid_low=0.1,
    grid_high=20.0,
    experiment="made",
)


def test_a_row_in_words() -> None:
    lines = draw(crossings_table([CROSSED])).splitlines()
    assert lines[0] == "ml-1m, bounded, published"
    assert lines[1].split() == [
        "algorithm",
        "baseline",
        "printed",
        "reproduced",
        "ratio",
        "claimed",
        "provable",
    ]
    assert lines[3].split() == ["isgd", "GE", "2.7", "2.40†", "[2.10,", ">20]*", "0.889", "2.40", "∞"]
    notes = "\n".join(lines[4:])
    assert "over runs only" in notes
    assert "† above the baseline again" in notes


def test_without_a_printed_cell_there_is_no_column_for_one() -> None:
    other = replace(CROSSED, printed=None, experiment="other")
    drawn = draw(crossings_table([other]))
    assert drawn.splitlines()[1].split() == ["algorithm", "baseline", "reproduced", "claimed", "provable"]
    assert drawn.splitlines()[3].split() == ["isgd", "GE", "2.40†", "[2.10,", ">20]*", "2.40", "∞"]
    assert "Friedman" not in drawn
    (record,) = json.loads(draw(crossings_table([other]), "json"))
    assert (record["printed"], record["ratio"]) == (None, None)
    mixed = draw(crossings_table([CROSSED, other])).splitlines()
    assert any(line.startswith("printed: by Friedman et al. (2016), where their") for line in mixed)
    rows = [line.split() for line in mixed if line.startswith("isgd")]
    assert [row[2] for row in rows] == ["2.7", "–"]
    assert [row[-3] for row in rows] == ["0.889", "–"]


def test_theta_has_a_column_where_a_crossing_has_one() -> None:
    lines = draw(
        crossings_table([replace(CROSSED, theta=0.153), replace(CROSSED, label="x", theta=None)])
    ).splitlines()
    assert lines[1].split() == [
        "algorithm", "baseline", "printed", "reproduced", "ratio", "θ", "claimed", "provable",
    ]  # fmt: skip
    assert lines[3].split()[-4:] == ["0.889", "0.153", "2.40", "∞"]
    assert lines[4].split()[-3:] == ["–", "2.40", "∞"]
    assert any(line.startswith("θ: the θ of the crossing") for line in lines)
    assert "θ" not in draw(crossings_table([CROSSED]))
    assert "$\\theta$" in draw(crossings_table([replace(CROSSED, theta=0.153)]), "latex")


def test_delta_is_named_in_a_footnote() -> None:
    drawn = draw(crossings_table([replace(CROSSED, delta=1e-6), replace(CROSSED, label="pure")]))
    lines = drawn.splitlines()
    assert lines[3].startswith("isgd§ ")
    assert lines[4].startswith("pure ")
    assert "§ (ε, δ)-DP with δ = 1e-06\n" in drawn
    both = draw(
        crossings_table([replace(CROSSED, delta=1e-6), replace(CROSSED, label="b", delta=1e-5, joint=True)])
    )
    assert "\nb‡§ " in both
    assert "§ (ε, δ)-DP with δ = 1e-06: isgd\n" in both
    assert "§ (ε, δ)-DP with δ = 1e-05: b\n" in both
    assert "§" not in draw(crossings_table([CROSSED]))
    record = json.loads(draw(crossings_table([replace(CROSSED, delta=1e-6, theta=0.153)]), "json"))[0]
    assert (record["delta"], record["theta"]) == (1e-6, 0.153)


def test_a_printed_reference_says_what_it_is() -> None:
    probe = replace(CROSSED, baseline="Cinematch probe", reference=True)
    quiz = replace(probe, baseline="Cinematch quiz", comparable=False)
    drawn = draw(crossings_table([probe, quiz]))
    assert "Cinematch probe, Cinematch quiz: Netflix's own recommender, as printed" in drawn
    assert "\nCinematch quiz: printed for that set of the complete data; only loosely comparable" in drawn
    assert "loosely" not in draw(crossings_table([probe]))
    assert "Netflix" not in draw(crossings_table([CROSSED]))


def test_statuses_stand_where_the_number_would() -> None:
    for status in (Status.NOT_REACHED, Status.BELOW_GRID, Status.INCOMPLETE, Status.NOT_RUN, Status.NO_DATA):
        cell = replace(
            CROSSED, status=status, reproduced=None, low=None, high=None, over="none", recrosses=False
        )
        line = draw(crossings_table([cell])).splitlines()[3]
        assert line.split("  ")[-1].strip()
        assert f"  {status.value}  " in line
        assert "[" not in line


def test_an_interval_out_of_the_grid_on_one_side_is_shown_even_without_a_crossing() -> None:
    cell = replace(
        CROSSED, status=Status.NOT_REACHED, reproduced=None, low=15.2, over="folds", recrosses=False
    )
    assert "not reached in the grid [15.2, >20] " in draw(crossings_table([cell]))
    below = replace(
        CROSSED, status=Status.BELOW_GRID, reproduced=None, low=Status.BELOW_GRID, high=0.3, over="folds"
    )
    assert "below the grid† [<0.1, 0.300] " in draw(crossings_table([below]))
    certain = replace(below, high=Status.BELOW_GRID)
    assert "[<0.1" not in draw(crossings_table([certain]))


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
    drawn = draw(crossings_table(with_printed_cells(crossings)), "latex") + draw(
        baselines_table(baseline_rows(made())), "latex"
    )
    assert {letter for letter in drawn if ord(letter) > 127} <= set("–é…")


def test_a_table_fits_80_columns_where_its_cells_allow(made: Make) -> None:
    crossed = [cell for cell in beside_print(find_crossings(made())) if cell.status == Status.CROSSED]
    assert max(map(len, draw(crossings_table(with_printed_cells(crossed))).splitlines()[:12])) <= 80


def test_rows_of_several_experiments_are_told_apart(made: Make) -> None:
    one = beside_print(find_crossings(made(1)))
    other = [replace(crossing, experiment="other") for crossing in one]
    drawn = draw(crossings_table([*one, *other]))
    assert "ml-1m, bounded, published (made)\n" in drawn
    assert "ml-1m, bounded, published (other)\n" in drawn


def defined(text: str) -> dict[str, str]:
    found = re.findall(r"^\\dpmfset\{([^{}]*)\}\{(.*)\}$", text, re.MULTILINE)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_every_crossing_and_baseline_has_its_number(made: Make) -> None:
    experiment = made(3)
    crossings = find_crossings(experiment)
    macros = defined(figure_macros(experiment, crossings))
    assert macros["made/IA"] == f"{experiment.baselines[1].mean()[0]:.4f}"
    assert len(macros) == 4 + 4 * len(crossings)
    for cell in crossings:
        name = f"made/{cell.label}/{cell.baseline}"
        assert macros[name] == (significant(cell.reproduced) if cell.reproduced else cell.status.value)
        assert macros[f"{name}/interval"].startswith("[") or cell.status == Status.NOT_REACHED
    assert macros["made/isgd/GE/provable"] == r"$\infty$"


def test_names_are_letters_that_tex_takes_and_never_twice(made: Make) -> None:
    experiment = made(2)
    crossings = [
        replace(cell, label=label)
        for cell, label in zip(find_crossings(experiment), ("λ #1", "λ %1", r"\input{x}", "a_b"), strict=True)
    ]
    names = list(defined(figure_macros(experiment, crossings)))
    assert {"made/lambda -1/IA", "made/lambda -1/GE", "made/textbackslashinput-x-/IA", "made/a_b/GE"} <= set(
        names
    )
    same = [replace(cell, label=label) for cell, label in zip(crossings[:1] * 2, ("#", "%"), strict=True)]
    assert {"made/-/IA", "made/-/IA'"} <= set(defined(figure_macros(experiment, same)))
    assert all(re.fullmatch(r"[A-Za-z0-9 _.,+()/'-]+", name) for name in names)

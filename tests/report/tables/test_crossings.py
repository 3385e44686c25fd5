"""Tables of crossings, read back in every format."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table
from dpmf_cli.report.tables.crossings import crossings_table
from dpmf_cli.report.tables.layout import FORMATS, draw
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
    for form in ("md", "latex"):
        assert "printed" not in draw(crossings_table([other]), form)
        assert "ratio" not in draw(crossings_table([other]), form)
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


def test_json_has_the_contracts_keys_and_types(made: Make) -> None:
    experiment = replace(made(4, incomplete="psgd"), name="ml1m_bounded")
    crossings = with_printed_cells(beside_print(find_crossings(experiment)))
    text = draw(crossings_table(crossings), "json")
    records = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert len(records) == len(crossings)
    required = (
        "dataset neighbours mode algorithm label baseline status printed reproduced low high ratio provable"
    )
    assert set(required.split()) <= set(records[0])
    for record in records:
        assert record["status"] in {status.value for status in Status}
        assert record["reproduced"] is None or isinstance(record["reproduced"], float)
        assert (record["reproduced"] is not None) == (record["status"] == "crossed")
        for end in ("low", "high"):
            assert record[end] is None or isinstance(record[end], float)
            assert record[f"{end}_status"] in (None, Status.BELOW_GRID, Status.NOT_REACHED)
            assert record[end] is None or record[f"{end}_status"] is None
        assert record["provable"] is None or record["provable"] == "inf" or record["provable"] > 0
    statuses = {record["status"] for record in records}
    assert statuses == {"crossed", "not reached in the grid", "incomplete", "not run", "data not present"}


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


def test_csv_reads_back_exactly(made: Make) -> None:
    crossings = beside_print(find_crossings(made()))
    text = draw(crossings_table(crossings), "csv")
    assert "\r" not in text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(crossings)
    for row, crossing in zip(rows, crossings, strict=True):
        assert row["label"] == crossing.label
        assert row["status"] == crossing.status.value
        assert row["reproduced"] == ("" if crossing.reproduced is None else repr(crossing.reproduced))
        assert row["ratio"] == ("" if crossing.ratio is None else repr(crossing.ratio))


def test_every_row_is_in_every_drawing(made: Make) -> None:
    crossings = with_printed_cells(beside_print(find_crossings(made(6))))
    count = len(crossings)
    drawn = {form: draw(crossings_table(crossings), form).splitlines() for form in ("table", "md", "latex")}
    groups = len({(crossing.dataset, crossing.neighbours, crossing.mode) for crossing in crossings})
    assert sum(line.startswith("| ") and "---" not in line for line in drawn["md"]) == count + groups
    assert {line.count("|") for line in drawn["md"] if line.startswith("|")} == {8}
    cells = [line for line in drawn["latex"] if line.endswith(r"\\") and "multicolumn" not in line]
    assert len(cells) == count + 1
    assert {line.count(" & ") for line in cells} == {6}
    assert (
        sum(f" {crossing.baseline} " in line for crossing, line in zip(crossings, cells[1:], strict=True))
        == count
    )
    rows = [line for line in drawn["table"] if " IA " in line or " GE " in line]
    assert len(rows) == count


def test_latex_is_balanced_and_ruled(made: Make) -> None:
    drawn = draw(crossings_table(beside_print(find_crossings(made(6)))), "latex")
    bare = drawn.replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert [drawn.count(rule) for rule in ("\\toprule", "\\midrule", "\\bottomrule")] == [1, 1, 1]
    assert drawn.startswith("{\\scriptsize")
    assert drawn.endswith("\\end{tabularx}}\n")


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


def test_an_unknown_format_is_an_error_with_a_hint() -> None:
    with pytest.raises(DpmfError, match='did you mean "latex"'):
        draw(crossings_table([]), "late")


@pytest.mark.parametrize("form", FORMATS)
def test_no_crossings_give_a_table_all_the_same(form: str) -> None:
    assert draw(crossings_table([]), form).endswith("\n")
    assert draw(baselines_table([]), form).endswith("\n")

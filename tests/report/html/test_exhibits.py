"""Tables and figures of papers: which are counted, made by another command, measured, or missing."""

import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import Agreement
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.experiment.config.documents import FOLDER
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.papers.claims import Exhibit, paper
from dpmf_cli.papers.printed import load, printed_reason
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.html import views
from dpmf_cli.report.html.views import ExhibitView, exhibit_view as view_of, paper_table
from tests.report.conftest import make


def exhibit_view(
    exhibit: Exhibit, tmp_path: Path, found: Any = None, data: Path | None = None, cache: Path | None = None
) -> ExhibitView:
    folders = Folders(data or tmp_path, cache or tmp_path, results=tmp_path)
    return view_of(exhibit, found or {}, folders)


def of_paper(key: str, name: str) -> Exhibit:
    return next(exhibit for exhibit in paper(key).exhibits if exhibit.name == name)


def test_statistics_are_counted_where_the_data_are(
    tmp_path: Path, real_data: Path, session_cache: Path
) -> None:
    exhibit = of_paper("friedman2016", "Table 2").model_copy(update={"data": ("ml-100k", "netflix")})
    view = exhibit_view(exhibit, tmp_path, data=real_data, cache=session_cache)
    here, absent = view.rows[:8], view.rows[8:]
    rows = {row.what: row for row in here}
    assert len(rows) == len(absent) == 8
    assert (rows["ratings"].printed, rows["ratings"].reproduced) == ("100,000", "100,000")
    assert {row.agreement for row in here} == {Agreement.AGREES}
    assert {row.agreement for row in absent} == {Agreement.MISSING}
    assert [each.waits_for and each.waits_for[0] for each in view.absent] == ["Netflix Prize"]
    assert view.absent[0].commands == ("dpmf datasets fetch netflix",)


def test_noise_is_drawn_where_the_data_are(tmp_path: Path, real_data: Path, session_cache: Path) -> None:
    exhibit = of_paper("neera2020", "Figure 2")
    assert exhibit_view(exhibit, tmp_path, data=real_data, cache=session_cache).picture.startswith(b"<?xml")
    nowhere = exhibit_view(exhibit, tmp_path)
    assert nowhere.picture == b""
    assert nowhere.absent[0].commands == ("dpmf datasets fetch ml-100k",)


@pytest.mark.parametrize("text", [None, ""])
def test_a_table_that_no_command_has_made_is_missing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "neera_table1.csv").write_text(text)
    view = exhibit_view(of_paper("neera2020", "Table 1"), tmp_path)
    assert view.table is None
    assert view.absent[0].commands[0].startswith("dpmf local traffic")


def test_a_table_that_another_command_has_made_is_read(tmp_path: Path) -> None:
    (tmp_path / "neera_table1.csv").write_text('group,method,up\n"Made, up",a,1\nMore,b,2\n')
    view = exhibit_view(of_paper("neera2020", "Table 1"), tmp_path)
    assert view.table is not None
    assert view.table.header == ("method", "up")
    assert [(group.title, group.rows) for group in view.table.groups] == [
        ("Made, up", (("a", "1"),)),
        ("More", (("b", "2"),)),
    ]


def improvements(tmp_path: Path, isgd: float) -> ExhibitView:
    grid = np.array([0.1, 1.0])

    def curve(algorithm: str, level: float) -> Measured:
        return Measured(
            algorithm, algorithm, grid, np.full((2, 1, 2), level), grid, grid, "local", "published"
        )

    curves = curve("blp_mog_mf", 1.0), curve("isgd_local", isgd), curve("local_mean", 1.1)
    experiment = Experiment("x", "ml-100k", "MovieLens 100K", 2, 10, 1, 1, curves, ())
    view = SimpleNamespace(name="x", collected=SimpleNamespace(experiment=experiment))
    found = {"neera_fig4_ml100k": view}
    return exhibit_view(of_paper("neera2020", "Section 4.3"), tmp_path, found)


def test_improvements_stand_beside_the_printed_ones(tmp_path: Path) -> None:
    first, second = improvements(tmp_path, 1 / 0.789).rows
    assert (first.printed, first.reproduced, first.change) == ("21 %", "21.1 ± 0.0 %", "+0.1 points")
    assert first.agreement == Agreement.AGREES
    assert (second.printed, second.change, second.agreement) == ("16 %", "+5.1 points", Agreement.DIFFERS)
    worse = improvements(tmp_path, 0.9).rows[0]
    assert worse.change == "−32.1 points"
    assert worse.agreement == Agreement.DIFFERS


def test_figures_of_several_experiments_have_a_panel_for_each_protection(
    tmp_path: Path,
) -> None:
    def view(name: str, neighbours: str, protects: Protection, **changed: Any) -> SimpleNamespace:
        curves = (replace(make().curves[0], neighbours=neighbours, protects=protects, **changed),)
        experiment = replace(make(), name=name, curves=curves)
        return SimpleNamespace(name=name, collected=SimpleNamespace(experiment=experiment))

    exhibit = of_paper("wang2017", "Figure 3")
    value = view("wang_fig1_ml1m", "bounded", Protection.VALUE)
    user = view("wang_fig2_ml1m", "user", Protection.USER)
    one = exhibit_view(exhibit, tmp_path, {value.name: value})
    both = exhibit_view(exhibit, tmp_path, {value.name: value, user.name: user})
    assert [each.picture.count(b'<g id="axes_') for each in (one, both)] == [1, 2]
    assert both.shown == ["wang_fig1_ml1m", "wang_fig2_ml1m"]
    assert [each.what for each in both.absent] == ["wang_fig1_ml100k", "wang_fig2_ml100k"]
    assert exhibit_view(exhibit, tmp_path).picture == b""
    waiting = view("wang_fig1_ml1m", "bounded", Protection.VALUE, missing=1)
    assert exhibit_view(exhibit, tmp_path, {waiting.name: waiting}).picture == b""


def test_what_was_not_run_names_its_command_and_what_it_waits_for(tmp_path: Path) -> None:
    exhibit = Exhibit(name="x", what="x", configs=("quickstart", "ml10m_bounded", "no_such_config"))
    ready, waiting, unknown = exhibit_view(exhibit, tmp_path).absent
    assert (ready.why, ready.waits_for) == ("not run yet", None)
    assert ready.commands == (f"dpmf run {FOLDER / 'quickstart.yaml'}",)
    assert waiting.commands == ("dpmf datasets fetch ml-10m", f"dpmf run {FOLDER / 'ml10m_bounded.yaml'}")
    assert waiting.waits_for is not None
    assert waiting.waits_for[0] == "MovieLens 10M"
    assert "its config is not here" in unknown.why


def test_printed_values_of_absent_data_are_unmet(tmp_path: Path) -> None:
    view = exhibit_view(of_paper("friedman2016", "Table 5"), tmp_path)
    assert {row.agreement for row in view.rows} == {Agreement.MISSING}
    assert len(view.rows) == 24  # 28 cells less four dashes
    assert len(exhibit_view(of_paper("friedman2016", "Table 3"), tmp_path).rows) == 16
    columns, lines = paper_table(view.rows)
    assert columns == ["MovieLens 100K", "MovieLens 1M", "MovieLens 10M", "Netflix Prize"]
    assert [(what, at) for what, at, _ in lines][:3] == [("PGE", "IA"), ("ISGD", "IA"), ("ISGD", "GE")]
    _, _, cells = lines[2]
    assert [cell and cell.printed for cell in cells] == ["12.5", "5.3", None, None]


def test_the_items_of_ml_1m_are_its_largest_id(real_data: Path) -> None:
    with zipfile.ZipFile(real_data / "ml-1m.zip") as archive:
        lines = archive.read("ml-1m/ratings.dat").splitlines()
    items = {int(line.split(b"::")[1]) for line in lines}
    printed = load("friedman2016")["table2"]["ml-1m"]
    assert max(items) == printed["items"] > len(items)
    for word in ("items", "density", "per_item"):
        assert f"{max(items):,}" in printed_reason("table2", "ml-1m", word)


def test_stated_reasons_of_counts_are_right() -> None:
    """The derived cells of table 2 follow from the counts that their reasons name."""
    rows = load("friedman2016")["table2"]
    for key, per_item in (("ml-1m", 253), ("ml-10m", 153.5)):
        row = rows[key]
        assert (
            row["ratings"] / row["items"]
            == pytest.approx(per_item, rel=1e-3)
            == pytest.approx(row["per_item"])
        )
        assert row["ratings"] / row["items"] / row["users"] == pytest.approx(row["density"], rel=0.03)
    netflix = rows["netflix"]
    per_user = netflix["ratings"] / netflix["users"]
    assert f"give {per_user:.1f}" in printed_reason("table2", "netflix", "per_user")
    assert f"give {per_user / netflix['items']:.4f}" in printed_reason("table2", "netflix", "density")


@pytest.mark.parametrize("table", ["table2", "table5"])
def test_every_reason_is_of_a_printed_cell(table: str) -> None:
    def paths(tree: Any) -> set[tuple[str, ...]]:
        if not isinstance(tree, dict):
            return {()}
        return {(key, *rest) for key, below in tree.items() for rest in paths(below)}

    printed = load("friedman2016")
    assert paths(printed[f"{table}_reasons"]) < paths(printed[table])


@pytest.mark.parametrize(
    ("name", "judged"),
    [
        ("ml100k_bounded", True),
        ("ml100k_bounded.held-out-1", True),
        ("ml1m_bounded.ml-100k.held-out-1", False),
        ("ml100k_bounded_corrected", False),
        ("wang_fig1_ml100k", False),
        ("mine", False),
    ],
)
def test_only_what_reproduces_a_printed_table_is_held_against_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, name: str, judged: bool
) -> None:
    """Wang and Tang run the same methods on the same data, but what Friedman et al. print is not from their paper."""
    collected = collect_folder(results / "ml100k_bounded")
    made = replace(collected, experiment=replace(collected.experiment, name=name, dataset="ml-100k"))
    monkeypatch.setattr(views, "collect_folder", lambda _: made)
    view = views.view_of(results / "ml100k_bounded")
    for rows in (view.rows, view.baselines):
        printed = [row for row in rows if row.printed != "–"]
        assert bool(printed) == judged
        assert any(row.change != "–" for row in rows) <= judged
        assert {row.agreement for row in rows if row not in printed} <= {Agreement.UNPRINTED}
        assert all(row.agreement != Agreement.UNPRINTED for row in printed)
    assert any(note.startswith("printed: by Friedman") for note in view.notes) == judged

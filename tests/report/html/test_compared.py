"""Verdicts at their bounds, each with its own sign."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dpmf_cli.evaluation.crossings import Crossing, Status
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.papers.printed import printed_reason
from dpmf_cli.report.html import experiment
from dpmf_cli.report.html.compared import (
    POINTS,
    SHARES,
    Agreement,
    Row,
    baseline_row,
    by_difference,
    by_ratio,
    crossing_agreement,
    crossing_row,
)
from dpmf_cli.report.html.page import _environment
from dpmf_cli.report.tables.baselines import BaselineRow

Pairs = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("verdict", "agrees", "near", "differs"),
    [
        (by_ratio, [(1, 1), (1.3, 1), (1, 1.3)], [(1.31, 1), (1, 1.5)], [(1.51, 1)]),
        (by_difference, [(1.005, 1), (0.995, 1)], [(1.006, 1)], [(0.979, 1)]),
        (partial(by_difference, bounds=POINTS), [(22, 20)], [(24, 20)], [(26, 20)]),
        (partial(by_ratio, bounds=SHARES), [(1000, 1000)], [(1006, 1000)], [(940, 1000)]),
    ],
)
def test_verdicts_at_their_bounds(
    verdict: Callable[[float, float], Agreement], agrees: Pairs, near: Pairs, differs: Pairs
) -> None:
    assert {verdict(*pair) for pair in agrees} == {Agreement.AGREES}
    assert {verdict(*pair) for pair in near} == {Agreement.NEAR}
    assert {verdict(*pair) for pair in differs} == {Agreement.DIFFERS}


def test_no_verdict_shares_its_sign_or_its_colour() -> None:
    assert len({each.sign for each in Agreement}) == len(Agreement)
    assert len({each.meaning for each in Agreement}) == len(Agreement)


def crossing(status: Status, **more: object) -> Crossing:
    return Crossing("ml-100k", "bounded", "published", "pge", "PGE", "IA", status, **more)  # type: ignore[arg-type]


def test_what_is_not_reached_differs_and_what_is_not_printed_is_no_verdict() -> None:
    assert crossing_agreement(crossing(Status.NOT_REACHED, printed=2.0)) == Agreement.DIFFERS
    assert crossing_agreement(crossing(Status.BELOW_GRID, printed=2.0)) == Agreement.DIFFERS
    assert crossing_agreement(crossing(Status.INCOMPLETE, printed=2.0)) == Agreement.MISSING
    assert crossing_agreement(crossing(Status.NOT_RUN, printed=2.0)) == Agreement.MISSING
    assert crossing_agreement(crossing(Status.CROSSED, reproduced=2.0)) == Agreement.UNPRINTED


def test_rows_hold_the_cells_of_the_tables() -> None:
    found = crossing(
        Status.CROSSED, printed=2.0, reproduced=1.81, low=1.74, high=1.88, over="folds", claimed=1.81,
        provable=float("inf"), joint=True, delta=1e-6, experiment="x",
    )  # fmt: skip
    row = crossing_row(found)
    assert (row.what, row.at, row.printed, row.reproduced) == ("PGE‡§", "IA", "2", "1.81 [1.74, 1.88]")
    assert (row.change, row.claimed, row.provable, row.source) == ("× 0.905", "1.81", "∞", "x")
    known = BaselineRow("ml-1m", "MovieLens 1M", "x", "IA", 0.9795, 0.9999, 0.001, 10, 1)
    assert baseline_row(known).agreement == Agreement.DIFFERS
    assert (
        baseline_row(BaselineRow("d", "D", "x", "IA", None, 1.0, None, 1, 1)).agreement == Agreement.UNPRINTED
    )
    waiting = baseline_row(BaselineRow("d", "D", "x", "IA", 1.0, None, None, 1, 1))
    assert (waiting.agreement, waiting.reproduced) == (Agreement.MISSING, "incomplete")


def test_a_cell_that_is_off_has_its_reason_beside_it() -> None:
    missed = Crossing(
        "ml-100k", "unbounded", "published", "psgd", "PSGD", "GE", Status.CROSSED, printed=60.0, reproduced=18.2,
        experiment="ml100k_unbounded",
    )  # fmt: skip
    stated = crossing_row(missed).reason
    assert stated == printed_reason("table5", "psgd", "GE", "ml-100k") != ""
    assert crossing_row(replace(missed, reproduced=55.0)).reason == ""
    reduced = replace(missed, experiment="ml100k_unbounded.held-out-1")
    assert crossing_row(reduced).reason == f"a reduced run; {stated}"
    assert crossing_row(replace(missed, baseline="IA")).reason == "no reason is known"
    assert crossing_row(replace(missed, baseline="IA", reproduced=43.0)).reason == ""  # near
    assert baseline_row(BaselineRow("d", "D", "x", "IA", 1.0, 1.1, None, 1, 1)).reason == "no reason is known"


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
    monkeypatch.setattr(experiment, "collect_folder", lambda _: made)
    view = experiment.view_of(results / "ml100k_bounded")
    for rows in (view.rows, view.baselines):
        printed = [row for row in rows if row.printed != "–"]
        assert bool(printed) == judged
        assert any(row.change != "–" for row in rows) <= judged
        assert {row.agreement for row in rows if row not in printed} <= {Agreement.UNPRINTED}
        assert all(row.agreement != Agreement.UNPRINTED for row in printed)
    assert any(note.startswith("printed: by Friedman") for note in view.notes) == judged


def headings(*rows: Row) -> list[str]:
    html = str(_environment().get_template("parts.html.j2").module.rows_table(rows, "a caption"))  # type: ignore[attr-defined]
    widths = {row.count("<td") for row in html.split("<tr>")[2:]}
    names = re.findall(r"<th[^>]*>([^<]*)</th>", html)
    assert widths == {len(names)}
    return names


def test_columns_that_would_be_empty_are_left_out() -> None:
    plain = crossing(Status.CROSSED, reproduced=2.0, claimed=2.0, provable=2.0)
    assert headings(crossing_row(plain)) == ["what", "meets", "reproduced", "claimed", "provable"]
    printed, over_theta = replace(plain, printed=2.0), replace(plain, theta=0.5)
    assert headings(*map(crossing_row, (plain, printed))) == [
        *("what", "meets", "agreement", "printed", "reproduced", "ratio", "claimed", "provable"),
    ]
    assert headings(crossing_row(over_theta))[3] == "θ"
    unprinted = BaselineRow("ml-1m", "MovieLens 1M", "x", "IA", None, 0.9999, 0.001, 10, 1)
    assert headings(baseline_row(unprinted)) == ["what", "reproduced"]

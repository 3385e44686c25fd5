"""Verdicts at their bounds, each with its own sign."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.report.html import views
from dpmf_cli.report.html.views import POINTS, SHARES, Agreement, by_difference, by_ratio

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

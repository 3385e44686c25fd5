"""What is compared with print has a sign of its own."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpmf_cli.evaluation.crossings import Agreement
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.report.html import views


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

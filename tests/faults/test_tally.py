"""The counts of one part of the suite replace that part's rows of the page, and no others."""

import json
from pathlib import Path

import pytest

from tests.faults import tally

HEAD = """\
before
<!-- counts -->
| suite | what | tried | runs resumed | accepted | refused | wrong | worst latency, ms |
|---|---|---:|---:|---:|---:|---:|---:|
"""
KILLED = "| faults | killed | 1,050 | 71 |  |  | 0 |  |\n"
RUN = "| interrupts | a run | 300 | 11 |  |  | 0 | 79 |\n| interrupts | all | 300 | 11 |  |  | 0 | 79 |\n"
END = "<!-- end of counts -->\nafter\n"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(tally, "ROOT", tmp_path)
    monkeypatch.setattr(tally, "PAGE", tmp_path / "page.md")
    full = "| faults | disk full | 12 | 3 |  |  | 0 |  |\n| faults | all | 1,062 | 74 |  |  | 0 |  |\n"
    (tmp_path / "page.md").write_text(HEAD + KILLED + full + RUN + END)
    return tmp_path / "page.md"


def test_rows_that_were_not_counted_stay_and_of_latencies_the_worst_is_kept(page: Path) -> None:
    tally.keep("faults", {"disk full": tally.Row(20, 4, 1).named(), "clock": tally.Row(6, 6).named()})
    tally.keep("interrupts", {"a plan": tally.Row(5, 0, 5, worst=90).named()})
    tally.keep("fuzz", {"archives": {"tried": 30_000, "accepted": 6_236, "refused": 23_764, "wrong": 0}})
    counted = """\
| faults | disk full | 20 | 4 |  |  | 1 |  |
| faults | clock | 6 | 6 |  |  | 0 |  |
| faults | all | 1,076 | 81 |  |  | 1 |  |
| interrupts | a run | 300 | 11 |  |  | 0 | 79 |
| interrupts | a plan | 5 | 0 |  |  | 5 | 90 |
| interrupts | all | 305 | 11 |  |  | 5 | 90 |
| fuzz | archives | 30,000 |  | 6,236 | 23,764 | 0 |  |
| fuzz | all | 30,000 |  | 6,236 | 23,764 | 0 |  |
"""
    assert page.read_text() == HEAD + KILLED + counted + END
    kept = json.loads((page.parent / "results" / "faults.json").read_text())
    assert kept["all"] == {"tried": 1076, "runs resumed": 81, "wrong": 1}

"""What a part of the suite counts replaces its own rows of the page, and no others."""

from pathlib import Path

import pytest

from tests.faults import tally

TABLE = """\
before
<!-- faults -->
| | injected | resumed |
|---|---:|---:|
| killed | 1,050 | 71 |
| disk full | 12 | 3 |
| all | 1,062 | 74 |
<!-- end of faults -->
after
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(tally, "ROOT", tmp_path)
    monkeypatch.setattr(tally, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text(TABLE)
    return tmp_path / "page.md"


def test_rows_that_were_not_counted_stay(page: Path) -> None:
    tally.keep(
        "faults", {"disk full": {"injected": 20, "resumed": 4}, "clock": {"injected": 6, "resumed": 6}}
    )
    rows = "| killed | 1,050 | 71 |\n| disk full | 20 | 4 |\n| clock | 6 | 6 |\n| all | 1,076 | 81 |\n"
    assert page.read_text() == TABLE[: TABLE.index("| killed")] + rows + TABLE[TABLE.index("<!-- end") :]


def test_rows_of_other_columns_are_not_merged_with(page: Path) -> None:
    tally.keep("faults", {"clock": {"injected": 6, "lost": 0}})
    assert "| | injected | lost |\n|---|---:|---:|\n| clock | 6 | 0 |\n| all | 6 | 0 |\n" in page.read_text()
    assert "killed" not in page.read_text()

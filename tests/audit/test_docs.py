"""The table of flaws in docs/audit.md is the one that the audit prints."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.audit.entries import KNOWN
from dpmf_cli.cli.main import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


@pytest.mark.slow
def test_every_known_flaw_is_found_and_the_page_shows_it(tmp_path: Path) -> None:
    arguments = ["audit", "--flaws", "--format", "md", "--results", str(tmp_path), "-j", "2"]
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0
    assert "not found" not in printed.stdout
    table = re.search(r"<!-- flaws -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert table is not None
    assert table[1].strip() == printed.stdout.strip()
    assert all(flaw.entry.replace("_", r"\_") in printed.stdout for flaw in KNOWN)

"""Paths that are too long or not text: one message, or the command works all the same."""

import os
import shutil
from pathlib import Path

import pytest

from tests.command import dpmf
from tests.results.test_made_before import MADE_BEFORE


@pytest.mark.parametrize("command", ["report", "verify", "plot", "crossings", "combined"])
@pytest.mark.parametrize("ending", ["", ".yaml"])
def test_a_name_that_is_too_long_is_one_message(tmp_path: Path, command: str, ending: str) -> None:
    said = dpmf(tmp_path, tmp_path, command, "x" * 300 + ending, expect=2).stderr
    assert said.startswith(f"dpmf: {'x' * 300}{ending}: ")


def test_a_report_lies_under_a_path_that_is_no_text(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"r\xff")
    shutil.copytree(MADE_BEFORE, odd)
    printed = dpmf(tmp_path, tmp_path, "report", str(odd / "grown"), PYTHONIOENCODING="utf-8:strict").stdout
    assert (odd / "grown" / "report.html").exists()
    assert printed.rstrip().endswith("/grown/report.html")
    assert "1      0" in dpmf(tmp_path, tmp_path, "verify", str(odd / "grown")).stdout

"""`dpmf local` from the command line: refusals."""

import sys
from pathlib import Path

import pytest

from dpmf_cli.cli import main as cli


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("/dev/full/y.png", "/dev/full/y.png: cannot be written: "),
        ("y.gif", "y.gif: name a .png, .svg or .pdf file"),
    ],
)
def test_a_figure_that_cannot_be_written_is_a_message(
    real_data: Path,
    session_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    out: str,
    message: str,
) -> None:
    monkeypatch.setenv("DPMF_CACHE", str(session_cache))
    monkeypatch.setattr(sys, "argv", ["dpmf", "local", "noise", out, "--data", str(real_data)])
    with pytest.raises(SystemExit) as exited:
        cli.main()
    assert exited.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"dpmf: {message}")

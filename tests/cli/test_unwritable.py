"""If standard output cannot be written, every command ends with one line, exit code 2 and no traceback."""

import contextlib
import errno
import io
import os
import sys
from pathlib import Path

import pytest
import typer

from dpmf_cli.cli import main as cli
from tests.command import dpmf

FULL = Path("/dev/full")
COMMANDS = typer.main.get_command(cli.app)
NAMES = [
    *(name for name in COMMANDS.commands),  # type: ignore[attr-defined]
    *(f"datasets {name}" for name in COMMANDS.commands["datasets"].commands),  # type: ignore[attr-defined]
    *(f"local {name}" for name in COMMANDS.commands["local"].commands),  # type: ignore[attr-defined]
]
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")


def said(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a command writes to stderr if its standard output is a full disk."""
    err = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["dpmf", *arguments])
    with FULL.open("w") as full, contextlib.redirect_stdout(full), contextlib.redirect_stderr(err):
        with pytest.raises(SystemExit) as ended:
            cli.main()
        sys.stdout.flush()  # as Python does when it ends: nothing is left to fail
    assert ended.value.code == 2
    return err.getvalue()


LINE = f"dpmf: standard output cannot be written ({os.strerror(errno.ENOSPC)}); free space there, or send it elsewhere\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_every_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, *name.split(), "--help") == LINE


@pytest.mark.parametrize(
    "name", ["datasets list", "datasets info ml-10m", "schema", "docs", "configs zhang2018"]
)
def test_what_is_printed_at_once_or_in_the_end(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    assert said(monkeypatch, *name.split()).endswith(LINE)


def test_a_run_keeps_what_it_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.yaml").write_text(
        "dataset: {kind: synthetic, like: ml-100k, users: 50, items: 40, ratings: 900}\nfolds: 2\nruns: 1\n"
        "epsilons: [1]\nalgorithms: [pge]\n"
    )
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    lines = said(monkeypatch, "run", "x.yaml", "-j", "1").splitlines()
    assert lines[-1] + "\n" == LINE
    assert "nothing to compute" in dpmf(tmp_path, tmp_path / "cache", "run", "x.yaml", "-j", "1").stderr

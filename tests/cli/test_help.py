"""Help: there is one for every command, with an example and in full sentences, and it appears at once."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer

from dpmf_cli import __version__
from dpmf_cli.cli.main import app

SECONDS = 0.3


def commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Every command with whether it is a group of others."""
    below = getattr(command, "commands", {})
    yield path, bool(below)
    for name, each in below.items():
        yield from commands(each, (*path, name))


ALL = list(commands(typer.main.get_command(app)))


@pytest.mark.parametrize(("path", "group"), ALL, ids=[" ".join(path) or "dpmf" for path, _ in ALL])
def test_every_command_explains_itself(
    path: tuple[str, ...], group: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    app([*path, "--help"], prog_name="dpmf", standalone_mode=False)
    text = capsys.readouterr().out
    assert f"Usage: {' '.join(('dpmf', *path))}" in text
    if group:
        assert "...\n" not in text.replace("ARGS]...", "")  # where a description was cut off
        assert " al.\n" not in text
    else:
        (example,) = (line for line in text.splitlines() if "Example:" in line)
        assert f"Example: {' '.join(('dpmf', *path))}" in example


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    app(["--version"], prog_name="dpmf", standalone_mode=False)
    assert capsys.readouterr().out == f"dpmf {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, dpmf_cli.cli.main; print(sorted({'numpy', 'numba', 'scipy', 'pandas', 'matplotlib', 'pydantic'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_help_answers_at_once() -> None:
    """The least CPU time of five: a busy machine may make one of them slow."""
    seconds = []
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-m", "dpmf_cli", "--help"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    assert min(seconds) < SECONDS

"""Runs the command as a process: in a folder, with a cache, and without data except those that its config makes."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from dpmf_cli.cli import main as cli
from tests.forked import Forked


def environment(cache: Path) -> dict[str, str]:
    folders = {"DPMF_CACHE": cache, "DPMF_DATA": cache / "no-data", "DPMF_STATE": cache / "state"}
    return {**os.environ, **{name: str(folder) for name, folder in folders.items()}}


def start(folder: Path, cache: Path, *arguments: str) -> subprocess.Popen[str]:
    """Runs `dpmf` with these arguments in a session of its own. Its standard output, the tables, is discarded."""
    return subprocess.Popen(
        [sys.executable, "-m", "dpmf_cli", *arguments],
        cwd=folder,
        env=environment(cache),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
    )


def fork(folder: Path, cache: Path, *arguments: str, **more: str) -> Forked:
    """The same in a fork of this process, which saves the imports. Patches of this process apply there.

    more   added to its environment
    """
    return Forked(list(arguments), folder, {**environment(cache), **more})


def dpmf(
    folder: Path, cache: Path, *arguments: str, expect: int = 0, **more: str
) -> subprocess.CompletedProcess[str]:
    """The output of a forked `dpmf` with these arguments, after it has ended with the expected exit code."""
    process = fork(folder, cache, *arguments, **more)
    printed, said = process.communicate(timeout=300)
    assert process.returncode == expect, said
    assert "Traceback" not in said
    return subprocess.CompletedProcess(arguments, expect, printed, said)


def in_process(*arguments: str) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of `dpmf` in this process and its folder."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["dpmf", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def task_files(folder: Path, results: str = "results") -> dict[str, bytes]:
    """The tasks that are finished, by their names."""
    root = folder / results
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("tasks/**/*.json")}


def wait_for_tasks(folder: Path, process: subprocess.Popen[str] | Forked, count: int) -> None:
    """Waits until a run has finished that many tasks, or has ended, or a minute is over."""
    deadline = time.monotonic() + 60
    while len(task_files(folder)) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)

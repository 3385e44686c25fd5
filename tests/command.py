"""Runs the command in this process or in another, in a folder, with a cache, and without data except those that its
config makes; and looks at the processes of a run."""

import contextlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import load_config
from dpmf_cli.studies import experiment

UNDRAWN = ("dpmf_cli.report.figures.style.file_of", lambda draw, form: form.encode())
"""A patch by which runs write the name of its format in place of a picture: to draw two takes half of a small run."""


def environment(cache: Path) -> dict[str, str]:
    folders = {"DPMF_CACHE": cache, "DPMF_DATA": cache / "no-data", "DPMF_STATE": cache / "state"}
    return {**os.environ, **{name: str(folder) for name, folder in folders.items()}}


def start(folder: Path, cache: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """Runs `dpmf` with these arguments in a session of its own. Its standard output, the tables, is discarded.

    more   added to its environment
    """
    return subprocess.Popen(
        [sys.executable, "-m", "dpmf_cli", *arguments],
        cwd=folder,
        env={**environment(cache), **more},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
    )


class Forked:
    """The parts of `subprocess.Popen` that the tests use, for a `dpmf` in a fork of this process, which has imported
    everything: one second instead of four. Patches of this process apply there."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
        self._said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        streams = [file.fileno() for file in self._said]
        self._process = multiprocessing.get_context("fork").Process(
            target=_become, args=(arguments, folder, environment, *streams)
        )
        self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        return self._process.exitcode

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Waits for the end, and returns standard output and standard error."""
        self._process.join(timeout)
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(f"dpmf, process {self.pid}", timeout)
        texts = []
        for file in self._said:
            with file:
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return texts[0], texts[1]


def _become(arguments: tuple[str, ...], folder: Path, environment: dict[str, str], *streams: int) -> None:
    from dpmf_cli.cli.entry import main

    os.setsid()
    for number, (name, stream) in enumerate(zip(("stdout", "stderr"), streams, strict=True), 1):
        os.dup2(stream, number)
        setattr(sys, name, os.fdopen(number, "w", errors="backslashreplace"))
    os.chdir(folder)
    os.environ.update(environment)
    places = environment.get("PYTHONPATH", "").split(os.pathsep)  # Python would have read these at its start
    sys.path[:0] = [place for place in places if place and place not in sys.path]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["dpmf", *arguments]
    main()


def fork(folder: Path, cache: Path, *arguments: str, **more: str) -> Forked:
    return Forked(arguments, folder, {**environment(cache), **more})


def ended(process: subprocess.Popen[str] | Forked, expect: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command that has to end with that exit code."""
    printed, said = process.communicate(timeout=600)
    assert process.returncode == expect, said
    assert "Traceback" not in said or expect == 1, said
    return printed or "", said


def dpmf(
    folder: Path, cache: Path, *arguments: str, expect: int = 0, **more: str
) -> subprocess.CompletedProcess[str]:
    """The output of a forked `dpmf` with these arguments, after it has ended with the expected exit code."""
    printed, said = ended(fork(folder, cache, *arguments, **more), expect)
    assert "Traceback" not in said
    return subprocess.CompletedProcess(arguments, expect, printed, said)


def here(
    monkeypatch: pytest.MonkeyPatch, folder: Path, cache: Path, *arguments: str, data: str = "none"
) -> int:
    """Runs `dpmf` with these arguments in this process, so that patches apply, and returns its exit code."""
    for name, value in {**environment(cache), "DPMF_DATA": str(folder / data)}.items():
        monkeypatch.setenv(name, value)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))  # which the command guards
    monkeypatch.chdir(folder)
    return _code(arguments)


def in_process(*arguments: str) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of `dpmf` in this process and its folder."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _code(arguments)
    return code, out.getvalue(), err.getvalue()


def _code(arguments: tuple[str, ...]) -> int:
    with mock.patch.object(sys, "argv", ["dpmf", *arguments]), pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def run_config(folder: Path, name: str, text: str = "", **more: Any) -> experiment.Finished:
    """Runs `name`.yaml of a folder, which `text` replaces, here, without pictures, and with no data but its own."""
    path = folder / f"{name}.yaml"
    if text:
        path.write_text(text)
    folders = Folders(folder, folder / "cache", folder, folder / "results")
    with mock.patch(*UNDRAWN):
        return experiment.run(load_config(path), folders, **more)


def task_files(folder: Path, results: str = "results") -> dict[str, bytes]:
    """The tasks that are finished, by their names."""
    root = folder / results
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("tasks/**/*.json")}


def wait_for_tasks(folder: Path, process: subprocess.Popen[str] | Forked, count: int) -> None:
    """Waits until a run has finished that many tasks, or has ended, or three minutes are over."""
    deadline = time.monotonic() + 180
    while len(task_files(folder)) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


def children(parent: int) -> list[int]:
    with contextlib.suppress(OSError):
        return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))
    return []


def workers(command: int) -> list[int]:
    """The living worker processes of a run."""
    found = []
    for process in (worker for run in children(command) for worker in children(run)):
        with contextlib.suppress(OSError):
            if b"processes import work" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


def session_ended(session: int, *, within: float = 30) -> bool:
    """Whether all processes of a session end by themselves."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False

"""Help for every command, in full sentences and at once; too low limits are an error at once."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from dpmf_cli import __version__
from dpmf_cli.cli.main import LIBRARIES, OF_A_THREAD, app
from dpmf_cli.cli.main import check_limits as check
from dpmf_cli.core.errors import DpmfError
from tests.command import dpmf, environment

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


HEAVY = (
    "numpy numba scipy pandas matplotlib pydantic requests python_calamine dpmf_cli.algorithms scipy.stats"
)
IMPORTED = {
    "--help": "",
    "datasets list": "numpy pydantic",
    "run mine.yaml": "numpy pydantic",
    "crossings mine.yaml": "numpy pydantic scipy",
    "crossings results/mine": "numpy pydantic scipy",
}
"""The heavy modules that commands may import where results are finished."""


def test_commands_import_no_more_than_they_need(tmp_path: Path) -> None:
    """Finished results are shown without what computes them, and as they were, unless something has changed."""
    made_up = "{kind: synthetic, like: ml-100k, users: 60, items: 40, ratings: 900}"
    (tmp_path / "mine.yaml").write_text(f"dataset: {made_up}\nepsilons: [1, 9]\nalgorithms: [pge]\n")
    _, _, first = (dpmf(tmp_path, tmp_path, command, "mine.yaml") for command in ("run", "crossings", "run"))
    for command, allowed in IMPORTED.items():
        code = f"""import sys; from dpmf_cli.cli.main import app; sys.argv = "dpmf {command}".split()
try: app()
finally: print(*({set(HEAVY.split())} & sys.modules.keys()), file=sys.stderr)"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
        )
        assert set(done.stderr.splitlines()[-1].split()) == set(allowed.split()), command
    for path in tmp_path.glob("remembered/*"):
        path.write_bytes(path.read_bytes()[:-1])
    again = dpmf(tmp_path, tmp_path, "run", "mine.yaml")
    assert (again.stdout, again.stderr) == (first.stdout, first.stderr)
    next(tmp_path.glob("results/tasks/*/*/*.json")).write_text("{}")
    for command, said in (("crossings", "`dpmf run` computes"), ("run", "set aside")):
        assert said in dpmf(tmp_path, tmp_path, command, "mine.yaml").stderr


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


def limited(mebibytes: int, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    most = mebibytes << 20
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )


def test_a_small_limit_is_refused() -> None:
    code = "import sys; sys.argv = ['dpmf', 'doctor']; from dpmf_cli.cli.main import main; main()"
    ended = limited(390, code, OPENBLAS_NUM_THREADS="3")
    assert (ended.returncode, ended.stderr) == (
        2,
        "dpmf: address space is limited to 390 MiB (ulimit -v), but the libraries need 672 MiB with 3 threads; "
        "raise the limit, or set OPENBLAS_NUM_THREADS=1 (512 MiB)\n",
    )


@pytest.mark.slow
def test_what_is_not_refused_suffices() -> None:
    code = "import dpmf_cli.studies.experiment, dpmf_cli.kernels.sgd, matplotlib.pyplot"
    ended = limited(LIBRARIES >> 20, code, OPENBLAS_NUM_THREADS="1")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("limit", [resource.RLIM_INFINITY, LIBRARIES + OF_A_THREAD])
def test_enough_is_enough(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    check()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (LIBRARIES + OF_A_THREAD - 1, limit))
    with pytest.raises(DpmfError):
        check()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    check()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "not a number")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(DpmfError, match="with 2 threads"):
        check()

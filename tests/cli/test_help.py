"""Help for every command, in full sentences; what commands import; too low limits are an error at once."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dpmf_cli import __version__
from dpmf_cli.cli.main import LIBRARIES, OF_A_THREAD, app, check_limits as check
from dpmf_cli.core import remembered
from dpmf_cli.core.errors import DpmfError
from tests.command import dpmf, environment


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


def test_every_command_that_prints_a_table_or_an_answer_has_json() -> None:
    found: dict[str, set[str]] = {}
    for path, group in ALL:
        command: Any = typer.main.get_command(app)
        for name in path:
            command = command.commands[name]
        if not group:
            found[" ".join(path)] = {word for each in command.params for word in each.opts}
    without = {name for name, words in found.items() if "--json" not in words}
    files = {"init", "plot", "report", "local noise", "release", "datasets fetch"}
    assert without == {*files, "predict", "schema", "docs"}  # of which these print CSV, JSON and Markdown


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    app(["--version"], prog_name="dpmf", standalone_mode=False)
    assert capsys.readouterr().out == f"dpmf {__version__}\n"


HEAVY = "numpy numba scipy pandas matplotlib pydantic requests python_calamine dpmf_cli.algorithms"
IMPORTED = {
    "--help": "",
    "datasets list": "numpy pydantic",
    "run mine.yaml": "numpy pydantic",
    "crossings mine.yaml": "numpy pydantic scipy",
}
"""The heavy modules that commands may import where results are finished."""


def test_commands_import_no_more_than_they_need(tmp_path: Path, undrawn: None) -> None:
    made_up = "{kind: synthetic, like: ml-100k, users: 60, items: 40, ratings: 900}"
    (tmp_path / "mine.yaml").write_text(f"dataset: {made_up}\nepsilons: [1, 9]\nalgorithms: [pge]\n")
    words = "run -j 1 mine.yaml", "crossings mine.yaml", "run mine.yaml"
    _, _, known = (dpmf(tmp_path, tmp_path, *each.split()) for each in words)
    for command, allowed in IMPORTED.items():
        code = f"""import sys; from dpmf_cli.cli.main import app; sys.argv = "dpmf {command}".split()
try: app()
finally: print(*({set(HEAVY.split())} & sys.modules.keys()), file=sys.stderr)"""
        python, env = [sys.executable, "-c", code], environment(tmp_path)
        said = subprocess.run(python, cwd=tmp_path, env=env, capture_output=True).stderr.decode()
        assert set(said.splitlines()[-1].split()) == set(allowed.split()), command
    shutil.rmtree(tmp_path / "remembered")
    found = dpmf(tmp_path, tmp_path, "run", "mine.yaml")
    assert (found.stdout, found.stderr) == (known.stdout, known.stderr)
    next(tmp_path.glob("results/tasks/*/*/*.json")).write_text("{}")
    assert all("damaged" in dpmf(tmp_path, tmp_path, "crossings", "mine.yaml").stderr for _ in range(2))


def test_what_has_changed_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "cache"))
    (file := tmp_path / "in" / "file").parent.mkdir()
    for change in (
        lambda _: file.touch(),
        lambda _: file.write_text("1"),
        lambda kept: kept.chmod(0o666),
        lambda kept: kept.write_bytes(kept.read_bytes().replace(b"value", b"other")),
        lambda _: monkeypatch.setattr(remembered, "_CODE", b"older"),
    ):
        remembered.remember("name", "value", remembered.state([file.parent]))
        (file.parent / "__pycache__").mkdir(exist_ok=True)
        assert remembered.recall("name") == "value"
        change(next(tmp_path.glob("cache/*/*")))
        assert remembered.recall("name") is None


def test_the_newest_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path))
    monkeypatch.setattr(remembered, "KEPT", 2)
    for at in range(4):
        remembered.remember(str(at), at, {})
        for path in (tmp_path / "remembered").iterdir():
            os.utime(path, (1, path.stat().st_mtime - 10))
    assert [remembered.recall(str(at)) for at in range(4)] == [None, None, 2, 3]


def test_a_run_on_other_data_is_not_remembered(tmp_path: Path, undrawn: None) -> None:
    rows = [f"u{user},i{item},{1 + user * item % 5}\n" for user in range(20) for item in range(9)]
    csv = "{kind: csv, name: r, path: r.csv, separator: ',', header: false, duplicates: last, "
    keys = "columns: {user: 0, item: 1, rating: 2}, scale: {minimum: 1, maximum: 5}}\nepsilons: [1]\nalgorithms: [pge]\n"
    (tmp_path / "own.yaml").write_text(f"dataset: {csv}{keys}")
    for given, says in ((rows, ""), ([*rows, rows[0]], "1 of 181 rows"), (rows[1:], "changed")):
        (tmp_path / "r.csv").write_text("".join(given))
        done = dpmf(tmp_path, tmp_path, "run", "own.yaml", "-j", "1", expect=2 * (says == "changed"))
        assert says in done.stderr


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

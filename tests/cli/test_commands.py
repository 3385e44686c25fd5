"""Single facts of commands: `dpmf configs`, `dpmf run` with very many curves, `dpmf local`, and odd paths.

If standard output cannot be written, every command ends with one line, exit code 2 and no traceback.
"""

import contextlib
import errno
import io
import os
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli import main as cli, run
from dpmf_cli.cli.main import app
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.papers.claims import all_papers
from dpmf_cli.studies.experiment import Finished
from tests.cli.test_help import ALL
from tests.command import dpmf, in_process
from tests.configs import SHIPPED
from tests.report.conftest import make
from tests.results.test_made_before import MADE_BEFORE


def test_every_config_is_listed_with_its_data_under_its_paper() -> None:
    listed = CliRunner().invoke(app, ["configs"])
    assert listed.exit_code == 0
    rows = {row.split()[0]: row for row in listed.stdout.splitlines() if row.strip()}
    assert {path.stem for path in SHIPPED} <= set(rows)
    assert "ml-1m" in rows["ml1m_bounded"]
    assert "Table 4" in rows["ml1m_bounded"]
    assert all(findings.title in listed.stdout for findings in all_papers().values())


def test_of_very_many_rows_the_first_are_printed_and_the_file_of_all_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = make(4)
    crossings = find_crossings(experiment, replicates=10)
    finished = Finished(Collected(experiment, {}), crossings, Path("results/made"), 0, 0, [])
    print(run._tables(finished), end="")
    whole = capsys.readouterr().out
    monkeypatch.setattr(run, "MOST_ROWS", 3)
    print(run._tables(finished), end="")
    cut = capsys.readouterr().out
    assert "left out" not in whole
    assert "\n5 of 8 rows are left out here; all of them: results/made/crossings.md\n" in cut
    assert "\n1 of 4 rows are left out here; all of them: results/made/curves.csv\n" in cut
    assert ("\npals " in whole, "\npals " in cut) == (True, False)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("/dev/full/y.png", "/dev/full/y.png: cannot be written ("),
        ("y.gif", "y.gif: name a .png, .svg or .pdf file"),
    ],
)
def test_a_figure_that_cannot_be_written_is_a_message(
    real_data: Path, session_cache: Path, monkeypatch: pytest.MonkeyPatch, out: str, message: str
) -> None:
    monkeypatch.setenv("DPMF_CACHE", str(session_cache))
    code, _, said = in_process("local", "noise", out, "--data", str(real_data))
    assert code == 2
    (line,) = said.strip().splitlines()
    assert line.startswith(f"dpmf: {message}")


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


FULL = Path("/dev/full")


def said(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a command writes to stderr if its standard output is a full disk."""
    if not FULL.exists():
        pytest.skip("no /dev/full on this system")
    err = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["dpmf", *arguments])
    with FULL.open("w") as full, contextlib.redirect_stdout(full), contextlib.redirect_stderr(err):
        with pytest.raises(SystemExit) as ended:
            cli.main()
        sys.stdout.flush()  # as Python does when it ends: nothing is left to fail
    assert ended.value.code == 2
    return err.getvalue()


LINE = f"dpmf: standard output cannot be written ({os.strerror(errno.ENOSPC)}); free space there, or send it elsewhere\n"


@pytest.mark.parametrize("path", [path for path, _ in ALL], ids=" ".join)
def test_the_help_of_every_command(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, *path, "--help") == LINE


@pytest.mark.parametrize("name", ["datasets list", "datasets info ml-10m", "schema", "docs", "configs"])
def test_what_is_printed_at_once_or_in_the_end(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPMF_DATA", str(tmp_path))
    monkeypatch.setattr("dpmf_cli.cli.papers._rows", lambda of, data: ())  # to list all configs takes seconds
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

"""The Makefile's targets call the commands that they name."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from docs.makers.pages import outside_of_tables
from dpmf_cli.report.leaders import shipped

REPOSITORY = Path(__file__).resolve().parents[2]


def commands(target: str) -> str:
    """The commands that make would run for a target; nothing is run."""
    asked = ["make", "--no-print-directory", "-n", target, "PYTHON=true"]
    return subprocess.run(asked, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def test_the_frontier_is_written_into_its_pages() -> None:
    said = commands("reproduce-frontier")
    assert "dpmf reproduce frontier -j 2\n" in said
    assert "python -m docs.makers.pages $page --results results > $page.part" in said
    for page in (REPOSITORY / "docs").glob("**/*.md"):
        text = page.read_text(encoding="utf-8")
        shown = ("<!-- output of dpmf frontier ", "<!-- output of dpmf levels configs/frontier_")
        is_of_it = any(each in text for each in shown)
        assert (f" {page.relative_to(REPOSITORY)}" in said) is is_of_it, page


def test_every_page_with_tables_that_are_made_is_checked() -> None:
    checked = commands("check").replace(";", " ")
    for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("**/*.md")]:
        # That of counts is made by tests.faults.tally.
        made = outside_of_tables(page.read_text(encoding="utf-8"))[1] or page.name == "counts.md"
        assert (f" {page.relative_to(REPOSITORY)} " in checked) is bool(made), page


def test_a_lock_of_another_python_is_refused(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements-dev.lock"):
        shutil.copy(REPOSITORY / name, tmp_path)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho '# Python 3.99'\n")
    python.chmod(0o755)
    asked = ["make", "run", "LOCKED=1", f"PYTHON={python}"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        "requirements-dev.lock is of another Python: leave out LOCKED, or name it by PYTHON=python3.11"
        in done.stderr
    )
    assert not (tmp_path / ".venv").exists()


PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize(
    ("lock", "wanted", "absent"),
    [
        ("requirements.lock", ["excel", "fetch", "zstd"], ["dev", "parquet"]),
        ("requirements-dev.lock", ["dev", "docs", "excel", "fetch", "parquet", "zstd"], []),
    ],
)
def test_a_lock_has_what_is_needed_with_hashes_and_nothing_of_developers_for_users(
    lock: str, wanted: list[str], absent: list[str]
) -> None:
    needed = [*PROJECT["dependencies"], *(each for extra in wanted for each in EXTRAS[extra])]
    text = re.sub(r"(?m)^#.*\n", "", (REPOSITORY / lock).read_text())
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all(re.search(r"\n    --hash=sha256:[0-9a-f]{64}( |$)", entry) for entry in entries)
    assert not any("//" in entry for entry in entries)
    locked = {
        each.name.replace(".", "-").lower(): each
        for each in map(Requirement, (e.split(" \\\n")[0] for e in entries))
    }
    for each in map(Requirement, needed):
        version = str(locked[re.sub(r"[._]", "-", each.name).lower()].specifier).removeprefix("==")
        assert each.specifier.contains(version, prereleases=True), each
    unwanted = {Requirement(each).name.lower() for extra in absent for each in EXTRAS[extra]}
    assert not unwanted & set(locked)


def test_the_container_is_of_one_digest_for_users_and_not_root() -> None:
    steps = [line for line in (REPOSITORY / "Containerfile").read_text().splitlines() if line[:1].isupper()]
    assert re.search(r"@sha256:[0-9a-f]{64}$", steps[0])
    assert "RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock" in steps
    assert [step for step in steps if step.startswith("USER")] == ["USER dpmf"]
    assert not any("[dev]" in step for step in steps)


def test_targets_call_the_commands_that_they_name() -> None:
    assert commands("reproduce-all").endswith("dpmf reproduce all -j 2\n")
    assert commands("reproduce-small").endswith("dpmf reproduce all --small -j 2\n")
    assert {each["name"] for each in shipped().experiments} <= set(commands("leaders").split())
    assert '-m pytest -m "not slow" -n 2 --dist loadfile' in commands("test")
    assert "-m pytest -m slow" in commands("test-slow")
    for suite in ("faults", "fuzz"):
        assert commands(f"test-{suite}").endswith(f"-m pytest tests/{suite}\n")

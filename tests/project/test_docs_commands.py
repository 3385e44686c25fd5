"""The commands in the README and on all pages.

`sh run` blocks are executed, with the files that the page shows. In other blocks, the commands, options, configs and
targets of make must exist.
"""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from dpmf_cli.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "ARTIFACT.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, its text, and its line."""

    words: tuple[str, ...]
    text: str
    line: int

    def said(self, name: str) -> str | None:
        """What a word of the fence gives: "exit=2" gives "2" for "exit"."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), None)

    @property
    def runs(self) -> bool:
        return self.words[:2] == ("sh", "run")

    @property
    def shown(self) -> list[str]:
        """The commands of dpmf and make in a block that is shown, not run."""
        if self.runs or self.words[:1] not in ((), ("sh",)):
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line.startswith(("dpmf ", "make "))]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(tuple(found["info"].split()), found["text"], text[: found.start()].count("\n") + 1)
        for found in BLOCK.finditer(text)
    ]


@pytest.fixture
def copy(tmp_path: Path, session_cache: Path) -> tuple[Path, dict[str, str]]:
    """A folder like that of a clone, without data, and an environment with `dpmf` on the path."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("dpmf", "-m dpmf_cli"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "DPMF_CACHE": str(session_cache),
        "DPMF_STATE": str(tmp_path / "state"),
        "DPMF_DATA": str(tmp_path / "datasets"),
    }
    return tmp_path, environment


def test_there_are_commands_to_run() -> None:
    assert sum(block.runs for page in PAGES for block in blocks(page)) >= 12


RUN = [page for page in PAGES if page.stem != "README" and any(block.runs for block in blocks(page))]
"""All pages with such commands but the README, whose commands tests/project/test_wheel.py runs."""


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_commands_of_a_page(page: Path, copy: tuple[Path, dict[str, str]]) -> None:
    """Each command ends as the page says. A block without a word after its fence is their output, line by line."""
    folder, environment = copy
    printed, found = "", blocks(page)
    for block in found:
        if file := block.said("file"):
            (folder / file).write_text(block.text)
        if not block.runs:
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            preexec_fn=one_core,
        )
        assert done.returncode == int(block.said("exit") or 0), f"{page.name}:{block.line}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        printed += done.stdout + done.stderr
    for line in (line for block in found if not block.words for line in block.text.splitlines()):
        assert line in printed


def one_core() -> None:
    """So that such small runs do not spend their few milliseconds on starting processes."""
    os.sched_setaffinity(0, {random.choice(list(os.sched_getaffinity(0)))})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A misspelt mark would silently leave a command untested."""
    for block in blocks(page):
        assert set(block.words[1:]) <= {"run", "exit=2", f"file={block.said('file')}"}, (
            f"{page.name}:{block.line}"
        )


def check_command(line: str) -> None:
    """Raises an error for a command that has an unknown subcommand, option, target, config, or experiment."""
    words = shlex.split(re.split(r"\s[>|&;]", line)[0], comments=True)
    if words[0] == "make":
        unknown = {word for word in words[1:] if "=" not in word} - TARGETS
        if unknown:
            raise LookupError(f"no target {unknown} in the Makefile")
        return
    command, rest = typer.main.get_command(app), words[1:]
    while below := getattr(command, "commands", None):
        command, rest = below[rest[0]], rest[1:]
    command.make_context(command.name, list(rest))
    for word in rest:
        path = ROOT / word
        if word.startswith("configs/") and not path.exists():
            raise LookupError(f"no {word}")
        # A glob would include the tables and tasks that lie beside the experiments.
        of_config = (ROOT / "configs" / f"{path.name}.yaml").exists()
        if word.startswith("results/") and not path.suffix and not of_config:
            raise LookupError(f"{word} is no experiment's folder")


SHOWN = [
    pytest.param(line, id=f"{page.stem}:{block.line}:{line.partition('#')[0].strip()}")
    for page in PAGES
    for block in blocks(page)
    for line in block.shown
]


@pytest.mark.parametrize("line", SHOWN)
def test_commands_that_are_shown_exist(line: str) -> None:
    check_command(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dpmf plott x", "plott"),
        ("dpmf datasets fetsh ml-1m", "fetsh"),
        ("dpmf plot --al", "--al"),
        ("dpmf datasets fetch --from x", "--from"),
        ("dpmf datasets fetch", "Missing parameter: key"),
        ("dpmf report configs/none.yaml > x", "no configs/none.yaml"),
        ("dpmf plot results/* --format pdf  # all", "no experiment's folder"),
        ("make reproduce-nobody JOBS=2", "reproduce-nobody"),
    ],
)
def test_what_is_not_there_is_found(line: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        check_command(line)

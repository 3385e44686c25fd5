"""The commands of the README and the guides, executed: `sh run` blocks, with the files that the page shows."""

import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCK = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: the words behind the fence, its text, and its line."""

    words: tuple[str, ...]
    text: str
    line: int

    @property
    def file(self) -> str | None:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)

    @property
    def runs(self) -> bool:
        return self.words[:2] == ("sh", "run")

    @property
    def expected(self) -> int:
        return next((int(word.removeprefix("exit=")) for word in self.words if word.startswith("exit=")), 0)


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(tuple(found["info"].split()), found["text"], text[: found.start()].count("\n") + 1)
        for found in BLOCK.finditer(text)
    ]


@pytest.fixture
def copy(tmp_path: Path, session_cache: Path) -> tuple[Path, dict[str, str]]:
    """A folder as a clone has it, without data, and an environment with `dpmf` on the path."""
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
        "DPMF_DATA": str(tmp_path / "datasets"),
    }
    return tmp_path, environment


def test_there_are_commands_to_run() -> None:
    assert sum(block.runs for page in PAGES for block in blocks(page)) >= 12


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.runs for block in blocks(page))], ids=lambda page: page.stem
)
def test_commands_of_a_page(page: Path, copy: tuple[Path, dict[str, str]]) -> None:
    """Each ends as the page says; a block without a word behind its fence is what they print, line by line."""
    folder, environment = copy
    printed, found = "", blocks(page)
    for block in found:
        if block.file:
            (folder / block.file).write_text(block.text)
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
        assert done.returncode == block.expected, f"{page.name}:{block.line}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        printed += done.stdout + done.stderr
    for line in (line for block in found if not block.words for line in block.text.splitlines()):
        assert line in printed


def one_core() -> None:
    """So that nothing is lost to starting processes for the few milliseconds of such small runs."""
    os.sched_setaffinity(0, {random.choice(list(os.sched_getaffinity(0)))})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A misspelt mark would leave a command untested without a word."""
    for block in blocks(page):
        assert set(block.words[1:]) <= {"run", "exit=2", f"file={block.file}"}, f"{page.name}:{block.line}"


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, *(ROOT / "docs").glob("**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"

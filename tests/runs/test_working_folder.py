"""A folder that somebody else has made, with modules beside the config: no process of a command runs one of them."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpmf_cli
from tests.algorithms.test_plugins import CONFIG as PLUGIN_CONFIG, EXAMPLE
from tests.command import dpmf, environment
from tests.runs.tiny import TINY

OTHERS = [
    "dpmf_cli",
    "numpy",
    "numba",
    "scipy",
    "yaml",
    "pydantic",
    "typer",
    "matplotlib",
    "sitecustomize",
    "usercustomize",
]
BY_PYTHON = "import runpy, sys; print(*sys.modules)"
"""Prints what Python has imported when it begins to look for the module that `-m` names."""

MARK = "open('RAN-' + __name__, 'w').close()\n"


def hostile(folder: Path) -> Path:
    """The folder, with a file for each module that Python might look for there."""
    before = subprocess.check_output([sys.executable, "-I", "-S", "-c", BY_PYTHON], text=True).split()
    for name in {*sys.stdlib_module_names, *OTHERS} - {*before, "dpmf_cli"}:
        (folder / f"{name}.py").write_text(MARK)
    return folder


def furnished(folder: Path) -> Path:
    """A folder with a config, a plugin and a file of ratings."""
    folder.mkdir()
    (folder / "tiny.yaml").write_text(TINY.replace("epochs: 1500", "epochs: 2"))
    (folder / "shop.yaml").write_text(PLUGIN_CONFIG)
    shutil.copy(EXAMPLE, folder / "pia.py")
    lines = [
        f"u{user},i{item},{(user * item) % 5 + 1}" for user in range(60) for item in range(user % 3, 30, 2)
    ]
    (folder / "ratings.csv").write_text("\n".join(("user,item,rating", *lines, "")))
    return folder


def ran(folder: Path, cache: Path, *words: str) -> str:
    """What the command prints in a hostile folder, of which it must run nothing."""
    command, env = [sys.executable, "-m", "dpmf_cli", *words], environment(cache)
    done = subprocess.run(command, cwd=hostile(folder), env=env, capture_output=True, text=True, check=False)
    assert not [*folder.glob("RAN-*")]
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMANDS = (
    "run tiny.yaml -j 1",
    "run shop.yaml --plugin pia.py -j 2",
    "audit tiny.yaml --pairs 2 --trials 20 -j 1",
    "audit tiny.yaml --pairs 2 --trials 20 -j 2",
    "advise ratings.csv -j 1",
    "advise ratings.csv -j 2",
)


@pytest.mark.parametrize(
    "words", ["run tiny.yaml -j 2", *(pytest.param(words, marks=pytest.mark.slow) for words in COMMANDS)]
)
def test_modules_beside_a_config_are_not_run(tmp_path: Path, session_cache: Path, words: str) -> None:
    printed = ran(furnished(tmp_path / "theirs"), session_cache, *words.split())
    clean = dpmf(furnished(tmp_path / "clean"), session_cache, *words.replace("-j 2", "-j 1").split())
    assert printed == clean.stdout


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("words", ["explore zhang2018 --settings 1", "reproduce neera2020 --small"])
def test_modules_beside_data_are_not_run(
    tmp_path: Path, session_cache: Path, real_data: Path, words: str, jobs: str
) -> None:
    ran(tmp_path, session_cache, *words.split(), "--data", str(real_data), "-j", jobs)


def test_where_a_process_looks_for_modules(tmp_path: Path) -> None:
    """Also if a program in Python calls dpmf: the working directory is left out, and what $PYTHONPATH names is not."""
    code = "import subprocess; from dpmf_cli.core.children import python; subprocess.run(python('print(sys.path)'))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "mine")}
    told = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=environment, text=True)
    assert str(tmp_path / "mine") in ast.literal_eval(told)
    assert not {"", ".", str(tmp_path)} & set(ast.literal_eval(told))


def test_python_is_started_in_one_place() -> None:
    """So what holds for the commands above holds for all."""
    sources = {path: path.read_text() for path in Path(dpmf_cli.__file__).parent.rglob("*.py")}
    starts = r"sys\.executable|\bget_context\b|multiprocessing.Process|ProcessPool|set_start_method"
    assert {path.name for path, text in sources.items() if re.search(starts, text)} == {"children.py"}

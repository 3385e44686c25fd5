"""The package as pip installs it: built, put into its own environment, and used outside the repository."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.project.test_docs_commands import blocks

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Installed:
    """The programs of an environment that has only the wheel, and a folder outside the repository."""

    programs: Path
    elsewhere: Path

    def dpmf(self, *words: str, code: int = 0) -> str:
        """The output of `dpmf`, or its message if it refuses."""
        done = ended(code, str(self.programs / "dpmf"), *words, at=self.elsewhere)
        return done.stderr if code else done.stdout


Install = Callable[[str], Installed]


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Builds the wheel, and installs it for a Python when a test first asks for that."""
    folder = tmp_path_factory.mktemp("wheel")
    ended(0, sys.executable, "-m", "build", "--outdir", "dist", str(REPOSITORY), at=folder)
    (wheel,) = folder.glob("dist/*.whl")

    @cache
    def made(python: str) -> Installed:
        environment = tmp_path_factory.mktemp("environment")
        (elsewhere := environment / "elsewhere").mkdir()
        ended(0, python, "-m", "venv", str(environment), at=folder)
        ended(0, str(environment / "bin" / "pip"), "install", "-q", "--no-compile", str(wheel), at=folder)
        return Installed(environment / "bin", elsewhere)

    return made


@pytest.fixture
def installed(install: Install) -> Installed:
    return install(sys.executable)


def pythons() -> Iterator[str]:
    """This Python, and the others of this machine that the package names: those of pyenv, or on the path."""
    yield sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    path = os.pathsep.join([*map(str, root.glob("versions/*/bin")), os.environ["PATH"]])
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for version in re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"])):
        found = shutil.which(f"python{version}", path=path)
        if found and version != "{}.{}".format(*sys.version_info):
            yield found


def test_a_plain_installation_runs_the_commands_of_the_readme(installed: Installed) -> None:
    shutil.copytree(REPOSITORY / "docs" / "examples", installed.elsewhere / "docs" / "examples")
    commands = "".join(block.text for block in blocks(REPOSITORY / "README.md") if block.runs)
    ended(
        0,
        "bash",
        "-euo",
        "pipefail",
        "-c",
        f"PATH={installed.programs}:$PATH\n{commands}",
        at=installed.elsewhere,
    )


@pytest.mark.parametrize("python", list(pythons()))
def test_the_wheel_alone_runs_configs_by_name(python: str, install: Install) -> None:
    installed = install(python)
    words = str(installed.programs / "python"), "-c", "import dpmf_cli; print(dpmf_cli.__file__)"
    where = ended(0, *words, at=installed.elsewhere).stdout
    assert where.startswith(str(installed.programs.parent))
    assert "ml1m_bounded" in installed.dpmf("configs")
    assert "PGE" in installed.dpmf("run", "quickstart", "-j", "2")
    assert "PGE" in installed.dpmf("crossings", "quickstart")
    assert "left: 0 of" in installed.dpmf("plan", "quickstart")
    assert (installed.elsewhere / "results" / "quickstart" / "crossings.md").exists()
    assert 'did you mean "ml1m_bounded"' in installed.dpmf("plan", "ml1m_bouded", code=2)


def test_the_wheel_alone_says_which_extra_a_command_needs(installed: Installed) -> None:
    (installed.elsewhere / "r.parquet").write_bytes(b"PAR1 and so on")
    assert "pip install 'dpmf[parquet]'" in installed.dpmf("init", "r.parquet", code=2)
    assert "pip install 'dpmf[fetch]'" in installed.dpmf(
        "datasets", "fetch", "ml-100k", "--data", ".", code=2
    )


def test_the_wheel_alone_reproduces_a_paper_in_small(installed: Installed, real_data: Path) -> None:
    installed.dpmf("reproduce", "friedman2016", "--small", "--data", str(real_data))
    assert (installed.elsewhere / "results" / "small" / "report.html").exists()


def ended(code: int, *words: str, at: Path) -> subprocess.CompletedProcess[str]:
    """The result of a command with that exit code, run in that folder without the repository on its path."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=at, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done

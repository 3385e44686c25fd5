"""Every import of dpmf is installed with it, or with an extra that a message names if it is missing."""

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from dpmf_cli.cli.health import EXTRAS
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.guess import guess_format
from dpmf_cli.experiment.running.plan import cluster_executor

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BESIDE = {
    "dpmf_cli/testing/__init__.py": "pytest",
    "dpmf_cli/testing/contract.py": "pytest",
    "dpmf_cli/datasets/fetch.py": "pip",
}
"""Packages that may be missing, by the module that imports them: plugins are tested with pytest, and without pip its
index is not used as a mirror."""
BROUGHT = {"llvmlite": "numba", "pydantic-core": "pydantic", "markupsafe": "jinja2"}
"""Packages that a dependency consists of, and brings with it."""


def names(requirements: list[str]) -> set[str]:
    """The names of the distributions in a list of requirements, as pip normalises them."""
    return {re.split(r"[^A-Za-z0-9._-]", each)[0].lower().replace("_", "-") for each in requirements}


def imported(source: str) -> set[str]:
    """The top-level names of all modules imported in a source, including imports inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found - sys.stdlib_module_names - {"dpmf_cli", "compression"}


def test_every_import_is_of_a_dependency_or_of_an_extra() -> None:
    brought = packages_distributions()
    plain = names(PROJECT["dependencies"])
    extras = {module for extra, module in EXTRAS.items() if extra in PROJECT["optional-dependencies"]}
    assert len(extras) == len(EXTRAS) >= 2
    for path in (ROOT / "dpmf_cli").rglob("*.py"):
        file = str(path.relative_to(ROOT))
        for module in imported(path.read_text()) - extras - {BESIDE.get(file)}:
            known = {each.lower().replace("_", "-") for each in brought.get(module, [module])}
            assert {BROUGHT.get(each, each) for each in known} & plain, (
                f"{file}: {module} is in no list of pyproject.toml"
            )


def parquet_is_read(folder: Path) -> None:
    (folder / "r.parquet").write_bytes(b"PAR1 and so on")
    guess_format(folder / "r.parquet")


def a_cluster_is_asked(folder: Path) -> None:
    cluster_executor("tcp://127.0.0.1:1", 1, print)


USED: dict[str, Callable[[Path], None]] = {"parquet": parquet_is_read, "cluster": a_cluster_is_asked}
"""The features that need an extra, by the extra's name."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_without_an_extra_the_message_says_how_to_get_it(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, EXTRAS[extra], None)
    monkeypatch.delitem(sys.modules, "dpmf_cli.experiment.running.cluster", raising=False)
    with pytest.raises(DpmfError, match=rf"; install it with: pip install 'dpmf\[{extra}\]'$"):
        USED[extra](tmp_path)

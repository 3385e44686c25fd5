"""The tree is as described: papers' methods by their keys, the paths of docs/design.md, one class per name, a small root."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dpmf_cli"
DESIGN = (ROOT / "docs" / "design.md").read_text()

FOLDERS = sorted(
    f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE
)
"""Every package folder, as docs/design.md writes it."""


def test_every_module_of_a_paper_has_a_method_of_it_and_its_key_if_it_has_one() -> None:
    methods = {**BASELINES, **PRIVATE}
    assert {method.__module__.split(".")[2] for method in map(methods.get, BASELINES)} == {"baselines"}
    keys: dict[Path, set[str]] = defaultdict(set)
    for key, method in methods.items():
        keys[PACKAGE.parent.joinpath(*method.__module__.split(".")).with_suffix(".py")].add(key)
    for path in (PACKAGE / "algorithms").glob("*/[!_]*.py"):
        if path.parent.name not in ("shared", "beyond", "baselines"):
            assert len(keys[path]) > 1 or keys[path] == {path.stem}, path


def paths_named(text: str) -> set[str]:
    """The folders (`a/b/`) and files (`a/b.py`) in backticks on a page, relative to the root or to the package."""
    return set(re.findall(r"`((?:[\w.*-]+/)+|(?:[\w.*-]+/)*[\w.*-]+\.py)`", text))


def not_there(text: str) -> set[str]:
    return {name for name in paths_named(text) if not any(any(base.glob(name)) for base in (ROOT, PACKAGE))}


def test_every_path_of_the_design_exists() -> None:
    assert not_there(DESIGN) == set()


def test_every_folder_of_the_package_is_in_the_design() -> None:
    assert set(FOLDERS) - paths_named(DESIGN) == set()


@pytest.mark.parametrize("name", ["kernals/", "kernels/lane.py", "privacy/nothing*.py", "privacy.py"])
def test_a_path_that_is_not_there_is_found(name: str) -> None:
    there = "`kernels/`, `dpmf_cli/kernels/`, `kernels/als.py`, `privacy/local*.py`, `ratings.users`"
    assert not_there(f"{there} and `{name}`.") == {name}


def test_no_two_classes_have_one_name() -> None:
    classes = Counter(
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    )
    assert [name for name, times in classes.items() if times > 1] == []


def test_the_package_has_seventeen_rooms_at_most() -> None:
    rooms = [*PACKAGE.glob("*.py"), *(path.parent for path in PACKAGE.glob("*/__init__.py"))]
    assert len(rooms) <= 17

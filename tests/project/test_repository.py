"""Facts of the repository: CI runs from a clone only, one version is stated, and a built package has every file.

The tree is as described: papers' methods by their keys, the paths of docs/design.md, one class per name, a small root.

Every import of dpmf is installed with it, or with an extra that a message names if it is missing.
"""

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

import dpmf_cli
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.cli.health import EXTRAS
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.archives import Source, Wanted
from dpmf_cli.datasets.catalog import ENTRIES
from dpmf_cli.datasets.fetch import fetch
from dpmf_cli.datasets.guess import guess_format
from dpmf_cli.datasets.publishers import parse_jester

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / ".ci" / "run").read_text()


def test_no_path_leads_outside_of_the_repository() -> None:
    program = re.sub(r"#.*", "", SCRIPT)
    first, *rest = [line for line in program.splitlines() if ".." in line]
    assert first == 'cd "$(dirname "$0")/.."'
    assert rest == []
    assert set(re.findall(r"(?<![\w.}])/[\w/]+", program)) <= {"/dev/null", "/usr/bin/env"}


def test_the_version_is_cited_and_stands_in_the_changelog() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == dpmf_cli.__version__
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", dpmf_cli.__version__]


PACKAGE = ROOT / "dpmf_cli"


def test_files_that_are_not_modules_are_packed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = {path for pattern in settings["package-data"]["dpmf_cli"] for path in PACKAGE.glob(pattern)}
    files = {
        path for path in PACKAGE.rglob("*.*") if path.suffix != ".py" and path.parent.name != "__pycache__"
    }
    assert {path.name for path in files} >= {"catalog.yaml", "friedman2016.yaml", "style.css", "py.typed"}
    assert files - packed == set()


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
    extras = {module.partition(".")[0] for module in EXTRAS.values()} | {"urllib3"}
    assert set(EXTRAS) | {"dev", "docs", "bench"} == set(PROJECT["optional-dependencies"])
    for path in (ROOT / "dpmf_cli").rglob("*.py"):
        file = str(path.relative_to(ROOT))
        for module in imported(path.read_text()) - extras - {BESIDE.get(file)}:
            known = {each.lower().replace("_", "-") for each in brought.get(module, [module])}
            assert {BROUGHT.get(each, each) for each in known} & plain, (
                f"{file}: {module} is in no list of pyproject.toml"
            )


def guess(folder: Path, content: bytes) -> object:
    (folder / "ratings").write_bytes(content)
    return guess_format(folder / "ratings")


NEEDING: dict[str, Callable[[Path], object]] = {
    "excel": lambda folder: parse_jester(Source((folder / "jester.zip",), Wanted(("*.xls",)), "")),
    "fetch": lambda folder: fetch(ENTRIES["ml-100k"], folder, folder, confirm=pytest.fail),
    "parquet": lambda folder: guess(folder, b"PAR1 and so on"),
    "zstd": lambda folder: guess(folder, b"\x28\xb5\x2f\xfd and so on"),
}
"""What needs each extra, given an empty folder."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_without_an_extra_the_message_says_how_to_get_it(
    extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, EXTRAS[extra], None)
    with pytest.raises(DpmfError, match=rf"; install it with: pip install 'dpmf\[{extra}\]'$"):
        NEEDING[extra](tmp_path)


def ways_past(source: str) -> Iterator[str]:
    """Ways to a terminal or a CSV file that bypass the one function: streams other than the current
    `sys.stdout` and `sys.stderr`, their bytes and file numbers, writers of CSV, and a progress bar without a
    named stream."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(ast.Name("sys"), "__stdout__" | "__stderr__"):
                yield f"sys.{node.attr}"
            case ast.Attribute(ast.Attribute(ast.Name("sys"), "stdout" | "stderr"), "buffer" | "fileno"):
                yield f"sys.{node.value.attr}.{node.attr}"  # type: ignore[attr-defined]
            case ast.Attribute(ast.Name("os"), "write" | "fdopen" | "writev"):
                yield f"os.{node.attr}"
            case ast.Attribute(ast.Name("csv"), "writer" | "DictWriter"):
                yield f"csv.{node.attr}"
            case ast.ImportFrom("csv" | "sys", names):
                yield from (
                    name.name for name in names if name.name in ("writer", "DictWriter", "stdout", "stderr")
                )
            case ast.Attribute(_, "to_csv"):
                yield "to_csv"
            case ast.Call(ast.Name("open"), [ast.Constant(1 | 2), *_]):
                yield "open"
            case ast.Call(ast.Name("unguarded")):
                yield "unguarded"
            case ast.Call(ast.Name("tqdm")):
                # Its own stream is the guarded one, which shows what moves the cursor.
                if not any(key.arg == "file" for key in node.keywords):
                    yield "tqdm"


def test_what_goes_past_is_the_bar_of_progress_and_the_last_line() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), way)
        for path in PACKAGE.rglob("*.py")
        for way in ways_past(path.read_text(encoding="utf-8"))
    }
    assert found == {
        ("core/terminal.py", "csv.writer"),
        ("core/terminal.py", "unguarded"),
        ("datasets/fetch.py", "unguarded"),
        ("datasets/own_text.py", "csv.writer"),  # ratings in JSON, for the reader of CSV
        ("studies/session.py", "to_csv"),  # ratings, which stay as they are, for dpmf itself
        ("cli/entry.py", "os.write"),
    }


@pytest.mark.parametrize(
    "source",
    [
        "print('x', file=sys.__stderr__)",
        "sys.stdout.buffer.write(b'x')",
        "os.write(2, b'x')",
        "csv.writer(stream)",
        "from csv import DictWriter",
        "from sys import stderr",
        "frame.to_csv(path)",
        "open(2, 'w')",
        "tqdm(total=3)",
        "unguarded(sys.stdout).write('x')",
    ],
)
def test_each_way_past_is_found(source: str) -> None:
    assert list(ways_past(source)) != []


def test_the_command_guards_its_streams_before_all_else() -> None:
    tree = ast.parse((PACKAGE / "cli" / "main.py").read_text(encoding="utf-8"))
    (main,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    assert ast.unparse(main.body[1]) == "terminal.guard()"

"""How the repository's Markdown becomes the site's."""

import importlib.util
import sys
from pathlib import PurePosixPath
from types import ModuleType, SimpleNamespace

import pytest

from tests.committed import ROOT


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"website_{name}", ROOT / "docs" / "website" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS = loaded("hooks")


PAPER = "docs/papers/zhang2018.md"


@pytest.mark.parametrize(
    ("page", "line", "becomes"),
    [
        ("README.md", "[a](docs/statistics.md#ranking) `[c](docs/x.md)`", "[a](statistics.md#ranking) `[c](docs/x.md)`"),
        ("results/README.md", "[a](../docs/privacy.md)", "[a](../privacy.md)"),
        (PAPER, "[a](../../CONTRIBUTING.md)", "[a](../CONTRIBUTING.md)"),
        (PAPER, "![a](explored/x.png)", "![a](explored/x.png)"),
        (PAPER, "[a](https://example.org/x.md) [b](#c)", "[a](https://example.org/x.md) [b](#c)"),
        ("docs/operations.md", "<!-- claims of neera2020 -->", ""),
        ("docs/operations.md", "<!-- ::: dpmf_cli.fit -->", "::: dpmf_cli.fit"),
    ],
)  # fmt: skip
def test_links_are_mapped_from_the_repository_to_the_site(page: str, line: str, becomes: str) -> None:
    uri = PurePosixPath(page.removeprefix("docs/"))
    assert list(HOOKS.lines_of_site([line], PurePosixPath(page), uri)) == [becomes]


@pytest.mark.parametrize(
    ("page", "becomes"),
    [
        (
            "```sh run exit=2\n[a](docs/operations.md)\n\n  two\n- three\n```\n```yaml file=mine.yaml\n```",
            '```sh\n[a](docs/operations.md)\n\n  two\n- three\n```\n```yaml title="mine.yaml"\n```',
        ),
        (
            "1. one\n\n   ```python\n   x\n     y\n   ```\n\n   more\n2. two\n   lines\n3. three",
            "1. one\n\n    ```python\n    x\n      y\n    ```\n\n    more\n\n2. two\n    lines\n3. three",
        ),
    ],
)
def test_blocks_lose_the_marks_of_tests_and_items_of_lists_are_indented_by_four(
    page: str, becomes: str
) -> None:
    path = PurePosixPath("README.md")
    assert list(HOOKS.lines_of_site(page.splitlines(), path, path)) == becomes.splitlines()


def test_rows_of_a_table_have_the_columns_of_its_header() -> None:
    page = "| a | b |\n|---|---|---|\n| 1 | 2 |\n| `x|y` | 2 |\n| `x\\|y` | 2 |\n```\n| 1 |\n```\n| 1 |"
    assert list(HOOKS.broken_rows(page.splitlines())) == [2, 4]
    broken = {
        str(page.relative_to(ROOT)): rows
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]
        if (rows := list(HOOKS.broken_rows(page.read_text(encoding="utf-8").splitlines())))
    }
    assert broken == {}


def test_docstrings_that_list_names_become_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object, Object=object))
    text = "Fits.\n\nusers, items   (n,) ids,\n               or text\nscale          1 | 2\n\nA method  of two spaces."
    assert loaded("docstrings").with_tables(text) == (
        "Fits.\n\n| | |\n|---|---|\n| `users`, `items` | (n,) ids, or text |\n| `scale` | 1 \\| 2 |\n\n"
        "A method  of two spaces."
    )

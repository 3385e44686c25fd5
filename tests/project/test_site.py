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


@pytest.mark.parametrize(
    ("page", "uri", "line", "becomes"),
    [
        (
            "README.md",
            "README.md",
            "[a](docs/statistics.md#ranking) `[c](docs/design.md)`",
            "[a](statistics.md#ranking) `[c](docs/design.md)`",
        ),
        ("results/README.md", "results/README.md", "[a](../docs/privacy.md)", "[a](../privacy.md)"),
        (
            "docs/papers/zhang2018.md",
            "papers/zhang2018.md",
            "[a](../../CONTRIBUTING.md)",
            "[a](../CONTRIBUTING.md)",
        ),
        ("docs/papers/zhang2018.md", "papers/zhang2018.md", "![a](explored/x.png)", "![a](explored/x.png)"),
        (
            "docs/operations.md",
            "operations.md",
            "[a](https://example.org/x.md) [b](#c)",
            "[a](https://example.org/x.md) [b](#c)",
        ),
        ("docs/operations.md", "operations.md", "<!-- claims of neera2020 -->", ""),
        ("docs/operations.md", "operations.md", "<!-- ::: dpmf_cli.fit -->", "::: dpmf_cli.fit"),
    ],
)
def test_links_are_mapped_from_the_repository_to_the_site(
    page: str, uri: str, line: str, becomes: str
) -> None:
    assert list(HOOKS.lines_of_site([line], PurePosixPath(page), PurePosixPath(uri))) == [becomes]


def test_blocks_keep_their_text_and_lose_the_marks_of_tests() -> None:
    page = [
        "```sh run exit=2",
        "[a](docs/operations.md)",
        "",
        "  two",
        "- three",
        "```",
        "```yaml file=mine.yaml",
        "```",
    ]
    made = list(HOOKS.lines_of_site(page, PurePosixPath("README.md"), PurePosixPath("README.md")))
    assert made == ["```sh", *page[1:6], '```yaml title="mine.yaml"', "```"]


def test_items_of_lists_are_indented_by_four_and_end_where_the_next_begins() -> None:
    page = [
        "1. one",
        "",
        "   ```python",
        "   x",
        "     y",
        "   ```",
        "",
        "   more",
        "2. two",
        "   lines",
        "3. three",
    ]
    made = list(HOOKS.lines_of_site(page, PurePosixPath("x.md"), PurePosixPath("x.md")))
    assert made == [
        *("1. one", "", "    ```python", "    x", "      y", "    ```", "", "    more", ""),
        *("2. two", "    lines", "3. three"),
    ]


def test_rows_of_a_table_have_the_columns_of_its_header() -> None:
    page = [
        "| a | b |",
        "|---|---|---|",
        "| 1 | 2 |",
        "| `x|y` | 2 |",
        r"| `x\|y` | 2 |",
        "```",
        "| 1 |",
        "```",
        "| 1 |",
    ]
    assert list(HOOKS.broken_rows(page)) == [2, 4]
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

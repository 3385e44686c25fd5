"""How the repository's Markdown becomes the site's.

Every link, anchor and path in a committed page leads somewhere, and every page is in the site's navigation.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.committed import ROOT, committed


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
        ("README.md", "[a](docs/statistics.md#ranking) `[c](docs/design.md)`", "[a](statistics.md#ranking) `[c](docs/design.md)`"),
        ("results/README.md", "[a](../docs/privacy.md)", "[a](../privacy.md)"),
        (PAPER, "[a](../../CONTRIBUTING.md)", "[a](../CONTRIBUTING.md)"),
        (PAPER, "![a](../figures/x.svg)", "![a](../figures/x.svg)"),
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
    page = "| a | b |\n|---|---|---|\n| 1 | 2 |\n| `x|y` | 2 |\n| `x\\|y` | 2 |\n```\n| 1 |\n```\n| 1 |\n\n| a |\n|---|"
    assert list(HOOKS.broken_rows(page.splitlines())) == [2, 4, 12]
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


KINDS = ("py", "yaml", "yml", "html", "toml")
CODE = committed(*(f"**/*.{kind}" for kind in KINDS), "Makefile", "Containerfile", ".ci/*")
PAGES = [page for page in committed("**/*.md") if not page.is_symlink()]

FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"[.a-z_]+/[\w./*-]+(?:\.[a-z]+|/)")
PAGE_IN_CODE = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
MADE = ("results/", "released/", "site/", "bin/")
"""Folders that commands write to, which are not in the repository."""
NO_LONGER = "CHANGELOG.md"
"""The page that may name files that no longer exist."""


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page: those that it sets, and its headings as GitHub and the site name them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = [*re.findall(r"^#+ (.+)$", text, re.MULTILINE), *re.findall(r'<a id="(.+?)">', text)]
    words = (re.sub(r"[^\w\- ]", "", head.strip().lower()) for head in heads)
    return frozenset(each.replace(" ", "-") for each in words)


def missing(target: str, folder: Path) -> bool:
    """Whether a link from a page in that folder leads nowhere."""
    name, _, anchor = target.partition("#")
    path = (folder / name).resolve()
    return not path.exists() or (bool(anchor) and path.suffix == ".md" and anchor not in anchors(path))


def broken(text: str, page: Path) -> Iterator[str]:
    """The targets of links and the paths on a page that do not exist."""
    prose = FENCE.sub("", text)
    for target in LINK.findall(SPAN.sub("", prose)):
        if "://" in target:
            continue
        if missing(f"{page.name}{target}" if target.startswith("#") else target, page.parent):
            yield target
    if page.name != NO_LONGER:
        yield from (span for span in SPAN.findall(prose) if PATH.fullmatch(span) and is_gone(span))


def is_gone(path: str) -> bool:
    """Whether a path (or a pattern) is neither in the repository nor in the package nor in its tests."""
    if PLACEHOLDER.search(path) or path.startswith(MADE):
        return False
    of = path.rstrip("/")
    return not any(any(folder.glob(of)) for folder in (ROOT, ROOT / "docs", ROOT / "dpmf_cli"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    assert not list(broken(page.read_text(encoding="utf-8"), page))


def test_pages_that_the_code_names_exist() -> None:
    for file in CODE:
        for target in PAGE_IN_CODE.findall(file.read_text(encoding="utf-8")):
            assert not missing(target, ROOT), f"{file.relative_to(ROOT)}: {target}"


def test_every_page_stands_in_the_navigation_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = list(names(yaml.safe_load(re.sub(r"!!python\S+", "", text))["nav"]))
    assert sorted(listed) == sorted(str(page.relative_to(ROOT)).removeprefix("docs/") for page in PAGES)


def names(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from names(each)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](privacy.md) ![b](figures/best.svg) [c](https://example.org/x.md)", []),
        ("[a](../README.md#start) [b](#nowhere)", ["#nowhere"]),
        (
            "[a](none.md) [b](statistics.md#ranking) [c](statistics.md#rankings)",
            ["none.md", "statistics.md#rankings"],
        ),
        ("`tests/project/test_site.py` `privacy/grid.py` `configs/*_corrected.yaml` `results/x/`", []),
        (
            "`tests/none.py` `configs/none_*.yaml` `dpmf_cli/papers/KEY.yaml`",
            ["tests/none.py", "configs/none_*.yaml"],
        ),
        ("```\n[a](none.md)\n```\n`[a](none.md)` `docs/none.yaml`", ["docs/none.yaml"]),
    ],
)
def test_what_is_not_there_is_found(text: str, found: list[str]) -> None:
    assert list(broken(text, ROOT / "docs" / "audit.md")) == found

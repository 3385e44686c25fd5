"""How the repository's Markdown becomes the site's: pages outside of docs/, links to files anywhere, marks of fences.

Nothing is written for the site alone. A page is read as the repository shows it, and what MkDocs wants otherwise is
mapped here.
"""

import logging
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import File, Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"

FENCE = re.compile(r"^(?P<indent> *)(?P<marks>```+)(?P<info>[^`]*)$")
SHORT = re.compile(r"<code>(?=[^<\n]{1,32}</code>)")
CODE = re.compile(r"(`+[^`]+`+)")
LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
COMMENT = re.compile(r"^<!-- (?P<text>.*) -->$")
"""Marks of tables, which the site does not need; and `::: NAME`, for the docstring that it shows."""
CONTINUED = re.compile(r"^ {2,3}(?=\S)")
"""The indentation of what goes on in an item of a list; MkDocs asks for four spaces."""
ITEM = re.compile(r"^([-*]|\d+\.) ")
CITED = re.compile(r"\[(@\w+(?:; @\w+)*)\]")
SEPARATOR = re.compile(r"(?<!\\)\|")
"""What parts the cells of a table, in code as well, unless it is escaped."""


def on_config(config: "MkDocsConfig") -> None:
    """Links the place that this repository was cloned from, if browsers can open it."""
    asked = ["git", "config", "--get", "remote.origin.url"]
    origin = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    config.repo_url = origin if origin.startswith("https://") else None


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds the pages outside of docs/ that the navigation has, and the files outside of it that pages link to."""
    from mkdocs.structure.files import File

    pages = [
        name for name in _names(config.nav) if not (ROOT / DOCS / name).exists() and (ROOT / name).exists()
    ]
    for name in pages:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    linked = {target for page in files.documentation_pages() for target in _outside(page)}
    for name in sorted(linked - set(pages)):
        if (ROOT / name).is_file() and not name.endswith(".md"):
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """The page as MkDocs wants it. One that is generated is all tables, and has the room of a table of contents."""
    at = _path(page.file)
    for number in broken_rows(markdown.splitlines()):
        logging.getLogger("mkdocs.hooks").warning(
            "%s: line %d is a row of other columns than its header, or a header without rows", at, number
        )
    if at.parent.name == "generated":
        page.meta["hide"] = ["toc"]
    return "\n".join(lines_of_site(markdown.splitlines(), at, PurePosixPath(page.file.src_uri)))


def on_page_content(html: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """The page, in which short code stays in one line."""
    return SHORT.sub(r'<code class="one">', html)


def broken_rows(lines: Iterable[str]) -> Iterator[int]:
    """The lines, from 1, of rows of tables that have more or fewer cells than their header, or of rulers with no row.

    Such a table is shown as text full of bars, or loses cells.
    """
    closing, columns, rows = "", 0, 0
    for number, line in enumerate((*lines, ""), 1):
        if closing:
            closing = "" if line.strip() == closing else closing
        elif fence := FENCE.match(line):
            closing = fence["marks"]
        row = line.strip()
        cells = len(SEPARATOR.findall(row)) - 1 if not closing and row.startswith("|") else 0
        if columns and cells != columns and (cells or rows == 2):
            yield number if cells else number - 1
        columns, rows = ((columns or cells), rows + 1) if cells else (0, 0)


def lines_of_site(lines: Iterable[str], at: PurePosixPath, uri: PurePosixPath) -> Iterator[str]:
    """The lines of a page; `at` is its path in the repository, `uri` on the site."""

    def linked(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        there = normpath(at.parent / target)
        return relpath(there.removeprefix(f"{DOCS}/"), uri.parent) + (found["anchor"] or "")

    closing, room, before, of_paragraphs = "", "", "", False
    for line in lines:
        if closing:
            closing = "" if line.strip() == closing else closing
            yield room + line
            continue
        of_paragraphs = not ITEM.match(before) and (of_paragraphs or (not before and line.startswith("  ")))
        if ITEM.match(line) and of_paragraphs and before:
            yield ""  # MkDocs asks for an empty line behind an item of several paragraphs.
        before = line
        if fence := FENCE.match(line):
            closing = fence["marks"]
            indent = CONTINUED.sub("    ", f"{fence['indent']}x")[:-1]
            room = indent.removeprefix(fence["indent"])
            yield indent + closing + _language(fence["info"].split())
        elif comment := COMMENT.match(line):
            yield comment["text"] if comment["text"].startswith("::: ") else ""
        else:
            # Every second part is a span of code.
            parts = CODE.split(CONTINUED.sub("    ", line))
            yield "".join(
                part if n % 2 else CITED.sub(_cited, LINK.sub(linked, part)) for n, part in enumerate(parts)
            )


def _cited(found: re.Match[str]) -> str:
    """Citations as years, which lead to the works cited."""
    years = (re.sub(r"\D+", "", key) for key in found[1].split("; "))
    return f"({'; '.join(f'[{year}](generated/papers.md#references)' for year in years)})"


def _language(words: list[str]) -> str:
    """What stands behind a fence: a language, and the name of the file that the block is. Words by which a test runs
    a block are left out."""
    named = next((word.removeprefix("file=") for word in words if word.startswith("file=")), None)
    return " ".join([*words[:1], *([f'title="{named}"'] if named else [])])


def _path(file: "File") -> PurePosixPath:
    return PurePosixPath(Path(file.abs_src_path or "").relative_to(ROOT).as_posix())


def _outside(file: "File") -> Iterator[str]:
    """The files outside of docs/ that a page links to."""
    for found in LINK.finditer(file.content_string):
        there = normpath(_path(file).parent / found["target"])
        if not there.startswith(f"{DOCS}/"):
            yield there


def _names(nav: object) -> Iterator[str]:
    """The pages of the navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        yield from _names(list(nav.values()))
    elif isinstance(nav, list):
        for each in nav:
            yield from _names(each)

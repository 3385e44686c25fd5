"""No figure in docs/papers, on the summary pages or on the page about performance is typed by hand.

Each figure stands in a table that a command makes, or is printed by a paper.
"""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from docs.makers.pages import outside_of_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    *(DOCS / f"{name}.md" for name in ("paper", "frontier", "performance")),
    *sorted((DOCS / "papers").glob("*.md")),
]

NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
PLACES = (
    r"(?:tables?|figures?|sections?|equations?|theorems?|algorithms?|lines?|lemmas?|remarks?|definitions?|claims?|pages?|"
    r"steps?|errors?|parts?|§|appendix|UMUAI)"
)
NOT_FIGURES = (
    r"```.*?```",  # commands
    r"`[^`]*`",
    r"\]\([^)]*\)",  # links
    r"<!--.*?-->",
    rf"(?i)\b{PLACES}\s+{NUMBER}[a-z]?(?:(?:\s*(?:,|and|to|or|–|-|—)\s*)+{NUMBER}[a-z]?)*(?:\(\d+\))?",
    r"\b(?:19|20)\d\d\b",  # years
    r"\b[A-Za-z]+-\d+[A-Za-z]*\b",  # ML-100K, Jester-1
    r"\b\d+(?:st|nd|rd|th)\b",
    r"(?<![\d.,])\b[0-9]\b(?![.,]\d)",  # counts that are not measurements
)


def figures(prose: str) -> Iterator[str]:
    """The numbers of a text but for those that name a place, a year or a data set."""
    for pattern in NOT_FIGURES:
        prose = re.sub(pattern, " ", prose, flags=re.DOTALL)
    yield from re.findall(rf"(?<![\w.^⁻]){NUMBER}", prose)


def known(key: str, made: str) -> set[str]:
    """The numbers of the page's tables, of what the paper prints, and of the values of its space."""
    tables = {"paper": "papers", "frontier": "papers"}.get(key, key)
    texts = [made, *(page.read_text(encoding="utf-8") for page in (DOCS / "generated").glob(f"{tables}.md"))]
    for name in (f"{key}.yaml", f"spaces/{key}.yaml"):
        file = resources.files("dpmf_cli.papers") / name
        texts += [file.read_text(encoding="utf-8")] if file.is_file() else []
    return {number.rstrip(",") for text in texts for number in re.findall(NUMBER, text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_figure_of_a_page_is_typed(page: Path) -> None:
    prose, made = outside_of_tables(page.read_text(encoding="utf-8"))
    allowed = known(page.stem, made)
    typed = [each for number in figures(prose) if (each := number.rstrip(",")) not in allowed]
    assert not typed, f"{page}: make a table of these by a command, or leave them out: {', '.join(typed)}"


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("Section 5.2 and table 4, lines 1 to 12 of algorithm 3, ML-100K in 2016", []),
        ("It meets IA at 0.72, and 94.5 % of 1,682 items", ["0.72", "94.5", "1,682"]),
        ("`dpmf run x.yaml --folds 17`, [page](privacy17.md)", []),
        ("five of 28 cells; 3 methods", ["28"]),
    ],
)
def test_what_a_figure_is(prose: str, found: list[str]) -> None:
    assert list(figures(prose)) == found

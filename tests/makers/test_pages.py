"""The pages of papers have the tables made from the papers' files."""

import re
from pathlib import Path
from typing import get_args

import pytest
import typer

from docs.makers.pages import main, outside_of_tables, with_tables
from docs.makers.reference import reference
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.cli.main import app
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.papers.claims import all_papers, paper
from dpmf_cli.papers.printed import papers
from dpmf_cli.papers.verdicts import Word
from tests.cli.test_help import ALL

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("key", papers())
def test_the_page_of_a_paper_has_its_tables(key: str) -> None:
    texts = []
    for page in (ROOT / paper(key).page, ROOT / "docs" / "generated" / f"{key}.md"):
        texts.append(page.read_text())
        assert with_tables(page) == texts[-1], (
            f"write it anew: make format, or python -m docs.makers.pages {page}"
        )
    tables = texts[1]
    assert {row.split(" | ")[2] for row in block(tables, f"claims of {key}")} <= set(get_args(Word))
    claims = tables.split(f"<!-- claims of {key} -->\n")[1].split("<!-- end -->")[0]
    assert len(re.findall(r"^\*\*", claims, re.MULTILINE)) == len(paper(key).claims)
    exhibits = tables.split(f"<!-- exhibits of {key} -->\n")[1].split("<!-- end -->")[0]
    assert all(f"`{name}`" in exhibits for name in paper(key).configs)


def test_the_readme_counts_what_the_pages_of_papers_say() -> None:
    """Read back from those pages: the printed figures that agree, and verdicts by inequality and data set."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    assert with_tables(readme) == text, "write it anew: make format, or python -m docs.makers.pages README.md"
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) == len(papers())
    for (title, cells, *counts), (key, found) in zip(rows, all_papers().items(), strict=True):
        page = (ROOT / "docs" / "generated" / f"{key}.md").read_text()
        assert title == f"| [{found.title}]({found.page})"
        said = [line.split(" | ") for line in block(page, f"claims of {key}")]
        words = [row[2] for row in said for _ in row[1].split(", ")]
        assert [int(count.rstrip(" |")) for count in counts] == [words.count(word) for word in get_args(Word)]
        agreeing = [row.split(" | ")[4] == "agrees" for row in block(page, f"cells of {key}")]
        assert cells == (f"{sum(agreeing)} of {len(agreeing)}" if agreeing else "–")


def block(page: str, name: str) -> list[str]:
    """The rows of the tables between two marks of a page, without their headings."""
    made = page.partition(f"<!-- {name} -->\n")[2].partition("<!-- end -->")[0]
    tables = re.findall(r"(?:^\|.*\n)+", made, re.MULTILINE)
    return [line for table in tables for line in table.splitlines()[2:]]


def test_only_what_is_between_the_marks_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- claims of neera2020 -->\nold\n<!-- end -->\nafter\nold\n")
    lines = with_tables(page).splitlines()
    assert (lines[:2], lines[-3:]) == (
        ["before", "<!-- claims of neera2020 -->"],
        ["<!-- end -->", "after", "old"],
    )
    assert sum(line.startswith("**") for line in lines) == len(paper("neera2020").claims)
    page.write_text("<!-- claims of neera2021 -->\n<!-- end -->\n")
    with pytest.raises(DpmfError, match='did you mean "neera2020"'):
        with_tables(page)
    with pytest.raises(DpmfError, match=r"none\.md: cannot be read"):
        with_tables(tmp_path / "none.md")


def test_commands_of_a_page_are_run_where_there_are_results(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "<!-- output of dpmf crossings configs/tiny.yaml --format md -->\n"
    page.write_text(f"{block}old\n<!-- end -->\n")
    asked: list[list[str]] = []

    def answer(words: list[str]) -> str:
        asked.append(words)
        return "new\n"

    assert with_tables(page) == page.read_text()
    assert with_tables(page, lambda words: None) == page.read_text()
    assert with_tables(page, answer) == f"{block}\nnew\n\n<!-- end -->\n"
    assert asked == [["crossings", "configs/tiny.yaml", "--format", "md"]]
    written, made = outside_of_tables(page.read_text())
    assert ("old" in written, "old" in made) == (False, True)


def test_a_file_of_the_results_is_shown_where_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- results/times.md -->\nold\n<!-- end -->\n")
    assert with_tables(page) == with_tables(page, results=tmp_path) == page.read_text()
    (tmp_path / "times.md").write_text("new\n")
    assert with_tables(page, results=tmp_path) == "<!-- results/times.md -->\n\nnew\n\n<!-- end -->\n"


def test_only_what_needs_results_is_left_as_it_stands_without_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- output of dpmf crossings configs/quickstart.yaml -->\nold\n<!-- end -->\n")
    main(page, tmp_path / "results")
    printed = capsys.readouterr()
    assert printed.out == page.read_text()
    assert "output left as it was: dpmf crossings" in printed.err
    page.write_text("<!-- output of dpmf docs -->\nold\n<!-- end -->\n")
    main(page, tmp_path / "results")
    assert capsys.readouterr().out.splitlines()[1:-1] == ["", *PAGE.read_text().splitlines(), ""]


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


@pytest.fixture(scope="module")
def page() -> str:
    return reference(typer.main.get_command(app))


def test_the_shipped_page_is_that_of_the_code(page: str) -> None:
    assert PAGE.read_text() == page, "write it anew: make format"


def test_every_command_key_and_algorithm_has_its_place(page: str) -> None:
    headings = set(re.findall(r"^### (.*)$", page, re.MULTILINE))
    assert headings >= {" ".join(("dpmf", *path)) for path, group in ALL if not group}
    assert headings >= {*BASELINES, *PRIVATE}
    rows = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    assert rows >= set(ExperimentConfig.model_fields)
    for algorithm in (*BASELINES.values(), *PRIVATE.values()):
        assert rows >= algorithm.model_fields.keys() - {"swept", "swept_label"}


def test_what_reading_a_config_fills_in_is_not_required(page: str) -> None:
    keys = page.split("## Keys of a config")[1].split("###")[0]
    assert set(re.findall(r"^\| `(\w+)` \|[^|]*\| required \|", keys, re.MULTILINE)) == {
        "dataset",
        "algorithms",
    }


def test_rows_have_as_many_cells_as_their_table(page: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table

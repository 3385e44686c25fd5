"""The pages of papers have the tables that the papers' files make, and `dpmf configs` names what is run."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.cli.paper_pages import with_tables
from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.claims import all_papers, paper
from dpmf_cli.papers.printed import papers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("key", papers())
def test_the_page_of_a_paper_has_its_tables(key: str) -> None:
    page = ROOT / paper(key).page
    text = page.read_text()
    assert with_tables(page) == text, f"write it anew: make format, or dpmf docs {paper(key).page}"
    claims = text.split(f"<!-- claims of {key} -->\n")[1].split("<!-- end -->")[0]
    rows = claims.splitlines()[2:]
    assert len(rows) == len(paper(key).claims)
    for row, claim in zip(rows, paper(key).claims, strict=True):
        assert f" | {claim.verdict} | " in row
    exhibits = text.split(f"<!-- exhibits of {key} -->\n")[1].split("<!-- end -->")[0]
    assert all(f"`{name}`" in exhibits for name in paper(key).configs)


def test_only_what_is_between_the_marks_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- claims of neera2020 -->\nold\n<!-- end -->\nafter\nold\n")
    lines = with_tables(page).splitlines()
    assert (lines[:2], lines[-3:]) == (
        ["before", "<!-- claims of neera2020 -->"],
        ["<!-- end -->", "after", "old"],
    )
    assert len(lines) == 2 + 2 + len(paper("neera2020").claims) + 3
    page.write_text("<!-- claims of neera2021 -->\n<!-- end -->\n")
    with pytest.raises(DpmfError, match='did you mean "neera2020"'):
        with_tables(page)
    with pytest.raises(DpmfError, match=r"none\.md: cannot be read"):
        with_tables(tmp_path / "none.md")


def named(*words: str) -> tuple[str, ...]:
    done = CliRunner().invoke(app, ["configs", *words])
    assert done.exit_code == 0, done.exception
    return tuple(done.stdout.splitlines())


def test_configs_are_named_by_paper_and_size() -> None:
    for key, found in all_papers().items():
        assert named(key) == found.configs == (*named(key, "--no-large"), *named(key, "--large"))
        assert named(key, "--large") == tuple(name for name in found.configs if name in found.large)
        assert named(key, "--small") == found.small
    assert named("mcsherry2009", "--large") == (
        "mcsherry_netflix",
        "mcsherry_synthetic_ml10m",
        "mcsherry_synthetic_netflix",
    )

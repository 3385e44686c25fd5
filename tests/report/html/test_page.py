"""The pages: well-formed, self-contained, deterministic, escaped, and with the promised content."""

import csv
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config.documents import FOLDER
from dpmf_cli.papers.claims import all_papers
from dpmf_cli.report.html import page
from dpmf_cli.report.html.page import experiment_page, overview as overview_of, overview_page
from dpmf_cli.report.html.views import ExhibitView
from tests.report.results import HOSTILE

_VOID = {"meta", "link", "br", "img", "input", "hr"}


class _Page(HTMLParser):
    """Checks nesting while it reads, and collects the references of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.outside: list[str] = []
        self.text: list[str] = []
        self.headings: list[int] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("src", "href", "xlink:href", "action", "srcset", "poster"):
                (self.targets if (value or "").startswith("#") else self.outside).append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def overview(results: Path) -> str:
    empty = results.parent
    return overview_page(Folders(empty, empty / "cache", results=results))


@pytest.fixture(scope="module")
def pages(results: Path) -> dict[str, str]:
    names = ("ml100k_bounded", "friedman_fig6", "mine")
    return {"overview": overview(results), **{name: experiment_page(results / name) for name in names}}


@pytest.mark.parametrize("name", ["overview", "ml100k_bounded", "friedman_fig6", "mine"])
def test_a_page_is_well_formed_and_refers_to_nothing_outside(pages: dict[str, str], name: str) -> None:
    html = pages[name]
    page = _Page(html)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert {target[1:] for target in page.targets} <= set(page.ids)
    assert all(each.startswith("data:") or each.endswith(".md") for each in page.outside), page.outside
    assert not re.search(r"https?://|url\((?!#)|@import|<iframe|<object", html)
    assert html.startswith("<!doctype html>")
    assert page.headings[0] == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))


def test_equal_results_give_equal_pages(results: Path, pages: dict[str, str]) -> None:
    assert experiment_page(results / "mine") == pages["mine"]
    assert overview(results) == pages["overview"]


def test_what_a_user_names_is_text(pages: dict[str, str]) -> None:
    assert "alert(" not in pages["ml100k_bounded"].replace(
        "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt; &amp; &#34;name&#34;", ""
    ).replace("&lt;script&gt;alert(", "")
    assert HOSTILE in "".join(_Page(pages["ml100k_bounded"]).text)


def test_every_value_of_a_chart_is_in_its_table(results: Path, pages: dict[str, str]) -> None:
    (curves,) = re.findall(r'<table class="values">.*?</table>', pages["ml100k_bounded"], re.DOTALL)
    rows = csv.DictReader((results / "ml100k_bounded" / "curves.csv").read_text().splitlines())
    means = [row["rmse"] for row in rows if row["neighbours"] == "bounded"]
    assert len(means) == 8
    for mean in means:
        assert f"{float(mean):.4f}" in curves


def test_what_is_a_picture_alone_is_shown_too(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "exhibit_view", lambda exhibit, *_: ExhibitView(exhibit, picture=b"<svg/>"))
    shown = overview(results)
    assert 'class="figure"' in shown
    assert "not made here" not in shown


def test_the_overview_names_papers_claims_and_what_is_missing(pages: dict[str, str]) -> None:
    text = " ".join(" ".join(_Page(pages["overview"]).text).split())
    for expected in (
        "Friedman, Berkovsky, Kaafar 2016",
        "Wang, Tang 2017: dpmf reproduce wang2017 , docs/papers/wang2017.md",
        "the larger the MovieLens dataset, the lower every crossing",
        "data missing: MovieLens 10M",
        "waiting for it: ml10m_bounded",
        "Not run yet",
        "dpmf datasets fetch ml-10m",
        f"dpmf run {FOLDER / 'ml10m_bounded.yaml'}",
        "reduced: only a part of mine",
        "ε bounds what anybody can learn about the value of one rating",
        "not measured",
    ):
        assert expected in text, expected


def words(html: str) -> str:
    """The text of a page that a reader sees."""
    return " ".join(" ".join(_Page(re.sub(r"(?s)<(style|script)>.*?</\1>", "", html)).text).split())


def test_a_page_of_own_results_alone_has_their_advice_and_no_verdict_on_a_paper(
    results: Path, tmp_path: Path
) -> None:
    shutil.copytree(results, tmp_path / "results")
    for name in ("ml100k_bounded", "friedman_fig6"):
        shutil.rmtree(tmp_path / "results" / name)
    text = words(overview(tmp_path / "results"))
    everything = words(overview(results))
    for verdict in ("holds here", "fails here", "too close here", "✓", "✗", "≈", "not measured"):
        assert verdict not in text
    for each in all_papers().values():
        for claim in each.claims:
            assert claim.statement not in text
        assert f"{each.title}: {each.command} , {each.page}" in text
    assert text.index("Own results") < text.index("The error (RMSE) to reach") < text.index("Not tried on")
    assert everything.index("The error (RMSE) to reach") < everything.index("the paper says")


def test_a_reduced_experiment_is_not_ranked_against_the_whole(results: Path, tmp_path: Path) -> None:
    def experiments_in(folder: Path) -> set[str]:
        view = overview_of(Folders(tmp_path, tmp_path, results=folder))
        assert view["protected"].header[-1] == "experiment"
        return {row[-1] for group in view["protected"].groups for row in group.rows}

    assert "mine" in experiments_in(results)
    assert "mine.held-out-1" not in experiments_in(results)
    shutil.copytree(results, tmp_path / "results")
    shutil.rmtree(tmp_path / "results" / "mine")
    assert "mine.held-out-1" in experiments_in(tmp_path / "results")


def test_the_command_writes_pages_and_says_where(results: Path, tmp_path: Path) -> None:
    here = tmp_path / "results"
    shutil.copytree(results, here)
    runner = CliRunner()
    done = runner.invoke(app, ["report", str(here / "mine")])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(here / "mine" / "report.html")
    (here / "mine" / "manifest.json").write_text("{}")
    done = runner.invoke(app, ["report", "--all", "--results", str(here), "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert re.search(r"passed over: \S*mine/manifest.json: damaged", done.stderr)
    page = (here / "report.html").read_text(encoding="utf-8")
    assert "Folders that cannot be read" in page
    assert "mine/manifest.json: damaged" in page


@pytest.mark.parametrize("arguments", [[], ["--all", "results/x"]])
def test_the_command_wants_one_of_the_two(arguments: list[str]) -> None:
    with pytest.raises(DpmfError, match="give --all"):
        CliRunner().invoke(app, ["report", *arguments], catch_exceptions=False)


def test_nothing_to_report_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DpmfError, match="run a config first"):
        overview_page(Folders(tmp_path, tmp_path, results=tmp_path))


def test_intervals_stay_on_one_line(pages: dict[str, str]) -> None:
    cells = re.findall(r"<td>([^<]*\[[^<]*)</td>", pages["ml100k_bounded"])
    assert cells
    assert all("\N{NO-BREAK SPACE}" in cell and ", " not in cell for cell in cells)

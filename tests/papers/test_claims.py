"""What was found is complete: every claim and every shipped config has its place, and every name is known."""

from pathlib import Path

import pytest

from dpmf_cli.datasets import catalog
from dpmf_cli.papers.claims import all_papers, paper, statement
from dpmf_cli.papers.printed import load, papers
from dpmf_cli.papers.rules import RULES

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = {path.stem for path in (REPOSITORY / "configs").glob("*.yaml")}
CHOICES = {"quickstart", "mcsherry_search_ml100k", "neera_search_ml100k", "combined_ml100k", "combined_ml1m"}
"""Configs of no exhibit: the first command, all papers in one, searches for what papers leave open (with `search_*`), and time
and memory at scale (`scale_*`)."""


@pytest.mark.parametrize("key", papers())
def test_every_claim_has_one_finding_in_the_papers_order(key: str) -> None:
    assert [claim.id for claim in paper(key).claims] == [claim["id"] for claim in load(key)["claims"]]
    for claim in paper(key).claims:
        assert statement(key, claim.id)[0]
        assert (claim.verdict == "not tested") or claim.measured


def test_every_shipped_config_is_in_an_exhibit_and_every_name_is_a_config() -> None:
    shown = {name for each in all_papers().values() for exhibit in each.exhibits for name in exhibit.configs}
    behind = {name for each in all_papers().values() for claim in each.claims for name in claim.configs}
    assert shown <= CONFIGS
    assert behind <= shown
    assert {name for name in CONFIGS - shown if not name.startswith(("search_", "scale_"))} == CHOICES


def test_every_exhibit_says_what_it_is_made_of() -> None:
    for each in all_papers().values():
        assert each.page == f"docs/papers/{Path(each.page).name}"
        for exhibit in each.exhibits:
            assert bool(exhibit.configs) != bool(exhibit.data or exhibit.file), exhibit.name
            assert bool(exhibit.file) == bool(exhibit.command) == (exhibit.kind == "file")
            assert all(key in catalog.ENTRIES for key in exhibit.data)


def test_papers_come_in_the_order_of_their_years() -> None:
    assert [key[-4:] for key in all_papers()] == ["2009", "2016", "2017", "2018", "2020"]


def test_every_rule_is_of_a_claim() -> None:
    for key, rules in RULES.items():
        assert set(rules) <= {claim.id for claim in paper(key).claims}

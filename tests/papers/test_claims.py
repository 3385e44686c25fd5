"""The findings are complete: every claim and every shipped config has its place, and every name is known."""

from pathlib import Path

import pytest

from dpmf_cli.datasets import catalog
from dpmf_cli.papers.claims import ANY, all_papers, paper
from dpmf_cli.papers.printed import papers
from dpmf_cli.papers.rules import RULES
from tests.configs import SHIPPED

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = {path.stem for path in SHIPPED}
CHOICES = {"quickstart", "combined_ml100k", "combined_ml1m", "ranking_ml100k"}
OTHERS = ("explore_", "scale_", "frontier_", "dpals_")
"""Configs of no exhibit: the first command, all papers in one, the order of items, and by how they begin: what serves
explorations alone, time and memory at scale, what leads at which ε, and DPALS alone."""


@pytest.mark.parametrize("key", papers())
def test_every_claim_has_a_name_a_statement_and_a_rule(key: str) -> None:
    assert paper(key).source
    identifiers = [claim.id for claim in paper(key).claims]
    assert len(set(identifiers)) == len(identifiers) > 0
    for claim in paper(key).claims:
        assert claim.statement
        assert claim.data
        assert all(data == ANY or data in catalog.ENTRIES for data in claim.data)
        assert (claim.id in RULES[key]) != claim.no_test
        assert not claim.no_test or claim.remark


def test_every_shipped_config_is_in_an_exhibit_and_every_name_is_a_config() -> None:
    shown = {name for each in all_papers().values() for exhibit in each.exhibits for name in exhibit.configs}
    behind = {name for each in all_papers().values() for claim in each.claims for name in claim.configs}
    assert shown <= CONFIGS
    assert behind <= shown
    assert {name for name in CONFIGS - shown if not name.startswith(OTHERS)} == CHOICES


def test_every_exhibit_says_what_it_is_made_of() -> None:
    for each in all_papers().values():
        assert each.page == f"docs/papers/{Path(each.page).name}"
        for exhibit in each.exhibits:
            assert bool(exhibit.configs) != bool(exhibit.data or exhibit.file), exhibit.name
            assert bool(exhibit.file) == (exhibit.kind == "file")
            assert not exhibit.file or exhibit.making.startswith("dpmf ")
            assert all(key in catalog.ENTRIES for key in exhibit.data)


def test_papers_come_in_the_order_of_their_years() -> None:
    assert [key[-4:] for key in all_papers()] == ["2009", "2016", "2017", "2018", "2020"]


def test_every_rule_is_of_a_claim() -> None:
    for key, rules in RULES.items():
        assert set(rules) <= {claim.id for claim in paper(key).claims}


def test_large_and_small_configs_are_among_those_of_the_exhibits_and_large_ones_run_last() -> None:
    for each in all_papers().values():
        shown = {name for exhibit in each.exhibits for name in exhibit.configs}
        assert {*each.large, *each.small} <= set(each.configs) == shown
        assert set(each.configs[len(each.configs) - len(each.large) :]) == set(each.large)
        assert not {*each.large} & {*each.small}
    first = paper("friedman2016").configs[:4]
    assert first == ("ml100k_bounded", "ml1m_bounded", "ml100k_unbounded", "ml1m_unbounded")

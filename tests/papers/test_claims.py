"""Findings, rules and committed records fit each other: every claim, config and theorem has its place."""

from pathlib import Path

import pytest

from dpmf_cli.datasets import catalog
from dpmf_cli.papers.claims import ANY, LARGE, all_papers, paper
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import papers
from dpmf_cli.papers.record import FOLDER, Record, path_of, read_record
from dpmf_cli.papers.rules import Theorem, digest_of, margins, rules_of
from dpmf_cli.papers.space import explored, space
from tests.configs import SHIPPED, loaded

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGS = {path.stem for path in SHIPPED}
CHOICES = {"quickstart", "combined_ml100k", "combined_ml1m", "who_pays_ml100k"}
OTHERS = ("explore_", "scale_", "frontier_", "ranking_", "dpals_")
"""Configs of no exhibit: the first command, all papers in one, who pays for privacy, and by how they begin: what
serves explorations alone, time and memory at scale, what leads at which ε, the order of items, and DPALS alone."""


@pytest.mark.parametrize("key", papers())
def test_every_claim_has_a_name_a_statement_and_a_rule(key: str) -> None:
    assert paper(key).source
    identifiers = [claim.id for claim in paper(key).claims]
    assert len(set(identifiers)) == len(identifiers) > 0
    assert set(rules_of(key).rules) == set(identifiers)
    for claim in paper(key).claims:
        assert claim.statement
        assert claim.data
        assert all(data == ANY or data in catalog.ENTRIES for data in claim.data)


def test_every_shipped_config_is_in_an_exhibit_and_every_name_is_a_config() -> None:
    shown = {name for each in all_papers().values() for exhibit in each.exhibits for name in exhibit.configs}
    behind = {name for each in all_papers().values() for claim in each.claims for name in claim.configs}
    assert shown <= CONFIGS
    assert behind <= shown
    assert {name for name in CONFIGS - shown if not name.startswith(OTHERS)} == CHOICES


def test_whoever_has_a_large_data_set_runs_all_that_needs_it_at_once() -> None:
    of_name = {path.stem: getattr(loaded(path).dataset, "name", "") for path in SHIPPED}
    assert {config for config, name in of_name.items() if name in ("ml-10m", "netflix")} == set(LARGE)


def test_every_exhibit_says_what_it_is_made_of() -> None:
    for each in all_papers().values():
        assert each.page == f"docs/papers/{Path(each.page).name}"
        for exhibit in each.exhibits:
            assert bool(exhibit.configs) != bool(exhibit.data or exhibit.file), exhibit.name
            assert bool(exhibit.file) == (exhibit.kind == "file")
            assert not exhibit.file or exhibit.making.startswith("dpmf ")
            assert all(key in catalog.ENTRIES for key in exhibit.data)


def test_large_and_small_configs_are_among_those_of_the_exhibits_and_large_ones_run_last() -> None:
    for each in all_papers().values():
        shown = {name for exhibit in each.exhibits for name in exhibit.configs}
        assert {*each.large, *each.small} <= set(each.configs) == shown
        assert set(each.configs[len(each.configs) - len(each.large) :]) == set(each.large)
        assert not {*each.large} & {*each.small}
    assert [key[-4:] for key in all_papers()] == ["2009", "2016", "2017", "2018", "2020"]
    first = paper("friedman2016").configs[:4]
    assert first == ("ml100k_bounded", "ml1m_bounded", "ml100k_unbounded", "ml1m_unbounded")


BY_ARITHMETIC = {"h-makes-it-unbiased"}
"""Claims about counts of a data set that need no run."""


@pytest.mark.parametrize("key", papers())
def test_without_results_no_rule_decides(key: str) -> None:
    decided = {
        claim.id
        for claim in paper(key).claims
        for data in claim.data
        if data != ANY and margins(key, claim.id, Evidence({}, data))
    }
    assert decided <= BY_ARITHMETIC


PAGES = Path(__file__).resolve().parents[2] / "docs" / "papers" / FOLDER


def record(key: str) -> Record:
    found = read_record(path_of(PAGES, key))
    assert found is not None
    return found


@pytest.mark.parametrize("key", explored())
def test_a_record_is_of_the_space_as_it_stands(key: str) -> None:
    found, again = record(key), read_record(path_of(PAGES / "again", key))
    assert again
    assert again.data["ml-100k"].seed != found.data["ml-100k"].seed
    for data, tried in (*found.data.items(), *again.data.items()):
        assert tried.sets == digest_of(key, space(key).of(data)), f"explore {key} on {data} again"
        on = space(key).on(data)
        assert (tried.configs, tried.folds, tried.runs) == (on.configs, on.folds, on.runs)


@pytest.mark.parametrize("key", explored())
def test_a_record_judges_the_claims_as_they_stand(key: str) -> None:
    found, claims = record(key), {claim.id: claim for claim in paper(key).claims}
    for data, tried in found.data.items():
        judged = {atom.claim for atom in tried.atoms}
        assert judged <= {claim.id for claim in claims.values() if data in claim.data}
    theorems = {claim for claim, rule in rules_of(key).rules.items() if isinstance(rule, Theorem)}
    assert set(found.theorems) == theorems
    assert theorems <= {claim.id for claim in claims.values() if ANY in claim.data}

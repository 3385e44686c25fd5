"""Rules of all papers: without results none of a data set decides."""

import pytest

from dpmf_cli.papers.claims import ANY, paper
from dpmf_cli.papers.rules import RULES, compute
from tests.papers.made import evidence


@pytest.mark.parametrize("key", RULES)
def test_without_results_no_rule_decides(key: str) -> None:
    for claim in paper(key).claims:
        if ANY not in claim.data and claim.id in RULES[key]:
            assert compute(key, claim.id, evidence()) is None, claim.id

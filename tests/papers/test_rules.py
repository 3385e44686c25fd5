"""Rules of all papers: without results for a data set, no rule decides."""

import pytest

from dpmf_cli.papers.claims import ANY, paper
from dpmf_cli.papers.rules import RULES, compute
from tests.papers.made import evidence

BY_ARITHMETIC = {"h-makes-it-unbiased"}
"""Claims about counts of a data set that need no run."""


@pytest.mark.parametrize("key", RULES)
def test_without_results_no_rule_decides(key: str) -> None:
    decided = {
        claim.id
        for claim in paper(key).claims
        for data in claim.data
        if data != ANY and claim.id in RULES[key] and compute(key, claim.id, evidence(data=data))
    }
    assert decided <= BY_ARITHMETIC

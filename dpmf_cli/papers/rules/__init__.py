"""Verdicts on claims, computed from the results at hand: a rule for each claim that figures alone decide."""

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules import friedman, mcsherry, neera, wang, zhang
from dpmf_cli.papers.rules.base import Computed, Rule

RULES: dict[str, dict[str, Rule]] = {
    "friedman2016": friedman.RULES,
    "mcsherry2009": mcsherry.RULES,
    "neera2020": neera.RULES,
    "wang2017": wang.RULES,
    "zhang2018": zhang.RULES,
}
"""By the paper's key and the claim's id."""


def compute(key: str, claim: str, evidence: Evidence) -> Computed | None:
    """The verdict on a claim from the results at hand; None where no rule decides it, or results are missing."""
    rule = RULES.get(key, {}).get(claim)
    if rule is None:
        return None
    try:
        return rule(evidence)
    except MissingEvidence:
        return None

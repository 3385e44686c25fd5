"""Verdicts on claims, computed from the results at hand: a rule for each claim that figures alone decide."""

from contextlib import suppress

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules import friedman, mcsherry, neera, wang, zhang
from dpmf_cli.papers.rules.base import Cell, Cells, Computed, Rule

RULES: dict[str, dict[str, Rule]] = {
    "friedman2016": friedman.RULES,
    "mcsherry2009": mcsherry.RULES,
    "neera2020": neera.RULES,
    "wang2017": wang.RULES,
    "zhang2018": zhang.RULES,
}
"""The rules, by the paper's key and the claim's id."""


CELLS: dict[str, Cells] = {
    "friedman2016": friedman.cells,
    "neera2020": neera.cells,
}
"""The printed cells, by the paper's key. A paper that gives words or pictures only ("about 70 %") has none."""


def compute(key: str, claim: str, evidence: Evidence) -> Computed | None:
    """Returns what results say about a claim on the evidence's data set; None if results are missing, or if no result
    can decide it."""
    with suppress(MissingEvidence):
        if claim in RULES[key]:
            return RULES[key][claim](evidence)
    return None


def cells(key: str, evidence: Evidence) -> list[Cell]:
    """Returns the printed cells of the evidence's data set that are measured."""
    return list(CELLS[key](evidence)) if key in CELLS else []

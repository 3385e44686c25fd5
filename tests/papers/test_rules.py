"""What each rule decides on made-up evidence: the table of verdicts beside this file, and that nothing may be missing."""

from pathlib import Path

import pytest
import yaml

from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import papers
from dpmf_cli.papers.rules import compute, rules_of, scope
from dpmf_cli.papers.rules.cells import cells
from dpmf_cli.papers.rules.language import Rule
from tests.papers.made import MadeUp

TABLE = yaml.safe_load(Path(__file__).with_name("verdicts.yaml").read_text())
"""By paper and claim: the data set and the seed of the evidence, which parts of the claim hold, and the figures.

They are null where the evidence decides nothing. The cases were chosen so that each part that is not in CONSTANT holds
in one and fails in another, and that a change of any operator, name or number in a rule changes one of them.
"""

CONSTANT = {
    "larger-errors-on-jester": [1],  # Jester is denser than MovieLens by the catalog
    "completely-hides": [0, 1, 2],  # this and those below: by formulas alone, whatever is measured
    "figure-2": [0, 1, 2],
    "traffic": [0, 1, 2, 3, 4],
    "h-makes-it-unbiased": [0],
}
"""By claim: the parts that do not depend on what is measured."""

CLAIMS = [(key, claim) for key in papers() for claim, rule in rules_of(key).items() if isinstance(rule, Rule)]


@pytest.mark.parametrize(("key", "claim"), CLAIMS)
def test_a_rule_decides_by_what_is_measured(key: str, claim: str) -> None:
    for data, seed, held, measured in TABLE[key][claim]:
        found = compute(key, claim, MadeUp({}, data, seed=seed))
        assert (found and "".join("01"[part] for part in found.held)) == held
        assert (found and found.measured) == measured


@pytest.mark.parametrize(("key", "claim"), CLAIMS)
def test_each_part_holds_in_one_case_and_fails_in_another(key: str, claim: str) -> None:
    parts = zip(*(held for _, _, held, _ in TABLE[key][claim] if held), strict=True)
    assert [at for at, seen in enumerate(parts) if len(set(seen)) < 2] == CONSTANT.get(claim, [])


@pytest.mark.parametrize(("key", "claim"), CLAIMS)
def test_where_any_result_is_missing_nothing_is_decided(key: str, claim: str) -> None:
    data, seed, *_ = TABLE[key][claim][0]
    evidence = MadeUp({}, data, seed=seed)
    compute(key, claim, evidence)
    for question in set(evidence.asked):
        assert compute(key, claim, MadeUp({}, data, seed=seed, hidden=question)) is None, question


def test_where_pmf_diverges_nothing_is_decided() -> None:
    worse = next(
        made
        for made in (MadeUp({}, "ml-1m", seed=seed) for seed in range(99))
        if made.baseline("zhang_fig2_ml1m", "pmf") > made.baseline("zhang_fig2_ml1m", "ga")
    )
    assert compute("zhang2018", "rises-with-f-c", worse) is None


def test_h_as_printed_is_not_how_often_a_mini_batch_has_both_items() -> None:
    """The probability is 1 for all that a mini-batch of one rating leaves, and 2·p·q for one of two."""
    of = scope("wang2017", Evidence({}, "")).with_values({"first": 0.02, "second": 0.05})
    for size, probability in ((1, 0.0), (2, 2 * 0.02 * 0.05)):
        assert of.with_values({"size": size}).value("in_a_sample") == pytest.approx(probability, abs=1e-12)
    assert of.with_values({"size": 1}).value("printed_h") == 1 - 0.02 * 0.05


@pytest.mark.parametrize("key", papers())
def test_printed_cells_are_beside_what_is_measured(key: str) -> None:
    """Each cell of a paper once. One that is not measured is left out."""
    evidence = MadeUp({}, "ml-100k", seed=1)
    found = cells(key, evidence)
    count = {"friedman2016": 4 + 14, "neera2020": 2}.get(key, 0)
    assert len(found) == count
    kinds = {(cell.tolerance, cell.ratio) for cell, _ in found.values()}
    assert kinds <= {(0.01, False), (0.015, False), (1.3, True), (0.02, False)}
    for question in set(evidence.asked):
        assert len(cells(key, MadeUp({}, "ml-100k", seed=1, hidden=question))) < count
    assert cells(key, Evidence({}, "ml-100k")) == {}


def test_cells_are_those_of_their_tables() -> None:
    evidence = MadeUp({}, "ml-1m", seed=3)
    found = {
        name: (cell.printed, measured) for name, (cell, measured) in cells("friedman2016", evidence).items()
    }
    assert found["table 3, GE"] == (0.9161, evidence.baseline("ml1m_bounded", "ge"))
    assert found["table 4, ISGD, GE"] == (2.7, evidence.crossing("ml1m_bounded", "isgd", "GE"))
    assert found["table 5, PSGD, IA"] == (2.0, evidence.crossing("ml1m_unbounded", "psgd", "IA"))
    assert found["section 5.4, PKNN, IA"] == (0.18, evidence.crossing("friedman_fig5a", "pknn", "IA"))


def test_claims_of_the_table_are_those_with_rules() -> None:
    assert {(key, claim) for key, claims in TABLE.items() for claim in claims} == set(CLAIMS)

"""The margins of each rule on made-up evidence, as the table beside this file has them; and what decides nothing.

`python -m tests.papers.test_rules` writes the table anew.
"""

import math
from itertools import product
from pathlib import Path

import pytest
import yaml

from dpmf_cli.papers.claims import ANY, paper
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import papers
from dpmf_cli.papers.rules import margins, rules_of, scope
from dpmf_cli.papers.rules.language import Rule
from dpmf_cli.papers.rules.printed_values import printed_values
from tests.papers.made import MadeUp

FILE = Path(__file__).with_name("margins.yaml")
SEEDS = range(40)
CONSTANT = {"completely-hides", "figure-2", "traffic", "h-makes-it-unbiased"}
"""Claims that are arithmetic, whatever is measured."""
ONE_SIDED = {"larger-errors-on-jester", "fall-to-the-liberal-point"}
"""Claims that made-up evidence never meets: errors on Jester are as small as elsewhere, and no t is so much better."""
REPEATING = {"pnbm-beats-neighbours-throughout"}
"""It repeats some atoms of other claims, and asks for all that they need."""

CLAIMS = [
    (key, claim) for key in papers() for claim, rule in rules_of(key).rules.items() if isinstance(rule, Rule)
]


def found(key: str, claim: str, data: str, seed: int) -> dict[str, list[float | str]]:
    """Returns by text and reading the margin, its tolerance, and both sides."""
    return {
        f"{text} {reading}".strip(): [float(f"{each.value:.4g}"), float(f"{each.tolerance:.3g}"), each.said]
        for (text, reading), each in margins(key, claim, MadeUp({}, data, seed=seed)).items()
    }


def cases(key: str, claim: str) -> dict[str, dict[str, list[float | str]]]:
    """Returns made-up evidence in which each atom holds once and fails once, if that is possible."""
    data = next(each.data for each in paper(key).claims if each.id == claim)
    made = {
        f"{where} {seed}": found(key, claim, where, seed)
        for where, seed in product([each for each in data if each != ANY], SEEDS)
    }
    signs = {
        case: {(text, float(each[0]) > 0) for text, each in of.items() if math.isfinite(float(each[0]))}
        for case, of in made.items()
    }
    wanted, chosen = set[tuple[str, bool]]().union(*signs.values()), dict[str, dict[str, list[float | str]]]()
    while wanted:
        case = max(signs, key=lambda each: len(signs[each] & wanted))
        chosen[case], wanted = made[case], wanted - signs[case]
    return chosen


@pytest.mark.parametrize(("key", "claim"), CLAIMS)
def test_a_rule_measures_by_how_much_a_claim_holds(key: str, claim: str) -> None:
    table = yaml.safe_load(FILE.read_text())[key][claim]
    for case, wanted in table.items():
        data, seed = case.split()
        here = found(key, claim, data, int(seed))
        assert list(here) == list(wanted)
        for text, (value, tolerance, said) in wanted.items():
            assert here[text] == [pytest.approx(value, rel=2e-3, nan_ok=True), tolerance, said], text
    signs = {(text, each[0] > 0) for case in table.values() for text, each in case.items()}
    assert claim in CONSTANT | ONE_SIDED or all((text, not holds) in signs for text, holds in signs)


@pytest.mark.parametrize(("key", "claim"), CLAIMS)
def test_where_a_result_is_missing_its_atoms_are_left_out(key: str, claim: str) -> None:
    table = yaml.safe_load(FILE.read_text())[key][claim]
    data, seed = max(table, key=lambda case: len(table[case])).split()
    evidence = MadeUp({}, data, seed=int(seed))
    margins(key, claim, evidence)
    for question in set(evidence.asked):
        left = margins(key, claim, MadeUp({}, data, seed=int(seed), hidden=question))
        assert len(left) < len(margins(key, claim, evidence)) or claim in REPEATING, question


def test_where_pmf_diverges_nothing_is_decided() -> None:
    worse = next(
        made
        for made in (MadeUp({}, "ml-1m", seed=seed) for seed in range(99))
        if made.baseline("zhang_fig2_ml1m", "pmf") > made.baseline("zhang_fig2_ml1m", "ga")
    )
    assert margins("zhang2018", "rises-with-f-c", worse) == {}


def test_h_as_printed_is_not_how_often_a_mini_batch_has_both_items() -> None:
    """The probability is 1 for all that a mini-batch of one rating leaves, and 2·p·q for one of two."""
    of = scope("wang2017", Evidence({}, "")).with_values({"first": 0.02, "second": 0.05})
    for size, probability in ((1, 0.0), (2, 2 * 0.02 * 0.05)):
        assert of.with_values({"size": size}).value("in_a_sample") == pytest.approx(probability, abs=1e-12)
    assert of.with_values({"size": 1}).value("printed_h") == 1 - 0.02 * 0.05


@pytest.mark.parametrize("key", papers())
def test_printed_values_are_beside_what_is_measured(key: str) -> None:
    """Each value of a paper once. One that is not measured is left out."""
    evidence = MadeUp({}, "ml-100k", seed=1)
    found = printed_values(key, evidence)
    count = {"friedman2016": 4 + 14, "neera2020": 2}.get(key, 0)
    assert len(found) == count
    for question in set(evidence.asked):
        assert len(printed_values(key, MadeUp({}, "ml-100k", seed=1, hidden=question))) < count
    assert printed_values(key, Evidence({}, "ml-100k")) == {}


def test_points_of_a_picture_are_compared_where_somebody_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = MadeUp({}, "ml-100k", seed=1)
    curve = evidence.curve("wang_fig1_ml100k", "dpsgd_pnbm")
    point, rmse = curve.epsilons[2], curve.mean()[2]
    rows = [f"ml-100k,wang_fig1_ml100k,dpsgd_pnbm,{epsilon},{rmse + 0.03},0.02" for epsilon in (point, 0.7)]
    (tmp_path / "wang2017.csv").write_text("\n".join(["dataset,config,label,epsilon,rmse,error", *rows]))
    assert printed_values("wang2017", evidence) == {}
    monkeypatch.setattr("dpmf_cli.papers.rules.printed_values.CURVES", tmp_path)
    ((name, value),) = printed_values("wang2017", evidence).items()
    assert name.startswith("wang_fig1_ml100k, dpsgd_pnbm, ε = ")
    assert value.off == pytest.approx(1.5)


def test_printed_values_are_those_of_their_tables() -> None:
    evidence = MadeUp({}, "ml-1m", seed=3)
    values = printed_values("friedman2016", evidence)
    found = {name: (value.printed, value.measured) for name, value in values.items()}
    level = evidence.baseline("ml1m_bounded", "ge")
    assert found["table 3, GE"] == (0.9161, level)
    assert values["table 3, GE"].off == pytest.approx(abs(level - 0.9161) / 0.005, rel=1e-5)
    assert found["table 4, ISGD, GE"] == (2.7, evidence.crossing("ml1m_bounded", "isgd", "GE").reproduced)
    assert found["table 5, PSGD, IA"] == (2.0, evidence.crossing("ml1m_unbounded", "psgd", "IA").reproduced)
    pknn = evidence.crossing("friedman_fig5a", "pknn", "IA").reproduced
    assert found["section 5.4, PKNN, IA"] == (0.18, pknn)


def test_claims_of_the_table_are_those_with_rules() -> None:
    table = yaml.safe_load(FILE.read_text())
    assert {(key, claim) for key, claims in table.items() for claim in claims} == set(CLAIMS)


if __name__ == "__main__":
    every = {key: {claim: cases(key, claim) for of, claim in CLAIMS if of == key} for key in papers()}
    FILE.write_text(
        yaml.safe_dump(every, allow_unicode=True, default_flow_style=None, sort_keys=False, width=1000)
    )

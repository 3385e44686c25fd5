"""The language of rules: what each form of an expression means, how values are told, and what audits say of theorems."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.papers.evidence import Evidence, MissingEvidence, Proof
from dpmf_cli.papers.rules import compute, rules_of
from dpmf_cli.papers.rules.language import Rule, Scope, formatted
from dpmf_cli.papers.rules.theorem import Theorem

NAMES = {
    "three": 3,
    "grid": np.array([1.0, 2.0, 4.0]),
    "of": {"a": 5.0, "b": 2.0},
    "rows": np.array([[1, 9], [2, 4]]),
    "lower": {"a": [1, 2], "b": [np.inf, np.inf]},
    "equal": {"a": [1, 2], "b": [2, 2]},
    "calming": {3: 1, 5: 1.5, 7: 1.4, 9: 1.4},
    "wild": {3: 1, 5: np.inf},
}
DEFINITIONS = {
    "square": "x * x",
    "whole": "square + three",
    "where_it_is": "data",
    "said": "text('x is {x:.1f}')",
}


def scope() -> Scope:
    return Scope(Evidence({}, "here"), NAMES).named(DEFINITIONS).with_values({"x": 2})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * three - 8 / 4 - 2 ** 3", -3),
        ("-three", -3),
        ("1 < three < 4 and not three > 4", True),
        ("1 < three < 3", False),
        ("three >= 3 and three <= 3 and three == 3", True),
        ("grid > 1", [False, True, True]),
        ("1 < grid < 4", [False, True, False]),
        ("grid[grid > 1][-1]", 4),
        ("of.b", 2),
        ("'more' if three < 4 else unknown", "more"),
        ("[each * three for each in grid if each > 1]", [6, 12]),
        ("[a + b for a in ['x', 'y'] for b in ['1', '2']]", ["x1", "x2", "y1", "y2"]),
        ("{key: of[key] / 2 for key in of}", {"a": 2.5, "b": 1}),
        ("whole", 7),
        ("[square for x in grid]", [1, 4, 16]),
        ("square(x=three) - square", 5),
        ("on('there', where_it_is) + where_it_is", "therehere"),
        ("said(x=3)", "x is 3.0"),
        ("inf > three", True),
        # Functions: of a dictionary the values are reduced, of an array the first axis.
        ("[min(of), max(of), min(3, 2), max(grid)]", [2, 5, 2, 4]),
        ("[argmin(of), argmax(of)]", ["b", "a"]),
        ("[argmin(grid), argmax(grid)]", [0, 2]),
        ("max(rows) - min(rows)", [1, 5]),
        ("diff(grid)", [1, 2]),
        ("values(of)", [5, 2]),
        ("[pair[0] + pair[1] for pair in pairs(['a', 'b', 'c'])]", ["ab", "ac", "bc"]),
        ("where(grid > 1, grid, -inf)", [-np.inf, 2, 4]),
        ("within(grid, 2)", [False, True, True]),
        ("within(grid, 0.5, 2)", [True, True, False]),
        ("within(grid, 2.000001, 3.999997)", [False, True, True]),
        ("at(grid, 2 * grid, 2)", 4),
        ("at(grid, 2 * grid, 2.001, 0.001)", 4),
        ("close([1, 1.1])", True),
        ("[close([1, 1.11]), close([1, inf]), close([0, 0])]", [False, False, True]),
        ("below(lower)", True),
        ("below(equal)", False),
        ("off_straight(grid)", 1 / 6),
        ("[off_straight(grid * inf), off_straight(grid * 0)]", [np.inf, np.inf]),
        ("settled(calming, 0.11)", 5),
        ("settled(wild, 0.1)", 5),
        ("upper('isgd') + text('{len(grid)}')", "ISGD3"),
    ],
)
def test_expressions(expression: str, value: Any) -> None:
    assert scope().value(expression) == pytest.approx(value)


@pytest.mark.parametrize(
    "expression",
    ["min(grid[grid > 9])", "within(grid, 5)", "at(grid, grid, 3)", "crossing('no', 'isgd', 'IA')"],
)
def test_what_is_not_there_decides_nothing(expression: str) -> None:
    with pytest.raises(MissingEvidence):
        scope().value(expression)


@pytest.mark.parametrize(
    "expression", ["lambda: 1", "(1, 2)", "three | 1", "grid[0:1]", "__import__('os')", "unknown"]
)
def test_nothing_else_is_in_the_language(expression: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        scope().value(expression)


@pytest.mark.parametrize(
    ("value", "how", "said"),
    [
        (0.0, "ε", "below the grid"),
        (np.inf, "ε", "not reached"),
        (1.234, "ε", "1.23"),
        (1234.5, "3", "1230"),
        (-0.5, "+3", "−0.500"),
        (0.25, "+.1f", "+0.2"),
        (0.25, ".3f", "0.250"),
        ([1.0, 2.5], ".1f", "1.0, 2.5"),
        (np.array([2.0, 1.0, 3.0]), ".1f–", "1.0–3.0"),
        (["a", "b"], "", "a, b"),
        (["a", "b"], ";", "a; b"),
        ({"A": 1.0, "B": 0.0}, "ε", "A 1.00, B below the grid"),
        ({"A": [1, 2], "B": [3, 2], "C": [np.inf, np.inf]}, "below", "1 of 2, not B 3.00 and 2.00"),
        ({"A": [1, 2]}, "below", "1 of 1"),
    ],
)  # fmt: skip
def test_how_values_are_told(value: Any, how: str, said: str) -> None:
    assert formatted(value, how) == said


def judged(**rule: Any) -> tuple[tuple[bool, ...], str]:
    found = Rule.model_validate(rule).judged(scope())
    return found.held, found.measured


def test_parts_come_in_the_order_of_the_loops_and_then_those_of_the_whole() -> None:
    held, measured = judged(
        let={"limit": "a + b"},
        each={"a": [1, 2], "b": "[three, 4]"},
        parts=["limit > 4", "grid > limit - 3"],
        holds="three < 2",
        told="{a}{b}",
    )
    turns = ((0, 0, 1, 1), (1, 0, 0, 1), (1, 0, 0, 1), (1, 0, 0, 1))
    assert held == (*(bool(part) for turn in turns for part in turn), False)
    assert measured == "13; 14; 23; 24"


def test_a_rule_needs_what_it_says_in_every_turn() -> None:
    assert judged(needs=["three > 2", "x > 1"], parts="x < 3", says="x {x}") == ((True,), "x 2")
    with pytest.raises(MissingEvidence):
        judged(each={"y": [1, 5]}, needs="y < 3", parts="x < 3")
    with pytest.raises(ValidationError, match="unknown key"):
        judged(part="x < 3")


THEOREMS = [
    (key, claim)
    for key in ("friedman2016", "mcsherry2009", "neera2020", "wang2017", "zhang2018")
    for claim, rule in rules_of(key).items()
    if isinstance(rule, Theorem)
]


@pytest.mark.parametrize(("key", "claim"), THEOREMS)
def test_theorems_are_held_against_audits(key: str, claim: str) -> None:
    rule = rules_of(key)[claim]
    assert isinstance(rule, Theorem)
    step = rule.step
    for proof, held, proved, said in (
        (Proof(1.0, (), {step: 0.99}), True, not step, "what is claimed is proved"),
        (Proof(2.0, (), {step: 1.0}), True, False, "2 times the claimed ε is proved"),
        (Proof(np.inf, (), {step: 1.01}), not step, False, "no ε is proved"),
        (Proof(1.0, ("a flaw", "b"), {step: 1.0}), bool(step), not step, "; a replay shows: a flaw; b"),
    ):
        evidence = Evidence({}, "", {rule.theorem: proof})
        found = compute(key, claim, evidence)
        assert found is not None
        assert (found.held, rule.is_proved(evidence)) == ((held,), proved)
        moved = f"one moves the {step} by {proof.moves[step]:.3g} of what is claimed"
        assert (moved if step else said) in found.measured
    assert compute(key, claim, Evidence({}, "")) is None
    assert not step or compute(key, claim, Evidence({}, "", {rule.theorem: Proof(1.0)})) is None

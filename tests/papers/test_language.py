"""The language of rules: what each form of an expression means, how values are told, and what audits say of theorems."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.papers.evidence import Evidence, MissingEvidence, Proof
from dpmf_cli.papers.rules import Theorem, rules_of
from dpmf_cli.papers.rules.language import Margin, Rule, Scope

NAMES = {
    "three": 3,
    "tolerances": {"RMSE": 0.002, "ε": 1.05},
    "grid": np.array([1.0, 2.0, 4.0]),
    "of": {"a": 5.0, "b": 2.0},
    "rows": np.array([[1, 9], [2, 4]]),
    "early": {1: 0.9, 2: 1.0, 3: 1.2},
    "late": {1: 1.1, 2: 1.0, 3: 0.95},
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
        ("1 < three < 4 and three > 4 or three != 4", True),
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
        ("[apart(1, 1.1), apart([2, 1, 8])]", [1.1, 8]),
        ("grid[:-1] < grid[1:]", [True, True]),
        ("regret_of_order(early, late)", 0.15),  # the best of a ≥ b is (2, 2); in order, (1, 3) costs nothing
        ("regret_of_order(late, early)", -0.25),
        ("off_straight(grid)", 1 / 6),
        ("[off_straight(grid * inf), off_straight(grid * 0)]", [np.inf, np.inf]),
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
    "expression", ["lambda: 1", "(1, 2)", "three | 1", "not three", "__import__('os')", "unknown"]
)
def test_nothing_else_is_in_the_language(expression: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        scope().value(expression)


def margins(**rule: Any) -> list[Margin]:
    return list(Rule.model_validate(rule).margins(scope()))


def margin(says: str, **atom: Any) -> Margin:
    (found,) = margins(once=[{"text": "it", "says": says, **atom}])
    return found


@pytest.mark.parametrize(
    ("atom", "value", "said"),
    [
        ({"says": "three < 3.5"}, 0.5, "3.0000 against 3.5000"),
        ({"says": "three > 3.5"}, -0.5, "3.5000 against 3.0000"),
        ({"says": "three <= 3.5", "unit": "points"}, 0.5, "3 against 3.5"),
        ({"says": "three < 6", "unit": "ε"}, np.log(2), "3.00 against 6.00"),
        ({"says": "three < inf", "unit": "ε"}, np.inf, "3.00 against not reached"),
        ({"says": "0 < three", "unit": "ε"}, np.inf, "below the grid against 3.00"),
        ({"says": "inf < inf", "unit": "ε"}, np.nan, "not reached against not reached"),
        ({"says": "grid < 5", "at": "grid"}, 1, "4.0000 against 5.0000 at 4.00"),
        ({"says": "grid < three", "at": "grid"}, -1, "4.0000 against 3.0000; not at 4.00"),
        ({"says": "grid < 0", "at": "grid"}, -4, "4.0000 against 0.0000; nowhere"),
        ({"says": "grid < three", "at": "grid", "over": "some"}, 2, "1.0000 against 3.0000 at 1.00"),
        ({"says": "grid < three", "over": "mean"}, 2 / 3, "2.3333 against 3.0000 in the mean"),
        (
            {"says": "[1, 4, 5, 6, 7] < three", "at": "[1, 2, 3, 4, 5]"},
            -4,
            "7.0000 against 3.0000; not from 2.00 to 5.00",
        ),
        (
            {"says": "[4, 1, 5, 6, 7] < three", "at": "[1, 2, 3, 4, 5]"},
            -4,
            "7.0000 against 3.0000; not at 1.00, 3.00, 4.00, 5.00",
        ),
        ({"says": "rows < 5"}, -4, "9.0000 against 5.0000"),
        ({"says": "y < 9", "let": {"y": "x + 1"}}, 6, "3.0000 against 9.0000"),
    ],
)
def test_a_margin_is_how_far_an_inequality_is_from_turning(atom: Any, value: float, said: str) -> None:
    found = margin(**atom)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert found.said == said


def test_what_the_grid_leaves_open_is_open_only_if_it_could_turn_the_margin() -> None:
    """Elements are 2, NaN and −1: one fails whatever the second is, and one holds."""
    curves = {"less": "[1, inf, 4]", "more": "[3, inf, 3]"}
    assert margin("less < more", let=curves).value == -1
    assert margin("less < more", let=curves, over="some").value == 2
    assert np.isnan(margin("[1, inf] < [3, inf]").value)
    assert np.isnan(margin("[4, inf] < [3, inf]", over="some").value)


def test_tolerances_are_of_the_unit_unless_an_atom_has_its_own() -> None:
    assert margin("1 < 2").tolerance == 0.002
    assert margin("1 < 2", unit="ε").tolerance == pytest.approx(np.log(1.05))
    assert margin("1 < 2", unit="points").tolerance == 0
    assert margin("1 < 2", tolerance=0, note="so").tolerance == 0


def test_atoms_come_in_the_order_of_the_loops_and_then_those_that_are_judged_once() -> None:
    atoms = [{"text": "{a}{b}", "says": "limit < 9"}, {"text": "{a}!", "says": "0 < a", "if": "b == 4"}]
    lacking = {"text": "lacking", "says": "0 < min(grid[grid > 9])"}
    found = margins(
        let={"limit": "a + b"},
        each={"a": [1, 2], "b": "[three, 4]"},
        atoms=[*atoms, lacking],
        once=[lacking, {"text": "once", "says": "0 < 1"}],
    )
    told = [(each.text, each.value) for each in found]
    assert told == [("13", 5), ("14", 4), ("1!", 1), ("23", 4), ("24", 3), ("2!", 2), ("once", 1)]
    needing = margins(
        each={"a": [1, 2]}, needs=["a > 1", "three > 2"], atoms=[{"text": "{a}", "says": "0 < a"}]
    )
    assert [each.text for each in needing] == ["2"]


def test_a_rule_is_of_comparisons_and_known_keys() -> None:
    for says in ("three", "1 < three < 4", "three == 3 and 1 < 2"):
        with pytest.raises(ValueError, match="is not one comparison"):
            margin(says)
    with pytest.raises(ValidationError, match="unknown key"):
        margins(atom=())


THEOREMS = [
    (key, claim)
    for key in ("friedman2016", "mcsherry2009", "neera2020", "wang2017", "zhang2018")
    for claim, rule in rules_of(key).rules.items()
    if isinstance(rule, Theorem)
]


@pytest.mark.parametrize(("key", "claim"), THEOREMS)
def test_theorems_are_held_against_audits(key: str, claim: str) -> None:
    rule = rules_of(key).rules[claim]
    assert isinstance(rule, Theorem)
    step = rule.step
    for proof, held, proved, said in (
        (Proof(1.0, (), {step: 0.99}), True, not step, "what is claimed is proved"),
        (Proof(2.0, (), {step: 1.0}), True, False, "2 times the claimed ε is proved"),
        (Proof(np.inf, (), {step: 1.01}), not step, False, "no ε is proved"),
        (
            Proof(1.0, ("a flaw", "b"), {step: 1.0}),
            bool(step),
            not step,
            "what is claimed is proved, but not at every ε; a replay shows: a flaw; b",
        ),
    ):
        evidence = Evidence({}, "", {rule.theorem: proof})
        found = rule.judged(evidence)
        assert (found.held, found.proved) == (held, proved)
        moved = f"one moves the {step} by {proof.moves[step]:.3g} of what is claimed"
        assert (moved if step else said) in found.measured
    for missing in ({}, {rule.theorem: Proof(1.0)} if step else {}):
        with pytest.raises(MissingEvidence):
            rule.judged(Evidence({}, "", missing))

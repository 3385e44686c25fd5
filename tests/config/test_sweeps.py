"""Sweeps of one parameter, or of one part of it."""

import math
from pathlib import Path

import pytest

from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization
from tests.configs import GOOD, load


def test_a_part_of_effects_leaves_the_others(tmp_path: Path) -> None:
    text = GOOD + "    effects: {beta_m: 7}\n    sweep: {effects.beta_u: [10, 100]}\n"
    _, low, high = load(tmp_path, text).algorithms
    assert [each.effects.beta_u for each in (low, high)] == [10, 100]
    assert [each.effects.beta_m for each in (low, high)] == [7, 7]
    assert (low.name, low.swept, low.swept_value) == ("isgd, effects.beta_u 10", "effects.beta_u", 10)


def test_a_part_of_a_budget_leaves_the_others_their_proportions(tmp_path: Path) -> None:
    *_, low, high = load(tmp_path, GOOD + "    sweep: {budget.factorization: [0.4, 0.9]}\n").algorithms
    for entry, value in ((low, 0.4), (high, 0.9)):
        assert isinstance(entry, PrivateFactorization)
        fractions = entry.budget.fractions
        assert fractions["factorization"] == value
        assert math.fsum(fractions.values()) == pytest.approx(1, abs=1e-12)
        assert fractions["item_averages"] / fractions["global_averages"] == pytest.approx(0.14 / 0.02)


def test_what_is_swept_names_the_results(tmp_path: Path) -> None:
    swept = load(tmp_path, GOOD + "    sweep: {effects.beta_u: [10]}\n").algorithms[1]
    plain = load(tmp_path, GOOD + "    effects: {beta_u: 10}\n").algorithms[1]
    assert swept.parameters() == plain.parameters()

"""Keys that change the grid or the entries: sweeps of a parameter or of one part of it, and `refine`."""

import math
from pathlib import Path

import pytest

from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization
from dpmf_cli.experiment.config import config_of
from tests.configs import GOOD, GROWTH, THETAS, TWINS, load


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


OWN = GOOD.replace(
    "ml-100k",
    "{kind: csv, name: shop, path: a.csv, columns: {user: a, item: b, rating: c, timestamp: d}, "
    "scale: {minimum: 1, maximum: 5}}",
)


@pytest.mark.parametrize(
    ("text", "refines"),
    [
        (GOOD, False),
        (GOOD + "refine: true\n", True),
        (OWN, True),
        (OWN + "refine: false\n", False),
        (OWN + TWINS + GROWTH, False),
        (GOOD.replace("ml-100k", "{kind: synthetic, like: ml-100k}"), False),
    ],
)
def test_it_is_on_for_data_sets_of_ones_own(tmp_path: Path, text: str, refines: bool) -> None:
    assert load(tmp_path, text).refines is refines


def test_where_it_is_not_set_a_config_is_the_one_that_it_was(tmp_path: Path) -> None:
    assert "refine" not in load(tmp_path, GOOD).resolved()
    set_here = load(tmp_path, GOOD + "refine: true\n")
    assert config_of(set_here.resolved()).refines


def test_added_epsilons_belong_to_one_entry_and_not_to_the_config(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    more = config.with_added({"PGE": (0.3, 0.5)}).with_added({"PGE": (0.4,)})
    pge, isgd = more.algorithms
    assert more.grid(pge) == (0.1, 0.3, 0.4, 0.5, 1, 10)
    assert more.grid(isgd) == (0.1, 1, 10)
    assert config.grid(pge) == (0.1, 1, 10)
    assert more.hash == config.hash


def test_added_epsilons_of_a_grid_of_theta_have_their_theta(tmp_path: Path) -> None:
    text = THETAS.replace("algorithm: pge", "{algorithm: mm_knn, neighbours: user}")
    config = load(tmp_path, text.replace("  - algorithm: isgd\n    factors: 3\n", "") + "mode: published\n")
    (entry,) = config.algorithms
    low, high = config.grid(entry)[:2]
    more = config.with_added({entry.name: ((low + high) / 2,)})
    thetas = more.thetas_of(entry)
    assert thetas is not None
    assert list(thetas) == sorted(thetas)
    assert more.grid(entry)[1] == (low + high) / 2 == pytest.approx(entry.epsilon_of(thetas[1]))

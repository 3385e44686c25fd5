"""Gaussian accounting: exact, and composed before it is converted.

The ledger refuses overspending and keeps claimed and provable ε apart.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.ledger import Ledger, OverspentError
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

L2 = Sensitivity(2.0, 2, Neighbours.UNBOUNDED, "test")
L1 = Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "test")
DELTA = 1e-6


def delta_of(mu: float, epsilon: float) -> float:
    """Balle and Wang 2018, theorem 8: the δ of one Gaussian mechanism."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0, 8.0])
def test_epsilon_is_the_exact_one(mu: float) -> None:
    assert delta_of(mu, epsilon_of_mu(mu, DELTA)) == pytest.approx(DELTA, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 10.0, 1000.0, math.inf])
def test_mu_and_epsilon_are_each_others_inverse(epsilon: float) -> None:
    assert epsilon_of_mu(mu_of_epsilon(epsilon, DELTA), DELTA) == pytest.approx(epsilon, rel=1e-9)
    assert epsilon_of_mu(0.0, DELTA) == 0.0


def test_steps_compose_by_the_squares_of_mu() -> None:
    ledger = Ledger([100.0], Mode.CORRECTED, DELTA)
    ledger.spend_gaussian("a", L2, np.array([0.6]))
    ledger.spend_gaussian("b", L2, np.array([0.8]))
    assert ledger.provable == pytest.approx([epsilon_of_mu(1.0, DELTA)])
    assert ledger.claimed == pytest.approx(ledger.provable)
    assert ledger.provable[0] < sum(entry.provable[0] for entry in ledger.entries)
    record = ledger.entries[0].record()
    assert (record["mu"], record["norm"]) == ([0.6], "L2")


def test_noise_scaled_to_half_of_the_sensitivity_proves_twice_the_mu() -> None:
    half = Sensitivity(1.0, 2, Neighbours.UNBOUNDED, "too small")
    ledger = Ledger([100.0], Mode.PUBLISHED, DELTA)
    ledger.spend_gaussian("a", L2, np.array([0.5]), calibrated_to=half)
    assert ledger.provable == pytest.approx([epsilon_of_mu(1.0, DELTA)])
    assert ledger.claimed == pytest.approx([epsilon_of_mu(0.5, DELTA)])
    strict = Ledger([epsilon_of_mu(0.5, DELTA)], Mode.CORRECTED, DELTA)
    with pytest.raises(OverspentError, match="provably"):
        strict.spend_gaussian("a", L2, np.array([0.5]), calibrated_to=half)


def test_what_a_publication_charges_is_added_up_and_what_is_provable_is_composed() -> None:
    ledger = Ledger([10.0], Mode.PUBLISHED, DELTA)
    for step in ("a", "b"):
        ledger.spend_gaussian(step, L2, np.array([0.5]), claimed=np.array([3.0]))
    assert ledger.claimed.tolist() == [6.0]
    assert ledger.provable == pytest.approx([epsilon_of_mu(math.sqrt(0.5), DELTA)])


def test_pure_and_gaussian_steps_add_up() -> None:
    ledger = Ledger([100.0], Mode.CORRECTED, DELTA)
    ledger.spend("pure", "Laplace", L1, np.array([0.25]))
    ledger.spend_gaussian("noise", L2, np.array([1.0]))
    assert ledger.provable == pytest.approx([0.25 + epsilon_of_mu(1.0, DELTA)])


def test_a_composition_over_the_budget_enters_nothing() -> None:
    ledger = Ledger([epsilon_of_mu(1.0, DELTA)], Mode.CORRECTED, DELTA)
    ledger.spend_gaussian("a", L2, np.array([0.6]))
    with pytest.raises(OverspentError, match="b: would spend"):
        ledger.spend_gaussian("b", L2, np.array([0.81]))
    ledger.spend_gaussian("b", L2, np.array([0.8]))
    assert [entry.step for entry in ledger.entries] == ["a", "b"]


def test_gaussian_noise_needs_a_delta() -> None:
    with pytest.raises(OverspentError, match="needs a δ"):
        Ledger([1.0]).spend_gaussian("a", L2, np.array([0.1]))


def test_what_nobody_charges_for_proves_nothing() -> None:
    ledger = Ledger([1.0, math.inf])
    ledger.charge_nothing("a look at the data", L1)
    assert ledger.claimed.tolist() == [0.0, 0.0]
    assert ledger.provable.tolist() == [math.inf, math.inf]
    with pytest.raises(OverspentError, match="provably"):
        Ledger([1.0], Mode.CORRECTED).charge_nothing("a look at the data", L1)


BOUNDED = Sensitivity(1.0, 1, Neighbours.BOUNDED, "test")
UNBOUNDED = Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "test")


def test_steps_add_up() -> None:
    ledger = Ledger([1.0, 2.0])
    assert ledger.provable.tolist() == [0.0, 0.0]
    ledger.spend("a", "Laplace", BOUNDED, 0.3 * ledger.limit)
    ledger.spend("b", "Laplace", BOUNDED, 0.7 * ledger.limit)
    assert ledger.claimed == pytest.approx([1.0, 2.0])
    assert ledger.provable == pytest.approx([1.0, 2.0])


def test_overspending_any_epsilon_of_the_grid_raises_and_enters_nothing() -> None:
    ledger = Ledger([1.0, 2.0])
    ledger.spend("a", "Laplace", BOUNDED, np.array([0.9, 0.9]))
    with pytest.raises(OverspentError, match=r"b: would spend ε = 1.1 of 1"):
        ledger.spend("b", "Laplace", BOUNDED, np.array([0.2, 0.2]))
    assert len(ledger.entries) == 1


def test_many_fractions_that_sum_to_one_are_not_overspending() -> None:
    ledger = Ledger([0.1, 0.7, 3.0])  # of the last two, the sum of floats is more than the whole
    for step in range(10_000):
        ledger.spend(f"step {step}", "Laplace", BOUNDED, ledger.limit / 10_000)


@pytest.mark.parametrize("epsilon", [0.0, -0.1, np.nan])
def test_a_step_must_cost_something(epsilon: float) -> None:
    with pytest.raises(OverspentError, match="positive"):
        Ledger([1.0]).spend("a", "Laplace", BOUNDED, np.array([epsilon]))


def test_neighbours_of_different_kinds_do_not_add_up() -> None:
    ledger = Ledger([1.0])
    ledger.spend("a", "Laplace", BOUNDED, np.array([0.5]))
    with pytest.raises(OverspentError, match="neighbours"):
        ledger.spend("b", "Laplace", UNBOUNDED, np.array([0.5]))


def test_claimed_is_not_provable() -> None:
    ledger = Ledger([1.0])
    ledger.spend("a", "Laplace", BOUNDED, np.array([1.0]), provable=np.array([np.inf]))
    assert ledger.claimed.tolist() == [1.0]
    assert ledger.provable.tolist() == [np.inf]
    record = ledger.entries[0].record()
    assert (record["claimed"], record["provable"], record["calibrated_to"]) == ([1.0], [np.inf], 1.0)


def test_in_corrected_mode_what_can_be_proved_is_bounded_too() -> None:
    claimed, provable = np.array([1.0]), np.array([1.25])
    published = Ledger([1.0])
    published.spend("a", "Laplace", BOUNDED, claimed, provable)
    assert published.provable.tolist() == [1.25]
    with pytest.raises(OverspentError, match=r"a, provably: would spend ε = 1.25 of 1"):
        Ledger([1.0], Mode.CORRECTED).spend("a", "Laplace", BOUNDED, claimed, provable)

"""The ledger refuses overspending and keeps claimed and provable ε apart."""

import numpy as np
import pytest

from dpmf_cli.privacy.ledger import Ledger, OverspentError
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

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

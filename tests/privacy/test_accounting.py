"""Gaussian accounting: exact, and composed before it is converted.

The ledger refuses overspending and keeps claimed and provable ε apart.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dpmf_cli.privacy.accounting import SampledSteps, composed_epsilons, epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.ledger import Ledger, OverspentError
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity

L2 = Sensitivity(2.0, 2, Neighbours.UNBOUNDED, "test")
L1 = Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "test")
HALF = replace(L2, calibrated_to=replace(L2, value=1.0))
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


def pure(claimed: float, provable: float | None = None) -> Callable[[Ledger], object]:
    proved = None if provable is None else np.array([provable])
    return lambda ledger: ledger.spend("pure", "Laplace", L1, np.array([claimed]), proved)


def gaussian(
    theta: float, claimed: float | None = None, moves: Sensitivity = L2
) -> Callable[[Ledger], object]:
    charged = None if claimed is None else np.array([claimed])
    return lambda ledger: ledger.spend("noise", "Gaussian", moves, charged, theta=np.array([theta]))


STEPS = SampledSteps(np.array([5.0]), 0.1, 10)


def sampled(claimed: np.ndarray | None = None) -> Callable[[Ledger], object]:
    return lambda ledger: ledger.spend("samples", "Gaussian", L2, claimed, sampled=STEPS)


def with_samples(mu: float) -> float:
    return float(composed_epsilons((STEPS,), np.array([mu]), DELTA, Neighbours.UNBOUNDED)[0])


def of(mu: float) -> float:
    return epsilon_of_mu(mu, DELTA)


Steps = list[Callable[[Ledger], object]]

SPENT: dict[str, tuple[Steps, float, float]] = {
    "pure steps add up": ([pure(0.3), pure(0.7)], 1.0, 1.0),
    "a publication's claim is not what can be proved": ([pure(1.0, math.inf)], 1.0, math.inf),
    "squares of μ add up": ([gaussian(0.6), gaussian(0.8)], of(1), of(1)),
    "what is charged adds up, what is provable composes": ([gaussian(0.5, 3.0)] * 2, 6.0, of(math.sqrt(0.5))),
    "pure and Gaussian steps add up": ([pure(0.25), gaussian(1.0)], 0.25 + of(1), 0.25 + of(1)),
    "noise for half of the move": ([gaussian(0.5, moves=HALF)], of(0.5), of(1)),
    "steps on samples": ([sampled()], with_samples(0), with_samples(0)),
    "samples are charged for, and proved": ([sampled(np.array([0.1]))], 0.1, with_samples(0)),
    "samples beside everybody": ([sampled(), gaussian(0.5)], with_samples(0.5), with_samples(0.5)),
    "everybody beside samples": ([gaussian(0.5, 0.1), sampled(np.array([0.1]))], 0.2, with_samples(0.5)),
    "nothing charged, nothing proved": ([lambda ledger: ledger.charge_nothing("a look", L1)], 0.0, math.inf),
}


@pytest.mark.parametrize("name", SPENT)
def test_what_steps_cost_and_where_the_ledger_refuses_them(name: str) -> None:
    """The last step is refused, and leaves nothing, if the claims or, corrected, the proofs exceed the budget."""
    steps, claimed, provable = SPENT[name]
    ledger = Ledger([claimed], delta=DELTA)
    for step in steps:
        step(ledger)
    assert ledger.claimed == pytest.approx([claimed])
    assert ledger.provable == pytest.approx([provable])
    budget = min(provable, 1e9)
    for mode, limit in ((Mode.PUBLISHED, claimed), (Mode.CORRECTED, max(claimed, budget))):
        if limit == 0:
            continue
        tight = Ledger([0.999 * limit], mode, DELTA)
        for step in steps[:-1]:
            step(tight)
        with pytest.raises(OverspentError, match="would spend"):
            steps[-1](tight)
        assert len(tight.entries) == len(steps) - 1


def test_a_record_tells_claimed_from_provable() -> None:
    ledger = Ledger([9.0], delta=DELTA)
    for step in (pure(1.0, math.inf), gaussian(0.6)):
        step(ledger)
    one, other = (entry.record() for entry in ledger.entries)
    assert (one["claimed"], one["provable"], one["calibrated_to"]) == ([1.0], [math.inf], 1.0)
    assert (other["mu"], other["norm"]) == ([0.6], "L2")


def test_overspending_any_epsilon_of_the_grid_raises_and_enters_nothing() -> None:
    ledger = Ledger([1.0, 2.0])
    assert ledger.provable.tolist() == [0.0, 0.0]
    pure(0.9)(ledger)
    with pytest.raises(OverspentError, match=r"pure: would spend ε = 1.1 of 1"):
        pure(0.2)(ledger)
    assert len(ledger.entries) == 1


def test_many_fractions_that_sum_to_one_are_not_overspending() -> None:
    ledger = Ledger([0.1, 0.7, 3.0])  # of the last two, the sum of floats is more than the whole
    for step in range(10_000):
        ledger.spend(f"step {step}", "Laplace", L1, ledger.limit / 10_000)


BOUNDED = Sensitivity(1.0, 1, Neighbours.BOUNDED, "test")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([pure(0.0)], "positive"),
        ([pure(math.nan)], "positive"),
        ([gaussian(0.1)], "needs a δ"),
        ([pure(0.1), lambda ledger: ledger.spend("b", "Laplace", BOUNDED, np.ones(1))], "neighbours"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused(steps: list[Callable[[Ledger], object]], message: str) -> None:
    ledger = Ledger([1e3])
    for step in steps[:-1]:
        step(ledger)
    with pytest.raises(OverspentError, match=message):
        steps[-1](ledger)

"""Langevin dynamics reach the law in the docstring, on a posterior known in closed form."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger, OverspentError
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling

DATA = np.array([0.9, -0.2, 0.4, 1.0, 0.3, 0.7, -0.5, 0.1])
RIDGE = 2.0
PRECISION = len(DATA) + RIDGE
MEAN = DATA.sum() / PRECISION
CHAINS = 20_000
BOUND = 2.0
"""½(x − θ)² for x and θ within [−1, 1]."""


def chains(
    schedule: LangevinSchedule, epsilons: list[float], ledger: Ledger | None = None, seed: int = 0
) -> np.ndarray:
    """(CHAINS, E) states of independent chains: x_i ~ N(θ, 1), θ ~ N(0, 1/λ), from θ = 3."""
    ledger = ledger or Ledger(epsilons)
    state = np.full((CHAINS, len(epsilons)), 3.0)
    for drift, noise in posterior_sampling(
        "chain",
        (CHAINS,),
        schedule=schedule,
        bound=BOUND,
        epsilon=ledger.limit,
        neighbours=Neighbours.USER,
        curator=Curator(ledger, Streams(seed, "data", "chain", 0, 0)),
    ):
        gradient = PRECISION * state - DATA.sum()
        state = noise.added_to(state - drift * gradient)
    return state


def departs(sample: np.ndarray, mean: float, variance: float) -> bool:
    """Whether mean or variance is wrong: by more than 5 standard errors, with 3 % allowed for the step size."""
    error = math.sqrt(variance / CHAINS)
    ratio = float(sample.var()) / variance
    return abs(float(sample.mean()) - mean) > 5 * error or abs(ratio - 1) > 0.03 + 5 * math.sqrt(2 / CHAINS)


@pytest.mark.parametrize("temperature", [1.0, 0.03])
def test_the_chain_samples_the_posterior_to_the_power_scale_over_temperature(temperature: float) -> None:
    schedule = LangevinSchedule(0.05, 0.3, temperature, 600)
    epsilons = [2 * BOUND, 4 * BOUND, 400 * BOUND]
    for column, power in zip(chains(schedule, epsilons).T, (0.5, 1.0, 1.0), strict=True):
        variance = temperature / (power * PRECISION)
        assert not departs(column, MEAN, variance)
        for factor in (0.8, 1.25):
            assert departs(column, MEAN, factor * variance)
        assert departs(column, MEAN + 8 * math.sqrt(variance / CHAINS), variance)


def test_the_ledger_claims_epsilon_and_proves_nothing() -> None:
    schedule = LangevinSchedule(0.05, 0.3, 0.03, 5)
    ledger = Ledger([1.0, np.inf])
    chains(schedule, [1.0, np.inf], ledger)
    (entry,) = ledger.entries
    assert (entry.mechanism, entry.calibrated_to.value) == ("SGLD × 5, temperature 0.03", 2 * BOUND)
    assert entry.sensitivity.value == np.inf
    assert entry.calibrated_to.source.endswith("a chain at its limit spends 33.3333 times ε")
    assert ledger.claimed.tolist() == [1.0, np.inf]
    assert ledger.provable.tolist() == [np.inf, np.inf]
    with pytest.raises(OverspentError, match="provably"):
        chains(schedule, [1.0], Ledger([1.0], Mode.CORRECTED))


def test_a_converged_chain_costs_epsilon_over_temperature_and_not_epsilon() -> None:
    """The posteriors of two users' data, where `BOUND` holds: for θ within [−1, 1]."""
    epsilon, temperature, theta = 0.5 * BOUND, 0.09, np.linspace(-1, 1, 2001)
    ledger = Ledger([epsilon])
    chains(LangevinSchedule(0.05, 0.3, temperature, 1), [epsilon], ledger)
    factor = 1 / ledger.entries[0].temperature
    assert ledger.entries[0].calibrated_to.source.endswith(f"spends {factor:g} times ε")
    power = epsilon / (4 * BOUND) / temperature
    energies = [power * ((x - theta) ** 2 + RIDGE * theta**2) / 2 for x in (-1, 1)]
    one, other = (-each - math.log(trapezoid(np.exp(-each), theta)) for each in energies)
    assert max(epsilon, 0.2 * factor * epsilon) < np.abs(one - other).max() <= factor * epsilon

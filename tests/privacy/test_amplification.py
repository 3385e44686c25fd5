"""Amplification by sampling of a pure step: against dp_accounting and against exact laws."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpmf_cli.privacy.subsampling import amplified, before_sampling


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, pytest.param(4.0, marks=pytest.mark.slow)])
def test_amplification_is_what_dp_accounting_finds(rate: float, epsilon: float) -> None:
    distribution = pld.from_laplace_mechanism(
        1 / epsilon, sampling_prob=rate, value_discretization_interval=1e-5
    )
    excess = distribution.get_epsilon_for_delta(1e-12) - amplified(epsilon, rate)
    assert -1e-8 < excess < 1.1e-5


def test_the_published_step_proves_fifty_times_what_it_claims() -> None:
    """Wang and Tang 2017, theorem 1: ε/(Kγ) each, at ε = 1, K = 10, γ = 0.01."""
    assert 10 * amplified(1 / (10 * 0.01), 0.01) == pytest.approx(54.0, abs=0.05)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.999, 1.001, 30.0, 5000.0, math.inf])
def test_amplification_has_an_inverse(rate: float, epsilon: float) -> None:
    assert before_sampling(amplified(epsilon, rate), rate) == pytest.approx(epsilon, rel=1e-9)
    assert amplified(epsilon, rate) <= epsilon
    if epsilon < 1e-9:
        assert amplified(epsilon, rate) == pytest.approx(rate * epsilon, rel=1e-9)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, math.nan])
def test_a_rate_is_a_probability(rate: float) -> None:
    with pytest.raises(ValueError, match="sampling rate"):
        amplified(1.0, rate)


def exchanged(old: float, new: float, epsilon: float, rate: float) -> float:
    """The exact ε of a record that adds `old` or `new` if it is sampled, noise for a move of 1."""
    at = np.union1d(np.linspace(-3, 3, 601), [0.0, old, new])
    one, other = (
        (1 - rate) * np.exp(-epsilon * abs(at)) + rate * np.exp(-epsilon * abs(at - value))
        for value in (old, new)
    )
    return float(np.abs(np.log(one / other)).max())


def test_no_exchange_within_the_ball_costs_more_than_amplification_says() -> None:
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(3000):
        epsilon, rate = rng.uniform(0.1, 5), rng.uniform(0.01, 1)
        old, new = rng.uniform(-1, 1, 2)
        new = old + np.clip(new - old, -1, 1)
        worst = max(worst, exchanged(old, new, epsilon, rate) / float(amplified(epsilon, rate)))
    assert 0.9 < worst <= 1 + 1e-9


def test_values_far_from_none_at_all_break_the_amplification_of_an_exchange() -> None:
    """Ratings within [1, 5] by Δ = 4: absence is 5 away from 5."""
    assert exchanged(1.25, 0.25, 3.0, 0.1) > 1.4 * float(amplified(3.0, 0.1))

"""The audit's own accountant, against the accountant that it judges, and against closed forms."""

import math

import pytest

from dpmf_cli.audit.judge import OnSamples, Spent, on_a_sample
from dpmf_cli.privacy.accounting import _composed_epsilon, amplified, epsilon_of_mu
from dpmf_cli.privacy.neighbours import Neighbours


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
@pytest.mark.parametrize("mu", [1e-3, 0.5, 20.0, 1e5])
def test_gaussian_steps_cost_what_balle_and_wang_say(mu: float, delta: float) -> None:
    """Also where pure steps are added, and where one step is four of half the size."""
    expected = epsilon_of_mu(mu, delta)
    assert Spent(squares=mu**2).epsilon(delta) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    four = Spent.of(Spent(0.25, (mu / 2) ** 2) for _ in range(4))
    assert four.epsilon(delta) == pytest.approx(1 + expected, rel=1e-6)


@pytest.mark.parametrize("neighbours", [Neighbours.USER, Neighbours.BOUNDED])
@pytest.mark.parametrize(
    ("multiplier", "rate", "times", "mu"), [(1.0, 0.3, 6, 0.5), (0.1, 0.3, 6, 0.0), (30.0, 0.01, 36, 0.0)]
)
def test_steps_on_samples_cost_little_less_than_is_certified(
    multiplier: float, rate: float, times: int, mu: float, neighbours: Neighbours
) -> None:
    """One accountant rounds losses down, the other up."""
    certified = _composed_epsilon(((multiplier, rate, times),), mu, 1e-6, neighbours)
    step = OnSamples(1 / multiplier, rate, neighbours is not Neighbours.USER, times)
    assert 0.99 < Spent(0.0, mu**2, (step,)).epsilon(1e-6) / certified < 1


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 3.0, 1e4])
def test_pure_steps_on_samples(epsilon: float) -> None:
    assert on_a_sample(epsilon, 0.3) == pytest.approx(float(amplified(epsilon, 0.3)), rel=1e-6)
    assert on_a_sample(epsilon, 1.0) == epsilon


def test_gaussian_noise_without_delta_costs_everything() -> None:
    assert Spent(squares=1.0).epsilon(0.0) == math.inf
    assert Spent(1.5).epsilon(0.0) == 1.5

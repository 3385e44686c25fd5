"""How much noise sampled Gaussian steps need, by the accountant and where everybody is sampled."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant

from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.subsampling import SampledSteps, composed_epsilons, noise_multipliers
from tests.privacy.sampled_steps import DELTA, KINDS


@pytest.mark.parametrize("neighbours", KINDS)
@pytest.mark.parametrize(
    ("rate", "steps"), [pytest.param(0.05, 30, marks=pytest.mark.slow), pytest.param(0.5, 5)]
)
def test_a_multiplier_satisfies_the_accountant_and_none_much_smaller_does(
    neighbours: Neighbours, rate: float, steps: int
) -> None:
    epsilons = np.array([0.05, 1.0, 15.0, np.inf])
    found = noise_multipliers(epsilons, DELTA, rate=rate, steps=steps, neighbours=neighbours)
    assert found[3] == 0
    spent = SampledSteps(found, rate, steps).epsilons(DELTA, neighbours)
    assert np.all(spent <= epsilons)
    less = SampledSteps(0.999 * found, rate, steps).epsilons(DELTA, neighbours)
    assert np.all(less[:3] > epsilons[:3])


@pytest.mark.parametrize(("neighbours", "epsilon"), [(Neighbours.USER, 3.581), (Neighbours.BOUNDED, 7.3176)])
def test_of_many_steps_the_multiplier_is_the_accountants_own(neighbours: Neighbours, epsilon: float) -> None:
    """σ = 2, γ = 0.01, K = 20,000, whose ε without sampling is 2835 or 10,671, by an accountant as fine as can be."""
    assert SampledSteps(np.array([2.0]), 0.01, 20_000).epsilons(DELTA, neighbours)[0] == pytest.approx(
        epsilon, rel=1e-3
    )
    (found,) = noise_multipliers(np.array([epsilon]), DELTA, rate=0.01, steps=20_000, neighbours=neighbours)
    assert found == pytest.approx(2.0, rel=1e-3)
    spent, with_less = (by_the_accountant(each, neighbours) for each in (found, 0.999 * found))
    assert spent <= epsilon < with_less


def by_the_accountant(multiplier: float, neighbours: Neighbours) -> float:
    """The ε of 20,000 sampled steps, by loss distributions with an interval of 10⁻⁴."""
    moves_by = "ADD_OR_REMOVE_ONE" if neighbours is Neighbours.USER else "REPLACE_ONE"
    accountant = PLDAccountant(NeighboringRelation[moves_by], 1e-4)
    accountant.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(multiplier)), 20_000)
    return float(accountant.get_epsilon(DELTA))


@pytest.mark.parametrize("neighbours", KINDS)
def test_everybody_is_the_exact_gaussian(neighbours: Neighbours) -> None:
    epsilons = np.array([0.1, 1.0, 10.0])
    found = noise_multipliers(epsilons, DELTA, rate=1.0, steps=7, neighbours=neighbours)
    moves = 1 if neighbours is Neighbours.USER else 2
    assert found == pytest.approx([moves * math.sqrt(7) / mu_of_epsilon(e, DELTA) for e in epsilons])
    assert SampledSteps(found, 1.0, 7).epsilons(DELTA, neighbours) == pytest.approx(epsilons, rel=1e-9)


@pytest.mark.parametrize("neighbours", KINDS)
def test_nearly_everybody_costs_nearly_what_everybody_does(neighbours: Neighbours) -> None:
    """The convention of REPLACE_ONE: 2c for sampled and unsampled Gaussian steps alike."""
    multiplier, mu = np.array([8.0]), np.array([0.7])
    steps = SampledSteps(multiplier, 1 - 1e-9, 3)
    exact = epsilon_of_mu(math.hypot(steps.mu(neighbours)[0], mu[0]), DELTA)
    assert composed_epsilons((steps,), mu, DELTA, neighbours) == pytest.approx([exact], rel=2e-3)


def test_other_gaussian_steps_leave_less() -> None:
    epsilon, mu = np.array([1.0]), np.array([0.15])
    found = noise_multipliers(epsilon, DELTA, rate=0.2, steps=10, neighbours=Neighbours.USER, beside=mu)
    alone = noise_multipliers(epsilon, DELTA, rate=0.2, steps=10, neighbours=Neighbours.USER)
    assert found[0] > 1.05 * alone[0]
    together = composed_epsilons((SampledSteps(found, 0.2, 10),), mu, DELTA, Neighbours.USER)
    assert together[0] == pytest.approx(1.0, rel=1e-3)
    assert together[0] <= 1.0
    with pytest.raises(ValueError, match="leave nothing"):
        noise_multipliers(epsilon, DELTA, rate=0.2, steps=10, neighbours=Neighbours.USER, beside=10 * mu)


def test_where_hardly_anybody_is_sampled_delta_alone_suffices() -> None:
    """Kγ < δ: a user is so rarely in a sample that no noise is needed. The search must end by itself."""
    found = noise_multipliers(np.ones(1), 1e-3, rate=1e-5, steps=2, neighbours=Neighbours.USER)
    assert 0 < found[0] < 0.2
    assert SampledSteps(found, 1e-5, 2).epsilons(1e-3, Neighbours.USER)[0] <= 1


def test_a_delta_beyond_double_precision_is_never_certified() -> None:
    steps = SampledSteps(np.array([5.0]), 0.5, 3)
    assert steps.epsilons(9e-13, Neighbours.USER).tolist() == [math.inf]
    assert steps.epsilons(1e-12, Neighbours.USER)[0] < 10
    with pytest.raises(ValueError, match="certified at δ"):
        noise_multipliers(np.ones(1), 9e-13, rate=0.5, steps=3, neighbours=Neighbours.USER)
    assert noise_multipliers(np.ones(1), 9e-13, rate=1, steps=3, neighbours=Neighbours.USER)[0] > 0

"""Steps on a sample: the law of their noise, and what the ledger charges and composes.

How much noise sampled Gaussian steps need, by the accountant and where everybody is sampled.

Amplification by sampling of a pure step: against dp_accounting and against exact laws.
"""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution as pld
from scipy import stats

from dpmf_cli.privacy.accounting import (
    SampledSteps,
    amplified,
    before_sampling,
    composed_epsilons,
    epsilon_of_mu,
    mu_of_epsilon,
    noise_multipliers,
)
from dpmf_cli.privacy.ledger import Ledger, OverspentError
from dpmf_cli.privacy.mechanisms import laplace, subsampled_gaussian
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity, clipped_contributions, no_bound_known
from tests.privacy.curators import curator_of
from tests.privacy.test_mechanisms import has_law

DRAWS = 20_000
DELTA = 1e-6
KINDS = [Neighbours.USER, Neighbours.BOUNDED, Neighbours.UNBOUNDED]


def for_contribution(contribution: float, neighbours: Neighbours) -> Sensitivity:
    moves = 1 if neighbours is Neighbours.USER else 2
    return Sensitivity(moves * contribution, 2, neighbours, "test")


def test_a_sampled_laplace_step_claims_what_is_given_and_proves_what_sampling_hides() -> None:
    ledger, stated = Ledger([1.0, np.inf]), Sensitivity(2.0, 1, Neighbours.BOUNDED, "a paper")
    noise = laplace(
        "step",
        (DRAWS,),
        rate=0.1,
        sensitivity=Sensitivity(4.0, 1, Neighbours.BOUNDED, "test", calibrated_to=stated),
        epsilon=np.array([0.5, np.inf]),
        claimed=np.array([0.05, np.inf]),
        curator=curator_of(ledger, 1),
    ).added_to(np.zeros(DRAWS))
    assert has_law(noise[:, 0], stats.laplace, 4.0)
    assert not noise[:, 1].any()
    assert ledger.claimed.tolist() == [0.05, np.inf]
    assert ledger.provable == pytest.approx([float(amplified(1.0, 0.1)), np.inf])


def sampled(
    ledger: Ledger, multiplier: np.ndarray, rate: float, neighbours: Neighbours = Neighbours.USER
) -> list[np.ndarray]:
    draws = subsampled_gaussian(
        "sampled",
        (DRAWS,),
        repetitions=10,
        rate=rate,
        sensitivity=for_contribution(3.0, neighbours),
        contribution=3.0,
        multiplier=multiplier,
        curator=curator_of(ledger, 2),
    )
    return [draw.added_to(np.zeros(DRAWS)) for draw in draws]


@pytest.mark.parametrize("neighbours", KINDS)
def test_a_calibrated_multiplier_spends_the_budget_and_its_noise_has_that_deviation(
    neighbours: Neighbours,
) -> None:
    ledger = Ledger([0.5, 4.0, np.inf], Mode.CORRECTED, DELTA)
    multiplier = noise_multipliers(ledger.limit, DELTA, rate=0.1, steps=10, neighbours=neighbours)
    draws = sampled(ledger, multiplier, 0.1, neighbours)
    assert ledger.provable[:2] == pytest.approx([0.5, 4.0], rel=1e-3)
    assert ledger.claimed.tolist() == ledger.provable.tolist()
    assert len(draws) == 10
    record = ledger.entries[0].record()
    assert (record["rate"], record["repetitions"]) == (0.1, 10)
    assert record["multiplier"] == multiplier.tolist()
    assert "mu" not in record
    assert not np.array_equal(draws[0], draws[1])
    assert all(has_law(draws[9][:, lane], stats.norm, 3.0 * multiplier[lane]) for lane in range(2))
    assert not draws[0][:, 2].any()


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3])
def test_sampled_steps_cost_no_more_than_steps_on_all_users(epsilon: float) -> None:
    """Where ε is small, the accountant's rounding would outweigh what sampling gains."""
    enough = noise_multipliers(np.array([epsilon]), DELTA, rate=1.0, steps=16, neighbours=Neighbours.USER)
    spent = SampledSteps(enough, 0.5, 16).epsilons(DELTA, Neighbours.USER)
    assert 0 < spent[0] <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", KINDS)
def test_too_little_noise_overspends_and_enters_nothing(neighbours: Neighbours) -> None:
    ledger = Ledger([1.0], Mode.CORRECTED, DELTA)
    multiplier = noise_multipliers(ledger.limit, DELTA, rate=0.1, steps=10, neighbours=neighbours)
    with pytest.raises(OverspentError, match="sampled: would spend"):
        sampled(ledger, 0.99 * multiplier, 0.1, neighbours)
    assert ledger.entries == ()


@pytest.mark.parametrize("neighbours", [Neighbours.USER, Neighbours.BOUNDED])
def test_sampled_steps_compose_with_gaussian_and_pure_ones(neighbours: Neighbours) -> None:
    ledger = Ledger([100.0], Mode.CORRECTED, DELTA)
    ledger.spend("means", "Gaussian", for_contribution(1.0, neighbours), theta=np.array([0.5]))
    sampled(ledger, np.array([2.0]), 0.3, neighbours)
    sampled(ledger, np.array([4.0]), 0.7, neighbours)
    alone = [entry.provable[0] for entry in ledger.entries]
    both = ledger.provable[0]
    assert max(alone) < both < 0.95 * sum(alone)
    pure = Sensitivity(1.0, 1, neighbours, "test")
    ledger.spend("pure", "Laplace", pure, np.array([0.25]))
    assert ledger.provable[0] == pytest.approx(both + 0.25, rel=1e-12)
    assert ledger.claimed[0] == ledger.provable[0]


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_where_no_bound_is_known_steps_charge_for_their_noise_and_prove_nothing(rate: float) -> None:
    ledger, steps = Ledger([2.0], Mode.PUBLISHED, DELTA), SampledSteps(np.array([5.0]), rate, 4)
    subsampled_gaussian(
        "step",
        (1,),
        repetitions=4,
        rate=rate,
        sensitivity=no_bound_known(2, Neighbours.USER, "test"),
        contribution=1.0,
        multiplier=np.array([5.0]),
        curator=curator_of(ledger),
    )
    assert ledger.claimed == pytest.approx(steps.epsilons(DELTA, Neighbours.USER))
    assert ledger.provable.tolist() == [math.inf]
    assert ledger.entries[0].calibrated_to.value == 1.0


def test_a_contribution_that_does_not_move_by_the_sensitivity_is_refused() -> None:
    with pytest.raises(ValueError, match="moves by 6"):
        subsampled_gaussian(
            "step",
            (1,),
            repetitions=1,
            rate=0.5,
            sensitivity=Sensitivity(3.0, 2, Neighbours.BOUNDED, "test"),
            contribution=3.0,
            multiplier=np.ones(1),
            curator=curator_of(Ledger([9.0], delta=DELTA)),
        )
    with pytest.raises(ValueError, match="local model"):
        noise_multipliers(np.ones(1), DELTA, rate=0.5, steps=1, neighbours=Neighbours.LOCAL)
    with pytest.raises(OverspentError, match="needs a δ"):
        sampled(Ledger([1.0]), np.ones(1), 0.5)


def test_steps_that_delta_covers_cost_nothing() -> None:
    ledger = Ledger([0.01], Mode.CORRECTED, 0.01)
    steps = SampledSteps(np.array([1e4]), 1.0, 1)
    moves = clipped_contributions(1.0, 2, Neighbours.USER)
    ledger.spend("gradients", "sampled", moves, sampled=steps)
    assert ledger.provable == pytest.approx([0.0])


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
    (least,) = noise_multipliers(np.array([1e-6]), 1e-6, rate=0.1, steps=2, neighbours=Neighbours.USER)
    assert 0 < least < np.inf  # the smallest ε of a config


def test_a_delta_beyond_double_precision_is_never_certified() -> None:
    steps = SampledSteps(np.array([5.0]), 0.5, 3)
    assert steps.epsilons(9e-13, Neighbours.USER).tolist() == [math.inf]
    assert steps.epsilons(1e-12, Neighbours.USER)[0] < 10
    with pytest.raises(ValueError, match="certified at δ"):
        noise_multipliers(np.ones(1), 9e-13, rate=0.5, steps=3, neighbours=Neighbours.USER)
    assert noise_multipliers(np.ones(1), 9e-13, rate=1, steps=3, neighbours=Neighbours.USER)[0] > 0


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, pytest.param(4.0, marks=pytest.mark.slow)])
def test_amplification_is_what_dp_accounting_finds(rate: float, epsilon: float) -> None:
    distribution = pld.from_laplace_mechanism(
        1 / epsilon, sampling_prob=rate, value_discretization_interval=1e-5
    )
    excess = distribution.get_epsilon_for_delta(1e-12) - amplified(epsilon, rate)
    assert -1e-8 < excess < 1.1e-5


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


@pytest.mark.parametrize("epsilon", [1.1485512424239392e-06, 1.2742749857031348e-06])
def test_a_logarithm_that_rounds_down_leaves_a_multiplier_to_find(epsilon: float) -> None:
    """Here the ε of steps on samples is that without sampling, which meets the budget exactly."""
    mu = mu_of_epsilon(epsilon, 1e-6)
    beside = np.sqrt(1 - 0.36 / 0.445) * np.array([mu])
    (found,) = noise_multipliers(
        np.array([epsilon]), 1e-6, rate=0.25, steps=4, neighbours=Neighbours.USER, beside=beside
    )
    assert found == pytest.approx(2 / math.sqrt(mu**2 - beside[0] ** 2), rel=2e-3)

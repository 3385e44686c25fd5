"""Steps on a sample: the law of their noise, and what the ledger charges and composes."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.privacy.gradient_sensitivity import clipped_contributions
from dpmf_cli.privacy.ledger import Ledger, OverspentError
from dpmf_cli.privacy.mechanisms import subsampled_gaussian, subsampled_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity, no_bound_known
from dpmf_cli.privacy.subsampling import SampledSteps, amplified, noise_multipliers
from tests.privacy.curators import curator_of
from tests.privacy.sampled_steps import DELTA, KINDS, for_contribution
from tests.privacy.test_mechanisms import has_law

DRAWS = 20_000


def test_a_sampled_laplace_step_claims_what_is_given_and_proves_what_sampling_hides() -> None:
    ledger = Ledger([1.0, np.inf])
    noise = subsampled_laplace(
        "step",
        (DRAWS,),
        rate=0.1,
        sensitivity=Sensitivity(4.0, 1, Neighbours.BOUNDED, "test"),
        calibrated_to=Sensitivity(2.0, 1, Neighbours.BOUNDED, "a paper"),
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


def test_too_little_noise_overspends_and_enters_nothing() -> None:
    ledger = Ledger([1.0], Mode.CORRECTED, DELTA)
    multiplier = noise_multipliers(ledger.limit, DELTA, rate=0.1, steps=10, neighbours=Neighbours.USER)
    with pytest.raises(OverspentError, match="sampled: would spend"):
        sampled(ledger, 0.99 * multiplier, 0.1)
    assert ledger.entries == ()
    sampled(ledger, multiplier, 0.1)
    with pytest.raises(OverspentError, match="more: would spend"):
        ledger.spend_gaussian("more", for_contribution(1.0, Neighbours.USER), np.array([0.05]))


@pytest.mark.parametrize("neighbours", [Neighbours.USER, Neighbours.BOUNDED])
def test_sampled_steps_compose_with_gaussian_and_pure_ones(neighbours: Neighbours) -> None:
    ledger = Ledger([100.0], Mode.CORRECTED, DELTA)
    ledger.spend_gaussian("means", for_contribution(1.0, neighbours), np.array([0.5]))
    sampled(ledger, np.array([2.0]), 0.3, neighbours)
    sampled(ledger, np.array([4.0]), 0.7, neighbours)
    alone = [entry.provable[0] for entry in ledger.entries]
    both = ledger.provable[0]
    assert max(alone) < both < 0.95 * sum(alone)
    pure = Sensitivity(1.0, 1, neighbours, "test")
    ledger.spend("pure", "Laplace", pure, np.array([0.25]))
    assert ledger.provable[0] == pytest.approx(both + 0.25, rel=1e-12)
    assert ledger.claimed[0] == ledger.provable[0]


def test_steps_on_everybody_compose_as_gaussians_to_the_bit() -> None:
    one, other = (Ledger([100.0], Mode.CORRECTED, DELTA) for _ in range(2))
    sampled(one, np.array([4.0]), 1.0)
    other.spend_gaussian("ten steps", for_contribution(3.0, Neighbours.USER), np.array([math.sqrt(10) / 4]))
    assert one.provable.tolist() == other.provable.tolist()
    assert one.entries[0].mu is not None


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_what_a_publication_charges_stands_beside_what_sampling_proves(rate: float) -> None:
    ledger = Ledger([2.0], Mode.PUBLISHED, DELTA)
    for sensitivity, provable in (
        (for_contribution(1.0, Neighbours.USER), SampledSteps(np.array([5.0]), rate, 4)),
        (no_bound_known(2, Neighbours.USER, "test"), None),
    ):
        subsampled_gaussian(
            "step",
            (1,),
            repetitions=4,
            rate=rate,
            sensitivity=sensitivity,
            contribution=1.0,
            multiplier=np.array([5.0]),
            claimed=np.array([0.75]),
            curator=curator_of(ledger),
        )
        expected = math.inf if provable is None else provable.epsilons(DELTA, Neighbours.USER)[0]
        assert ledger.provable[0] == pytest.approx(expected)
    assert ledger.claimed.tolist() == [1.5]
    assert [float(entry.calibrated_to.value) for entry in ledger.entries] == [1.0, 1.0]


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
    ledger.spend_sampled("gradients", moves, steps)
    assert ledger.provable == pytest.approx([0.0])

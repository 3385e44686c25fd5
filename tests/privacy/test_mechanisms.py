"""Unit noise has its law, and noise the scale in the ledger, by tests with power: a wrong scale must fail them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import exponential_choice, gaussian, laplace, repeated_laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise, unit_k_norm, unit_laplace
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.privacy.curators import curator_of

DRAWS = 20_000
LEVEL = 1e-4


def test_laplace_draws_have_fair_signs_full_bits_and_no_end() -> None:
    """Numbers of a cell have all low bits: if cells of 2⁻¹⁰ held only few values, their multiples could be told apart.
    Draws of 24 bits would end below 17 scales."""
    unit = unit_laplace((DRAWS,), np.random.default_rng(5))
    assert unit.dtype == np.float64
    assert stats.binomtest(int((unit > 0).sum()), DRAWS).pvalue > LEVEL
    assert stats.ks_2samp(unit[unit > 0], -unit[unit < 0]).pvalue > LEVEL
    assert stats.kstest(np.abs(unit) * 2.0**40 % 1, "uniform").pvalue > LEVEL
    assert len(np.unique(np.abs(unit))) == DRAWS
    assert np.isfinite(unit_laplace((3_000_000,), np.random.default_rng(1))).all()


@pytest.mark.parametrize("dimension", [1, 3, 7])
def test_k_norm_noise_has_gamma_length_and_uniform_direction(dimension: int) -> None:
    unit = unit_k_norm((DRAWS, dimension), np.random.default_rng(dimension))
    length = np.linalg.norm(unit, axis=1)
    assert stats.kstest(length, stats.gamma(dimension).cdf).pvalue > LEVEL
    for factor in (0.8, 1.25):
        assert stats.kstest(length, stats.gamma(dimension, scale=factor).cdf).pvalue < LEVEL
    direction = unit / length[:, None]
    assert np.abs(direction.mean(axis=0)).max() < 4.5 / np.sqrt(DRAWS)
    covariance = direction.T @ direction / DRAWS
    assert np.abs(covariance - np.eye(dimension) / dimension).max() < 6 / np.sqrt(DRAWS)


EPSILONS = np.array([0.5, 2.0])


def release(law: str, later: bool, step: str = "sums", curator: Curator | None = None) -> Release:
    curator = curator or curator_of(Ledger([10.0, 40.0], delta=1e-6))
    if law == "laplace":
        moves = Sensitivity(1.0, 1, Neighbours.USER, "test")
        return laplace(step, (50,), sensitivity=moves, epsilon=EPSILONS, curator=curator, later=later)
    moves = Sensitivity(1.0, 2, Neighbours.USER, "test")
    return gaussian(step, (50,), sensitivity=moves, theta=EPSILONS / 10, curator=curator, later=later)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_noise_that_is_drawn_later_is_what_would_have_been_drawn(law: str) -> None:
    now, later = release(law, False), release(law, True)
    assert now.scale.tolist() == later.scale.tolist()
    assert str(now.entry) == str(later.entry)
    for lane in (0, 1, 0):
        one, other = (each.at(lane).added_to(np.arange(50.0)) for each in (now, later))
        assert one.tobytes() == other.tobytes()
    assert np.ptp(one - np.arange(50.0)[:, None]) > 0
    with pytest.raises(TypeError, match="inside a kernel"):
        later.added_to(np.zeros(50))


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_no_two_steps_have_the_same_noise(first: bool, second: bool) -> None:
    """Later draws begin their stream anew each time, so each needs its own name."""
    curator = curator_of(Ledger([10.0, 40.0]))
    release("laplace", first, curator=curator)
    release("laplace", second, "others", curator)
    with pytest.raises(ValueError, match="sums: two measurements would have the same noise"):
        release("laplace", second, curator=curator)


DELTA = Sensitivity(4.0, 1, Neighbours.BOUNDED, "test")


def drawn(epsilons: list[float], seed: int = 0) -> tuple[np.ndarray, Ledger]:
    """(DRAWS, E) noise of one Laplace step that spends the whole ε."""
    ledger = Ledger(epsilons)
    noise = laplace(
        "step", (DRAWS,), sensitivity=DELTA, epsilon=ledger.limit, curator=curator_of(ledger, seed)
    )
    return noise.added_to(np.zeros(DRAWS)), ledger


def has_law(draws: np.ndarray, law: Any, scale: float) -> bool:
    """Whether these draws have the law of that scale, and are told from laws of 0.8 and 1.25 times the scale."""
    told = all(stats.kstest(draws, law(scale=factor * scale).cdf).pvalue < LEVEL for factor in (0.8, 1.25))
    return told and stats.kstest(draws, law(scale=scale).cdf).pvalue > LEVEL


@pytest.mark.parametrize("seed", range(3))
def test_the_scale_is_sensitivity_over_epsilon_for_every_epsilon(seed: int) -> None:
    noise, ledger = drawn([0.05, 1.0, 30.0, np.inf], seed)
    assert all(has_law(noise[:, lane], stats.laplace, 4.0 / ledger.limit[lane]) for lane in range(3))
    assert not noise[:, 3].any()
    assert np.array_equal(drawn([1.0], seed)[0][:, 0], noise[:, 1])
    (entry,) = ledger.entries
    assert (entry.step, entry.mechanism, entry.sensitivity) == ("step", "Laplace", DELTA)
    assert entry.claimed.tolist() == entry.provable.tolist() == ledger.limit.tolist()


def test_what_is_released_is_on_the_grid_of_its_scale_alone() -> None:
    noise = LaneNoise(np.random.default_rng(0).laplace(size=DRAWS), np.array([3.0, 0.1, 0.0]))
    assert noise.grid[:2].tolist() == [2.0**-9, 2.0**-14]
    clean = np.random.default_rng(1).normal(size=DRAWS)
    released = noise.added_to(clean)
    assert (released[:, :2] % noise.grid[:2] == 0).all()
    assert released[:, 2].tolist() == clean.tolist()
    assert (np.abs(released - clean[:, None] - noise.unit[:, None] * noise.scale) <= noise.grid / 2).all()


@pytest.mark.parametrize(("moves", "provable"), [(4.0, 1.25), (np.inf, np.inf)])
def test_noise_scaled_to_another_sensitivity_proves_another_epsilon(moves: float, provable: float) -> None:
    ledger, moved = (
        Ledger([1.0, np.inf]),
        replace(DELTA, value=moves, calibrated_to=replace(DELTA, value=3.2)),
    )
    noise = laplace("step", (1,), sensitivity=moved, epsilon=ledger.limit, curator=curator_of(ledger))
    assert noise.scale.tolist() == [3.2 * (1 + MARGIN), 0.0]
    assert ledger.claimed.tolist() == [1.0, np.inf]
    assert ledger.provable == pytest.approx([provable, np.inf])


def test_repetitions_share_epsilon_and_draw_anew() -> None:
    """What is never drawn is spent all the same."""
    ledger = Ledger([2.0])
    draws = repeated_laplace(
        "step", (DRAWS,), repetitions=2, sensitivity=DELTA, epsilon=ledger.limit, curator=curator_of(ledger)
    )
    assert ledger.claimed.tolist() == [2.0]
    one, two = draws
    assert one.scale.tolist() == [4.0 * (1 + MARGIN)]
    drawn_one, drawn_two = (each.added_to(np.zeros(DRAWS)) for each in (one, two))
    assert not np.array_equal(drawn_one, drawn_two)


GAUSSIAN = Sensitivity(4.0, 2, Neighbours.UNBOUNDED, "test")


def test_gaussian_noise_has_deviation_sensitivity_over_theta() -> None:
    ledger = Ledger([1000.0, 1000.0, np.inf], delta=1e-6)
    noise = gaussian(
        "step",
        (DRAWS,),
        sensitivity=GAUSSIAN,
        theta=np.array([0.5, 8.0, np.inf]),
        curator=curator_of(ledger, 1),
    ).added_to(np.zeros(DRAWS))
    assert has_law(noise[:, 0], stats.norm, 8.0)
    assert has_law(noise[:, 1], stats.norm, 0.5)
    assert not noise[:, 2].any()
    assert ledger.entries[0].mu == pytest.approx([0.5, 8.0, np.inf])


@pytest.mark.parametrize("mechanism", [laplace, gaussian])
def test_a_mechanism_refuses_the_norm_of_another(mechanism: Any) -> None:
    amount = {"epsilon": np.ones(1)} if mechanism is laplace else {"theta": np.ones(1)}
    wrong = GAUSSIAN if mechanism is laplace else DELTA
    with pytest.raises(ValueError, match=r"needs an L\d sensitivity"):
        mechanism("step", (1,), sensitivity=wrong, curator=curator_of(Ledger([9.0], delta=1e-6)), **amount)


def test_the_exponential_mechanism_chooses_in_proportion_to_what_the_loss_leaves() -> None:
    """Probability of c ∝ exp(−ε·loss_c/2Δ), by 20,000 choices side by side; another ε must not fit."""
    losses, epsilon, delta = np.array([0.0, 1.0, 3.0]), 2.0, 1.5
    noise = exponential_choice(
        "choice",
        3,
        choices=DRAWS,
        sensitivity=Sensitivity(delta, np.inf, Neighbours.UNBOUNDED, "test"),
        epsilon=np.array([epsilon]),
        curator=curator_of(Ledger([epsilon])),
    )
    chosen = noise.added_to(np.tile(losses, (DRAWS, 1)))[..., 0].argmin(axis=1)
    for factor in (1, 0.8, 1.25):
        weight = np.exp(-factor * epsilon * losses / (2 * delta))
        found = stats.chisquare(np.bincount(chosen, minlength=3), DRAWS * weight / weight.sum())
        assert (found.pvalue > LEVEL) == (factor == 1)

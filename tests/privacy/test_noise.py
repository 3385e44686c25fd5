"""Unit noise has its law, by tests with power: a wrong scale must fail them."""

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import gaussian, laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace
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

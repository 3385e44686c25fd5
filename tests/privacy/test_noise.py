"""Unit noise has its law, by tests with power: a wrong scale must fail them."""

import numpy as np
import pytest
from scipy import stats

from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace

DRAWS = 20_000
LEVEL = 1e-4


def test_signs_are_fair_and_independent_of_magnitudes() -> None:
    unit = unit_laplace((DRAWS,), np.random.default_rng(5))
    assert stats.binomtest(int((unit > 0).sum()), DRAWS).pvalue > LEVEL
    assert stats.ks_2samp(unit[unit > 0], -unit[unit < 0]).pvalue > LEVEL


def test_noise_ends_where_its_chance_does() -> None:
    """Of 3 million draws the largest is about ln of that; draws of 24 bits would end below 17 scales."""
    unit = unit_laplace((3_000_000,), np.random.default_rng(1))
    assert np.isfinite(unit).all()
    assert unit.dtype == np.float64


def test_numbers_of_a_cell_have_all_low_bits() -> None:
    """What is added has 53 bits: its cells of 2⁻¹⁰ hold no few values, whose multiples could be told apart."""
    low = np.abs(unit_laplace((DRAWS,), np.random.default_rng(3))) * 2.0**40 % 1
    assert stats.kstest(low, "uniform").pvalue > LEVEL


def test_draws_are_not_repeated() -> None:
    unit = np.abs(unit_laplace((DRAWS,), np.random.default_rng(2)))
    assert len(np.unique(unit)) == DRAWS


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

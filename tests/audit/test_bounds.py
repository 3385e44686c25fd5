"""Bounds from counts: known figures, coverage by enumeration and by simulation, leaks that must be found."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from dpmf_cli.audit.bounds import (
    BitEvent,
    Event,
    EventCounts,
    always_against_never,
    best_threshold,
    best_threshold_for_mu,
    bit_event,
    clopper_pearson,
    epsilon_of_event,
    gaussian_epsilon_of_event,
    mu_of_event,
)
from dpmf_cli.privacy.accounting import epsilon_of_mu
from dpmf_cli.privacy.grid import grid_of, on_grid

Floats = NDArray[np.float64]

# --- one count ---


def test_a_textbook_interval_and_none() -> None:
    assert clopper_pearson(10, 100, 0.975) == pytest.approx((0.04900, 0.17622), abs=1e-5)
    assert clopper_pearson(0, 0, 0.95) == pytest.approx((0, 1), abs=0)


@pytest.mark.parametrize(("successes", "trials"), [(1, 1), (3, 7), (250, 1000), (99_999, 100_000)])
def test_ends_are_where_the_tails_are_as_likely_as_stated(successes: int, trials: int) -> None:
    low, high = clopper_pearson(successes, trials, 0.99)
    assert binom.sf(successes - 1, trials, low) == pytest.approx(0.01, rel=1e-6)
    if successes < trials:
        assert binom.cdf(successes, trials, high) == pytest.approx(0.01, rel=1e-6)


# --- one event ---


def test_known_figures() -> None:
    assert epsilon_of_event(EventCounts(400, 400, 0, 400), 0, 0.99) == pytest.approx(4.317445, abs=1e-6)
    for trials, ceiling in ((10**4, 7.904833), (10**5, 10.207584)):
        most = always_against_never(trials, trials)
        assert epsilon_of_event(most, 0, 0.95) == pytest.approx(ceiling, abs=1e-6)
        assert mu_of_event(most, 0.95) == pytest.approx(2 * norm.isf(1 - 0.025 ** (1 / trials)))


E = math.e


def ratio(counts: EventCounts, delta: float) -> float:
    """The bound without a margin."""
    hits, trials, other_hits, other_trials = counts
    most = max(hits / trials - delta, 1e-300) * other_trials
    return math.inf if other_hits == 0 else math.log(most / other_hits)


@pytest.mark.parametrize(
    ("chance", "other_chance", "delta", "truth"),
    [
        (E / (1 + E), 1 / (1 + E), 0.0, 1.0),  # randomised response at ε = 1
        (E * 0.04, 0.04, 0.0, 1.0),  # a rare event of the same ratio
        (0.1 + 0.9 * E / (1 + E), 0.9 / (1 + E), 0.1, 1.0),  # it tells the truth outright with a chance of δ
        (0.1, 0.0, 0.1, 0.0),  # nothing but δ
        (0.3, 0.3, 0.0, 0.0),
    ],
)
def test_coverage_by_enumeration(chance: float, other_chance: float, delta: float, truth: float) -> None:
    """Bounds have their coverage; the counts without a margin do not. No bound is above its ceiling."""
    n = 40
    counts = [EventCounts(k, n, j, n) for k in range(n + 1) for j in range(n + 1)]
    likely = np.outer(binom.pmf(range(n + 1), n, chance), binom.pmf(range(n + 1), n, other_chance)).ravel()
    true_mu = float(norm.ppf(chance) - norm.ppf(other_chance))
    for values, true, covered in (
        ([epsilon_of_event(each, delta, 0.9) for each in counts], truth, True),
        ([mu_of_event(each, 0.9) for each in counts], true_mu, True),
        ([ratio(each, delta) for each in counts], truth, False),
    ):
        assert (likely[np.array(values) <= true + 1e-9].sum() >= 0.9) == covered
        assert not covered or max(values) == values[n * (n + 1)]  # k = n, j = 0


def test_mu_of_many_trials_is_the_gaussian_one() -> None:
    n, mu, threshold = 10**8, 1.7, 0.4
    hits, other_hits = (round(n * norm.sf(threshold - c)) for c in (mu, 0.0))
    counts = EventCounts(hits, n, other_hits, n)
    assert mu_of_event(counts, 0.95) == pytest.approx(mu, abs=1e-3)
    assert gaussian_epsilon_of_event(counts, 1e-5, 0.95) == pytest.approx(epsilon_of_mu(mu, 1e-5), abs=0.01)


# --- choosing an event ---


def test_counts_stand_with_the_numerator_first() -> None:
    here, there = [1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 3.0, 4.0]
    assert Event(2.0, True, True).counts(here, there) == (2, 3, 2, 5)
    assert Event(2.0, False, False).counts(here, there) == (3, 5, 1, 3)


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_threshold_is_the_best_of_all(seed: int, delta: float) -> None:
    """Compared with trying every event one by one, including ties and unequal sizes."""
    rng = np.random.default_rng(seed)
    shift = rng.normal(0, 1.5)
    here, there = np.round(rng.normal(0, 1, 40), 1), np.round(rng.normal(shift, rng.uniform(0.3, 2), 25), 1)
    every = [
        Event(t, above, numerator)
        for t in np.concatenate([here, there])
        for above, numerator in itertools.product([True, False], repeat=2)
    ]

    def mu(event: Event) -> float:
        return mu_of_event(event.counts(here, there), 0.95)

    scores = [each.training_score(here, there, delta) for each in every]
    best = best_threshold(here, there, delta)
    assert best.training_score(here, there, delta) == pytest.approx(max(scores), abs=1e-9)
    assert mu(best_threshold_for_mu(here, there)) == pytest.approx(max(map(mu, every)), abs=1e-9)


def test_audits_of_noise_with_a_known_law() -> None:
    """Laplace noise of ε = 1, and of ε = 2 that claims 1; Gaussian noise of μ = 1, where the bound on μ says more."""

    def audits(noise: Callable[..., Floats], bound: Callable[..., float]) -> Floats:
        rng = np.random.default_rng(5)
        return np.array([bound(*(c + noise(rng) for c in (0.0, 1.0, 0.0, 1.0))) for _ in range(200)])

    def of_epsilon(delta: float) -> Callable[..., float]:
        def bound(here: Floats, there: Floats, *test: Floats) -> float:
            return epsilon_of_event(best_threshold(here, there, delta).counts(*test), delta, 0.9)

        return bound

    def of_mu(here: Floats, there: Floats, *test: Floats) -> float:
        return mu_of_event(best_threshold_for_mu(here, there).counts(*test), 0.9)

    for noise, bound, truth, power in (
        (lambda rng: rng.laplace(0, 1, 500), of_epsilon(0), 1.0, 0.6),
        (lambda rng: rng.normal(0, 1, 500), of_epsilon(1e-2), epsilon_of_mu(1.0, 1e-2), 0.7),
        (lambda rng: rng.normal(0, 1, 500), of_mu, 1.0, 0.75),
    ):
        found = audits(noise, bound)
        assert (found <= truth).mean() >= 0.9
        assert found.mean() > power
    assert (audits(lambda rng: rng.laplace(0, 0.5, 500), of_epsilon(0)) > 1).mean() > 0.95


# --- low bits ---

RELEASES = 10**5
SCALE = 40.0
"""Of Laplace noise at ε = 0.1, the clean values being 1 and 5."""

Release = Callable[[np.random.Generator, float], NDArray[np.floating]]


def noise(rng: np.random.Generator) -> Floats:
    return rng.laplace(0, SCALE, RELEASES)


def rounded(values: Floats) -> Floats:
    return on_grid(values[:, None], grid_of(np.array([SCALE])))[:, 0]


def bit_audit(release: Release, seed: int = 0) -> tuple[BitEvent, float]:
    """The event that is chosen on training releases with clean values 1 and 5, and its bound from other
    releases, at 95 %."""
    rng = np.random.default_rng(seed)
    event = bit_event(release(rng, 1.0), release(rng, 5.0), 0)
    return event, epsilon_of_event(event.counts(release(rng, 1.0), release(rng, 5.0)), 0, 0.95)


LEAKS: dict[str, tuple[Release, str]] = {
    "Gaussian": (lambda rng, c: c + rng.normal(0, SCALE, RELEASES), "not a multiple of 2^-51"),
    "float64": (lambda rng, c: c + noise(rng), "not a multiple of 2^-51"),
    "float32": (lambda rng, c: np.float32(c) + noise(rng).astype(np.float32), "not a multiple of 2^-22"),
    "float32, kept as float64": (
        lambda rng, c: (np.float32(c) + noise(rng).astype(np.float32)).astype(np.float64),
        "not a multiple of 2^-22",
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_the_well_known_leak_is_found(name: str) -> None:
    """5 + x is a multiple of 2^-51 for every x; 1 + x need not be one if it is below 2. The claim is ε = 0.1."""
    release, said = LEAKS[name]
    event, bound = bit_audit(release)
    assert str(event) == said
    assert event.numerator_here
    assert bound > 5


def test_noise_on_a_grid_leaks_a_clean_value_that_is_not_on_it() -> None:
    event, bound = bit_audit(lambda rng, c: 1.01 * c + rounded(noise(rng)))
    assert bound > 10
    assert "patterns of" in str(event)


@pytest.mark.parametrize("seed", range(4))
def test_on_a_grid_nothing_is_found(seed: int) -> None:
    """If the sum is rounded, or clean value and noise are rounded each, no bound is above the claim of 0.1."""
    assert bit_audit(lambda rng, c: rounded(c + noise(rng)), seed)[1] <= 0.1
    assert bit_audit(lambda rng, c: rounded(np.full(RELEASES, c)) + rounded(noise(rng)), seed)[1] <= 0.1


def test_patterns_that_no_power_of_two_tells() -> None:
    """Both are odd multiples of 2⁻⁵² between 1 and 2, one of them 3 above a multiple of 2⁻⁴⁸, the other 5."""
    rng = np.random.default_rng(0)

    def release(low: int) -> Floats:
        return np.asarray(1 + rng.integers(0, 2**44, 4000) * 2.0**-48 + low * 2.0**-52)

    event = bit_event(release(3), release(5), 0)
    assert event.bits == 4
    assert event.holds(release(3)).all() == event.numerator_here
    assert event.holds(release(5)).all() != event.numerator_here


def test_powers_of_two_that_divide_a_float() -> None:
    """Zero is a multiple of them all; the smallest float there is, of itself alone."""
    divisible = {
        0.0: 2000,
        1.0: 0,
        -3.0: 0,
        12.0: 2,
        0.1: -55,
        2.0**-1030: -1030,
        5e-324: -1074,
        1.5e300: 945,
    }
    for value, exponent in divisible.items():
        events = (BitEvent(k, True, True, 0, 0, np.empty(0)) for k in (exponent, exponent + 1))
        held = [event.holds(value) for event in events]
        assert held == [True, False], value

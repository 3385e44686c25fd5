"""DPPS-MF against its steps written out in NumPy, noise included, in both modes."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.algorithms.shared.factorization import at_most, initial_factors
from dpmf_cli.algorithms.wang2017.dpps_mf import PosteriorSamplingMF
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.grid import grid_of, on_grid
from dpmf_cli.privacy.ledger import Ledger
from tests.algorithms.fitted import curator_for, fitted
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.5)
STREAMS = Streams(4, "d", "dpps_mf", 0, 0)
PAIRS = np.divmod(np.arange(14 * 9, dtype=np.int32), 9)
D = 3


def of(**parameters: Any) -> PosteriorSamplingMF:
    start = {"initial_factors": {"scale": 0.5}, "iterations": 6}
    return PosteriorSamplingMF.model_validate({"algorithm": "dpps_mf", "factors": D, **start, **parameters})


def predicted(algorithm: PosteriorSamplingMF, epsilons: list[float]) -> tuple[np.ndarray, Ledger]:
    """(14, 9, E) the predictions for all pairs."""
    model, ledger = fitted(algorithm, RATINGS, epsilons, STREAMS)
    return np.asarray(model.predict(*PAIRS)).reshape(14, 9, -1), ledger


@pytest.mark.parametrize("epsilon", [3.0, 64.0, 1e6, math.inf])
def test_published_steps_are_langevin_dynamics_on_residuals_of_item_means(epsilon: float) -> None:
    algorithm = of(initial_rate=0.05, decay=0.5, temperature=0.3, regularization=0.2, most_ratings=3)
    found, _ = predicted(algorithm, [1.0, epsilon])
    train = at_most(RATINGS, 3, STREAMS.of_ratings("ratings kept", RATINGS))
    p, q = initial_factors(train, algorithm.initial_factors, D, STREAMS)
    rng = STREAMS.noise("factors")
    power = min(epsilon / (4 * 16 * 3), 1.0)
    sums = np.bincount(train.items, train.values, 9)
    counts = np.bincount(train.items, minlength=9)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean())
    for t in range(1, 7):
        unit = rng.standard_normal((14 + 9, D))
        rate = 0.05 * t**-0.5
        error = np.zeros((14, 9))
        residual = train.values - means[train.items]
        error[train.users, train.items] = residual - (p[train.users] * q[train.items]).sum(axis=1)
        drift = rate / 2 * power
        noise = np.array(0.0 if math.isinf(epsilon) else math.sqrt(0.3 * rate) / drift)
        # The gradient of the errors is released, with noise in units of that gradient.
        down_p, down_q = (
            on_grid(down + noise * drawn, grid_of(noise))
            for down, drawn in ((-error @ q, unit[:14]), (-error.T @ p, unit[14:]))
        )
        p, q = p - drift * (down_p + 0.2 * p), q - drift * (down_q + 0.2 * q)
    assert found[:, :, 1] == pytest.approx(means + p @ q.T, abs=2e-4)


def test_published_mode_claims_epsilon_once_and_proves_nothing() -> None:
    _, ledger = predicted(of(), [1.0, 20.0])
    means, factors = ledger.entries
    assert (means.mechanism, factors.mechanism) == ("none", "SGLD × 6, temperature 0.0001")
    assert factors.calibrated_to.value == 2 * 16 * 200
    assert ledger.claimed.tolist() == [1.0, 20.0]
    assert ledger.provable.tolist() == [math.inf, math.inf]


def test_at_most_so_many_ratings_are_a_uniform_choice() -> None:
    times = np.zeros(len(RATINGS))
    rng = np.random.default_rng(0)
    for _ in range(2000):
        kept = at_most(RATINGS, 3, rng.random(len(RATINGS)))
        assert kept.user_counts.tolist() == np.minimum(RATINGS.user_counts, 3).tolist()
        times[np.isin(RATINGS.users * 9 + RATINGS.items, kept.users * 9 + kept.items)] += 1
    expected = np.minimum(3 / RATINGS.user_counts, 1)[RATINGS.users]
    assert np.abs(times / 2000 - expected).max() < 0.05
    assert len(at_most(RATINGS, 9, rng.random(len(RATINGS)))) == len(RATINGS)


@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_corrected_steps_are_noisy_sums_of_clipped_gradients(rate: float) -> None:
    algorithm = of(
        mode="corrected",
        sampling_rate=rate,
        clip=0.6,
        learning_rate=0.04,
        user_ridge=0.7,
        item_ridge=0.3,
        spread=1e9,
    )
    epsilon = 6.0
    found, ledger = predicted(algorithm, [2.0, epsilon])
    curator = curator_for(algorithm, [epsilon], STREAMS)
    averages = algorithm.released_averages(RATINGS, algorithm.measurer(curator.ledger.limit, curator))
    effects = algorithm.own_means(RATINGS, averages)
    base = effects.items[:, 0] + effects.users[:, [0]]
    (multiplier,) = algorithm.noise_multipliers(np.array([epsilon]))
    _, q = initial_factors(RATINGS, algorithm.initial_factors, D, STREAMS)
    p = np.zeros((14, D))
    rng, chosen = STREAMS.noise("gradients"), STREAMS.generator("samples of users")

    def solve() -> None:
        for u in range(14):
            mine = RATINGS.users == u
            x = RATINGS.values[mine] - base[u, RATINGS.items[mine]]
            own = q[RATINGS.items[mine]]
            p[u] = np.linalg.solve(own.T @ own + 0.7 * np.eye(D), own.T @ x)

    sizes = []
    for _ in range(6):
        unit = rng.standard_normal((9, D))
        sampled = np.flatnonzero(chosen.random(14) < rate)
        sizes.append(len(sampled))
        solve()
        total = np.zeros((9, D))
        for u in sampled:
            mine = RATINGS.users == u
            items = RATINGS.items[mine]
            own = np.zeros((9, D))
            own[items] = (RATINGS.values[mine] - base[u, items] - q[items] @ p[u])[:, None] * p[u]
            total += own * min(1.0, 0.6 / float(np.linalg.norm(own)))
        q = q + 0.04 * (released(total, unit, 0.6 * multiplier) / rate - 0.3 * q)
    solve()
    assert (min(sizes) == 14) == (rate == 1)
    assert found[:, :, 1] == pytest.approx(base + p @ q.T, abs=2e-4)
    assert ledger.provable == pytest.approx([2.0, epsilon], rel=2e-4)
    assert np.all(ledger.provable <= np.array([2.0, epsilon]) * (1 + 1e-9))


def test_the_noise_of_all_steps_adds_up_to_no_more_than_the_spread() -> None:
    algorithm = of(mode="corrected", spread=0.1, learning_rate=0.05, clip=2.0, sampling_rate=0.5)
    multiplier = np.array([0.0, 1e-3, 10.0, 1e4])
    rates = algorithm.rates(multiplier)
    noise = rates * math.sqrt(6) * 2.0 * multiplier / 0.5
    assert rates[:2] == pytest.approx([0.05, 0.05])
    assert noise[2:] == pytest.approx([0.1, 0.1])


def test_a_users_ratings_change_nothing_for_others_but_through_the_noisy_sums() -> None:
    """At an ε that drowns them in noise, another user's ratings do not change predictions: joint privacy."""
    algorithm = of(mode="corrected")
    other = Ratings(
        RATINGS.users,
        RATINGS.items,
        np.where(RATINGS.users == 0, 6 - RATINGS.values, RATINGS.values).astype(np.float32),
        14,
        9,
        RATINGS.scale,
    )
    one, two = (
        fitted(algorithm, some, [1e-3], STREAMS)[0].predict(*PAIRS).reshape(14, 9)
        for some in (RATINGS, other)
    )
    assert np.abs(one[1:] - two[1:]).max() < 0.02
    assert np.abs(one[0] - two[0]).max() > 0.05


def test_a_delta_that_sampled_steps_cannot_have_is_refused() -> None:
    of(mode="corrected", delta=1e-13)
    with pytest.raises(ValidationError, match="no δ below 1e-12 can be certified"):
        of(mode="corrected", delta=1e-13, sampling_rate=0.5)

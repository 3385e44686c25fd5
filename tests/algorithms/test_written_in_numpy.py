"""Methods that are written out in NumPy step by step, noise included: Hua, Liu and DPPS-MF."""

import math
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.factorization import InitialFactors, at_most, initial_factors
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.grid import MARGIN, grid_of, on_grid
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace
from tests.algorithms import fitted
from tests.algorithms.fitted import curator_for, entry, solved
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.5)
D = 2


def streams_of(algorithm: Algorithm) -> Streams:
    return Streams(4, "d", algorithm.algorithm, 0, 0)


def predicted(algorithm: Algorithm, epsilons: list[float]) -> tuple[np.ndarray, Ledger]:
    return fitted.predicted(algorithm, RATINGS, epsilons, streams_of(algorithm))


def own_effects(algorithm: Any, epsilon: float) -> np.ndarray:
    """(14, 9) the released averages of items, and users' own means."""
    curator = curator_for(algorithm, [epsilon], streams_of(algorithm))
    averages = algorithm.released_averages(RATINGS, algorithm.measurer(curator.ledger.limit, curator))
    effects = algorithm.own_means(RATINGS, averages)
    return np.asarray(effects.items[:, 0] + effects.users[:, [0]])


# Hua et al.


def objective_noise(streams: Streams, scale: float) -> Any:
    """What is added to −Σ x·q of each item."""
    unit = unit_k_norm((9, D), streams.noise("objective, item factors"))
    return lambda row, right: -released(-right, unit[row], scale)


def test_published_solves_the_perturbed_objective_for_users_fitted_before() -> None:
    algorithm = entry("hua_mf", factors=D, regularization=0.1, iterations=3, item_ridge=0.7)
    found, ledger = predicted(algorithm, [2.0, 6.0])
    u, v = initial_factors(RATINGS, algorithm.initial_factors, D, streams_of(algorithm))
    users, items, r = RATINGS.users, RATINGS.items, RATINGS.values.astype(np.float64)
    for _ in range(3):
        u = solved(r, v, users, items, lambda n: 0.1 * n)
        v = solved(r, u, items, users, lambda n: 0.1 * n)
    u = u / np.linalg.norm(u, axis=1).max()
    v = solved(r, u, items, users, lambda n: 0.7, objective_noise(streams_of(algorithm), 4 / 6.0))
    assert found[:, :, 1] == pytest.approx(u @ v.T, abs=5e-4)
    assert ledger.claimed.tolist() == [2.0, 6.0]
    assert np.isinf(ledger.provable).all()
    assert ledger.entries[0].calibrated_to.value == 4


def test_corrected_solves_it_for_users_that_no_rating_has_touched() -> None:
    algorithm = entry(
        "hua_mf",
        factors=D,
        mode="corrected",
        item_ridge=0.7,
        noise_ridge=0.3,
        user_ridge=0.9,
        budget={"global_averages": 0.1, "item_averages": 0.5, "factors": 0.4},
        effects={"beta_m": 2, "beta_u": 3, "residual_clamp": 0.8},
    )
    streams = streams_of(algorithm)
    found, ledger = predicted(algorithm, [2.0, 6.0])
    users, items, r = RATINGS.users, RATINGS.items, RATINGS.values.astype(np.float64)
    overall = released(r.sum(), unit_laplace((), streams.noise("global average")), 4 / (0.1 * 6.0)) / len(r)
    counts = np.bincount(items, minlength=9)
    sums = released(
        np.bincount(items, r, 9), unit_laplace((9,), streams.noise("item averages")), 4 / (0.5 * 6.0)
    )
    averages = np.clip((sums + 2 * overall) / (counts + 2), 1, 5)
    x = r - averages[items]
    u = InitialFactors(distribution="sphere", scale=1.0).draw(14, D, streams.start("public user factors"))
    assert np.linalg.norm(u, axis=1) == pytest.approx(1)
    scale = 1.6 / (0.4 * 6.0)
    ridge = 0.7 + 0.3 * scale * (1 + MARGIN)
    v = solved(np.clip(x, -0.8, 0.8), u, items, users, lambda n: ridge, objective_noise(streams, scale))
    own = np.bincount(users, x, 14) / (np.bincount(users, minlength=14) + 3)
    p = solved(x - own[users], v, users, items, lambda n: 0.9)
    assert found[:, :, 1] == pytest.approx(averages + own[:, None] + p @ v.T, abs=2e-4)
    assert ledger.provable == pytest.approx([2.0, 6.0])


# Liu et al.

K, ETA, GAMMA, RHO, TAU, A, B = 4, 0.4, 0.5, 0.01, 4, 2.0, 7.0


def shaken(row: np.ndarray, gap: int, unit: np.ndarray, scale: float) -> np.ndarray:
    """A row with the noise of `gap` visits."""
    root = math.sqrt(gap)
    return np.asarray(released(row / root, unit, scale) * root) if gap else row


@pytest.mark.parametrize("epsilon", [150.0, 1e6, math.inf])
def test_rows_get_the_noise_of_all_visits_since_their_last(epsilon: float) -> None:
    algorithm = entry(
        "liu_mf",
        factors=D,
        iterations=K,
        initial_rate=ETA,
        decay=GAMMA,
        temperature=RHO,
        most_ratings=TAU,
        shape=A,
        rate=B,
        initial_factors={"scale": 0.5},
    )
    streams = streams_of(algorithm)
    found, ledger = predicted(algorithm, [2.0, epsilon])
    train = at_most(RATINGS, TAU, streams.of_ratings("ratings kept", RATINGS))
    n, power = len(train), min(epsilon / (4 * 25 * TAU), 1.0)
    assert train.user_counts.max() == TAU
    w = [
        np.column_stack([rows, np.zeros(len(rows))])
        for rows in initial_factors(train, algorithm.initial_factors, D, streams)
    ]
    counts = train.user_counts, train.item_counts
    of_errors, of_rows = 1.0, [np.full(D + 1, 100.0), np.full(D + 1, 100.0)]
    rng = streams.noise("factors")
    for t in range(1, K + 1):
        rate = ETA / n * t**-GAMMA
        scale = 0.0 if math.isinf(epsilon) else math.sqrt(RHO * rate)
        unit = rng.standard_normal((2 * n + 14 + 9, D + 1))
        last = [np.zeros(14, int), np.zeros(9, int)]

        for x, (u, i, r) in enumerate(zip(train.users, train.items, train.values, strict=True)):
            for side, row in ((0, u), (1, i)):
                w[side][row] = shaken(w[side][row], x - last[side][row], unit[2 * x + side], scale)
                last[side][row] = x
            p, q = w[0][u].copy(), w[1][i].copy()
            e = rate * n * power * of_errors * (r - 3 - p[:D] @ q[:D] - p[D] - q[D])
            for side, row, own, other in ((0, u, p, q), (1, i, q, p)):
                prior = np.minimum(rate * power * n / counts[side][row] * of_rows[side], 1)
                w[side][row] = own - prior * own + e * np.append(other[:D], 1)
        for side in (0, 1):
            for row in range(len(w[side])):
                gap = n - last[side][row]
                w[side][row] = shaken(w[side][row], gap, unit[2 * n + 14 * side + row], scale)
        left = train.values - 3 - (w[0][train.users, :D] * w[1][train.items, :D]).sum(axis=1)
        left -= w[0][train.users, D] + w[1][train.items, D]
        of_errors = (A + n / 2) / (B + (left**2).sum() / 2)
        of_rows = [(A + len(each) / 2) / (B + (each**2).sum(axis=0) / 2) for each in w]
    wanted = 3 + w[0][:, :D] @ w[1][:, :D].T + w[0][:, [D]] + w[1][:, D]
    assert found[:, :, 1] == pytest.approx(wanted, abs=3e-4)
    assert ledger.claimed.tolist() == [2.0, epsilon]
    assert np.isinf(ledger.provable).all()


# DPPS-MF


def dpps_mf(**parameters: Any) -> Any:
    return entry("dpps_mf", factors=D, initial_factors={"scale": 0.5}, iterations=6, **parameters)


@pytest.mark.parametrize("epsilon", [3.0, 64.0, 1e6, math.inf])
def test_published_dpps_steps_are_langevin_dynamics_on_residuals_of_item_means(epsilon: float) -> None:
    algorithm = dpps_mf(initial_rate=0.05, decay=0.5, temperature=0.3, regularization=0.2, most_ratings=3)
    streams = streams_of(algorithm)
    found, ledger = predicted(algorithm, [1.0, epsilon])
    train = at_most(RATINGS, 3, streams.of_ratings("ratings kept", RATINGS))
    p, q = initial_factors(train, algorithm.initial_factors, D, streams)
    rng = streams.noise("factors")
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
    free, factors = ledger.entries
    assert (free.mechanism, factors.mechanism) == ("none", "SGLD × 6, temperature 0.3")
    assert factors.calibrated_to.value == 2 * 16 * 3
    assert np.isinf(ledger.provable).all()


@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_corrected_dpps_steps_are_noisy_sums_of_clipped_gradients(rate: float) -> None:
    algorithm = dpps_mf(
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
    base, streams = own_effects(algorithm, epsilon), streams_of(algorithm)
    sampled = ledger.entries[-1].sampled
    assert sampled is not None
    multiplier = float(sampled.multiplier[1])
    _, q = initial_factors(RATINGS, algorithm.initial_factors, D, streams)
    x = RATINGS.values - base[RATINGS.users, RATINGS.items]
    rng, chosen = streams.noise("gradients"), streams.generator("samples of users")

    sizes = []
    for _ in range(6):
        unit = rng.standard_normal((9, D))
        some = np.flatnonzero(chosen.random(14) < rate)
        sizes.append(len(some))
        p = solved(x, q, RATINGS.users, RATINGS.items, lambda n: 0.7)
        total = np.zeros((9, D))
        for u in some:
            mine = RATINGS.users == u
            items = RATINGS.items[mine]
            own = np.zeros((9, D))
            own[items] = (x[mine] - q[items] @ p[u])[:, None] * p[u]
            total += own * min(1.0, 0.6 / float(np.linalg.norm(own)))
        q = q + 0.04 * (released(total, unit, 0.6 * multiplier) / rate - 0.3 * q)
    p = solved(x, q, RATINGS.users, RATINGS.items, lambda n: 0.7)
    assert (min(sizes) == 14) == (rate == 1)
    assert found[:, :, 1] == pytest.approx(base + p @ q.T, abs=2e-4)
    assert ledger.provable == pytest.approx([2.0, epsilon], rel=2e-4)
    assert np.all(ledger.provable <= np.array([2.0, epsilon]) * (1 + 1e-9))


def test_the_noise_of_all_steps_adds_up_to_no_more_than_the_spread() -> None:
    algorithm = dpps_mf(mode="corrected", spread=0.1, learning_rate=0.05, clip=2.0, sampling_rate=0.5)
    multiplier = np.array([0.0, 1e-3, 10.0, 1e4])
    rates = algorithm.rates(multiplier)
    noise = rates * math.sqrt(6) * 2.0 * multiplier / 0.5
    assert rates[:2] == pytest.approx([0.05, 0.05])
    assert noise[2:] == pytest.approx([0.1, 0.1])

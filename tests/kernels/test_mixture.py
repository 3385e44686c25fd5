"""Least squares weighted by a mixture, over lanes, against NumPy in float64."""

import numpy as np
import pytest
from numba import njit

from dpmf_cli.kernels.factors import FactorLanes, factor_lanes
from dpmf_cli.kernels.lanes import load, store, zeros
from dpmf_cli.kernels.mixture import (
    Mixture,
    Side,
    exponential,
    mixture_sums,
    solve_mixture_items,
    solve_mixture_users,
)
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=15, n_items=11)
BY_ITEM = np.argsort(RATINGS.items, kind="stable").astype(np.int32)
USERS = Side(RATINGS.user_starts, RATINGS.items, np.arange(len(RATINGS), dtype=np.int32))
ITEMS = Side(np.concatenate([[0], np.cumsum(RATINGS.item_counts)]), RATINGS.users[BY_ITEM], BY_ITEM)
LANES, FACTORS, RIDGE = 3, 2, 0.07
MIXTURES = {
    "one component": Mixture(np.ones((1, LANES)), np.array([[0.02, 1 / 12, 3.0]])),
    "three components": Mixture(
        np.array([[0.2, 0.5, 1 / 3], [0.3, 0.5, 1 / 3], [0.5, 0.0, 1 / 3]]),
        np.array([[0.01, 0.02, 0.3], [0.1, 0.5, 0.3], [1.0, 2.0, 0.3]]),
    ),
}


def start() -> tuple[FactorLanes, np.ndarray, np.ndarray, np.ndarray]:
    """Lanes, the same factors as arrays, and values (n, width)."""
    rng = np.random.default_rng(1)
    p, q = rng.uniform(0, 1, (15, FACTORS)), rng.uniform(0, 1, (11, FACTORS))
    lanes = factor_lanes(p, q, np.zeros((15, LANES)), np.zeros((11, LANES)))
    return lanes, p, q, rng.uniform(0, 1, (len(RATINGS), lanes.width)).astype(np.float32)


def posterior(errors: np.ndarray, mixture: Mixture, lane: int) -> np.ndarray:
    """(K, n) equation 10."""
    variances = mixture.variances[:, lane, None]
    heights = mixture.proportions[:, lane, None] * np.exp(-(errors**2) / (2 * variances)) / np.sqrt(variances)
    return np.asarray(heights / heights.sum(axis=0))


def weights(errors: np.ndarray, mixture: Mixture, lane: int) -> np.ndarray:
    return np.asarray(
        (posterior(errors, mixture, lane) / (12 * mixture.variances[:, lane, None])).sum(axis=0)
    )


@pytest.mark.parametrize("side", ["users", "items"])
@pytest.mark.parametrize("kind", MIXTURES)
def test_each_row_minimises_its_weighted_ridge_regression(kind: str, side: str) -> None:
    lanes, p, q, values = start()
    mixture, active = MIXTURES[kind], np.array([True, True, False])
    if side == "users":
        solve_mixture_users(lanes, USERS, values, mixture, regularization=RIDGE, active=active)
        found, own, other, rows, others = lanes.users, p, q, RATINGS.users, RATINGS.items
    else:
        solve_mixture_items(lanes, ITEMS, values, mixture, regularization=RIDGE, active=active)
        found, own, other, rows, others = lanes.items, q, p, RATINGS.items, RATINGS.users
    found = found.reshape(len(own), FACTORS + 1, lanes.width)
    for lane in range(LANES):
        for row in range(len(own)):
            mine = rows == row
            factors, targets = other[others[mine]], values[mine, lane].astype(float)
            weight = weights(targets - factors @ own[row], mixture, lane)
            gram = (factors.T * weight) @ factors + RIDGE * mine.sum() * np.eye(FACTORS)
            expected = np.linalg.solve(gram, (factors.T * weight) @ targets) if active[lane] else own[row]
            assert found[row, :-1, lane] == pytest.approx(expected, abs=2e-4)


def test_sums_of_the_mixture() -> None:
    lanes, p, q, values = start()
    mixture = MIXTURES["three components"]
    counts, squares = mixture_sums(lanes, USERS, values, mixture)
    for lane in range(LANES):
        errors = values[:, lane] - (p[RATINGS.users] * q[RATINGS.items]).sum(axis=1)
        gamma = posterior(errors, mixture, lane)
        assert counts[:, lane] == pytest.approx(gamma.sum(axis=1), rel=1e-4)
        assert squares[:, lane] == pytest.approx((gamma * errors**2).sum(axis=1), rel=1e-4)


def test_a_row_without_ratings_stays() -> None:
    lanes, p, _, values = start()
    empty = Side(np.zeros(16, np.int64), USERS.others, USERS.places)
    active = np.ones(LANES, np.bool_)
    solve_mixture_users(lanes, empty, values, MIXTURES["one component"], regularization=RIDGE, active=active)
    assert lanes.users.reshape(15, FACTORS + 1, -1)[:, :-1, 0] == pytest.approx(p, abs=1e-6)


@njit
def exponentials(x, out, width_of):  # type: ignore[no-untyped-def]
    w, like = len(width_of), zeros(width_of)
    for at in range(0, len(x), w):
        store(out, at, exponential(load(x, at, like), width_of))


@pytest.mark.parametrize("width", [8, 16])
def test_exponential_is_accurate_to_the_last_digits(width: int) -> None:
    x = -np.concatenate([np.geomspace(1e-10, 87, 4000), np.linspace(0, 87, 4000)]).astype(np.float32)
    out = np.empty_like(x)
    exponentials(x, out, (0,) * width)
    assert out == pytest.approx(np.exp(x.astype(np.float64)), rel=2.5e-7)
    low = np.full(width, -1e30, np.float32)
    exponentials(low, low, (0,) * width)
    assert ((low > 0) & (low < 1e-37)).all()


def test_factors_that_a_ridge_removes_end_at_zero() -> None:
    """Numbers below the smallest normal one would make every later sweep a hundred times slower."""
    lanes, _, _, values = start()
    active = np.ones(LANES, np.bool_)
    for _ in range(12):
        for solve, side in ((solve_mixture_users, USERS), (solve_mixture_items, ITEMS)):
            solve(lanes, side, values, MIXTURES["one component"], regularization=1e3, active=active)
            for factors in (lanes.users, lanes.items):
                assert (np.abs(factors[factors != 0]) >= 0.99e-12).all()
    assert not lanes.users.any()

"""The private factorisations against their listings written out in NumPy, noise included.

The averages are taken as known, so that the only noise is a method's own. The references draw their unit noise from
the same named streams and scale it as the paper prints. So an algorithm that omits noise, or scales it otherwise,
differs from its reference.
"""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.averages import Effects
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization, in_order
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN, grid_of, on_grid
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace
from tests.algorithms.fitted import descended, entry, predicted, within
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=12, n_items=9)
EPSILON, D, B, P_MAX, Q_MAX, LAMBDA, GAMMA = 3.0, 2, 1.0, 0.4, 0.5, 0.06, 0.02
FACTORIZATION = 0.7 * EPSILON


def streams(key: str) -> Streams:
    return Streams(4, "d", key, 0, 0)


def known_effects(self: Any, train: Any, epsilons: Epsilons, curator: Curator) -> Effects:
    """Averages of 3.2 and 0.1 for everything, and what measuring them would have cost."""
    grid = len(epsilons)
    return Effects(np.full((9, grid), 3.2), np.full((12, grid), 0.1), np.full(grid, 3.2))


def predictions(key: str, **parameters: Any) -> np.ndarray:
    """(12, 9) the algorithm's predictions for all pairs, with known averages."""
    algorithm = entry(key, factors=D, regularization=LAMBDA, **parameters)
    with patch.object(PrivateFactorization, "measure_effects", known_effects):
        return predicted(algorithm, RATINGS, [EPSILON], streams(key))[0][..., 0]


def start(key: str, *limits: float) -> list[np.ndarray]:
    """The start factors, within the norms of a method that has them."""
    rows = initial_factors(RATINGS, InitialFactors(), D, streams(key))
    return [within(each, limit) for each, limit in zip(rows, limits or (np.inf, np.inf), strict=True)]


def residuals(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(values.astype(float) - 3.3, -B, B))


def expected(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray(3.3 + p @ q.T)


def test_input_perturbation_is_algorithm_3() -> None:
    p, q = start("isgd")
    visits = in_order(RATINGS, "user_major", streams("isgd"))
    unit = unit_laplace((len(RATINGS),), streams("isgd").noise("residuals"))
    perturbed = np.clip(released(residuals(visits.values), unit, 2 * B / FACTORIZATION), -B, B)
    descended(p, q, zip(visits.users, visits.items, perturbed, strict=True), GAMMA, LAMBDA, 4)
    assert predictions("isgd", epochs=4) == pytest.approx(expected(p, q), abs=2e-5)


@pytest.mark.parametrize(("epsilon", "d"), [(EPSILON, 2), (np.inf, 3), (900.0, 30)])
def test_a_gram_matrix_is_that_of_all_users(epsilon: float, d: int) -> None:
    """Noise of nB² for each pair of users, and of B√d for what is projected on the eigenvectors; half of ε each."""
    dense, half, upper = np.zeros((12, 9)), 0.7 * epsilon / 2, np.triu_indices(12)
    dense[RATINGS.users, RATINGS.items] = residuals(RATINGS.values)
    unit = unit_laplace((78,), streams("isgd").noise("Gram matrix"))
    gram = np.zeros((12, 12))
    gram[upper] = released((dense @ dense.T)[upper], unit, 12 * B**2 / half)
    vectors = np.linalg.eigh(gram + np.triu(gram, 1).T)[1][:, : -d - 1 : -1]
    p = np.pad(vectors, ((0, 0), (0, d - vectors.shape[1])))
    unit = unit_laplace((9, d), streams("isgd").noise("projected residuals"))
    p *= np.where(p[np.abs(p).argmax(axis=0), range(d)] < 0, -1, 1)
    q = released(dense.T @ p, unit, B * np.sqrt(d) / half)
    algorithm = entry("isgd", factors=d, matrix="gram", neighbours="unbounded", mode="corrected")
    with patch.object(PrivateFactorization, "measure_effects", known_effects):
        found = predicted(algorithm, RATINGS, [epsilon], streams("isgd"))[0][..., 0]
    assert found == pytest.approx(expected(p, q), abs=1e-4)


def test_stochastic_gradient_perturbation_is_algorithm_4() -> None:
    p, q = start("psgd", P_MAX, Q_MAX)
    visits = in_order(RATINGS, "user_major", streams("psgd"))
    rng = streams("psgd").noise("errors")
    for _ in range(3):
        unit = unit_laplace((len(RATINGS),), rng)
        for u, i, r, noise in zip(visits.users, visits.items, residuals(visits.values), unit, strict=True):
            e = np.clip(released(r - p[u] @ q[i], noise, 3 * 2 * B / FACTORIZATION), -2, 2)
            p[u], q[i] = p[u] + GAMMA * (e * q[i] - LAMBDA * p[u]), q[i] + GAMMA * (e * p[u] - LAMBDA * q[i])
            p[u], q[i] = within(p[u], P_MAX), within(q[i], Q_MAX)
    assert predictions("psgd", epochs=3) == pytest.approx(expected(p, q), abs=2e-5)


@pytest.mark.parametrize(
    ("key", "mode"), [("pals", "published"), ("pals", "corrected"), ("pals_objective", "corrected")]
)
def test_alternating_least_squares_are_algorithm_6(key: str, mode: str) -> None:
    p, q = start(key, P_MAX, Q_MAX)
    k, matrix, rated = 2, np.zeros((12, 9)), np.zeros((12, 9), bool)
    rated[RATINGS.users, RATINGS.items] = True
    matrix[RATINGS.users, RATINGS.items] = residuals(RATINGS.values)
    draws = [streams(key).noise(f"{side} factors") for side in ("user", "item")]
    own_bound = {"published": (P_MAX, Q_MAX), "corrected": (Q_MAX, P_MAX)}[mode]

    def solve(
        values: np.ndarray, known: np.ndarray, other: np.ndarray, side: int, limit: float
    ) -> np.ndarray:
        unit = unit_k_norm((len(values), D), draws[side])
        rows = np.empty((len(values), D))
        for row in range(len(values)):
            of = other[known[row]]
            gram = of.T @ of + len(of) * LAMBDA * np.eye(D)
            right = of.T @ values[row, known[row]]
            scale = np.array((1 + MARGIN) * 2 * k * own_bound[side] * 2 * B / FACTORIZATION)
            grid, times = grid_of(scale), len(of) * LAMBDA
            if key == "pals_objective":
                rows[row] = np.linalg.solve(gram, -on_grid(unit[row] * scale - right, grid))
            else:
                noisy = np.linalg.solve(gram, right) * times + unit[row] * scale
                rows[row] = on_grid(noisy, grid) / times
        return within(rows, limit)

    for _ in range(k):
        p = solve(matrix, rated, q, 0, P_MAX)
        q = solve(matrix.T, rated.T, p, 1, Q_MAX)
    assert predictions(key, iterations=k, mode=mode) == pytest.approx(expected(p, q), abs=3e-5)


@pytest.mark.parametrize("neighbours", ["bounded", "unbounded"])
def test_batch_gradient_descent_is_its_docstring(neighbours: str) -> None:
    p, q = start("pbgd", P_MAX, Q_MAX)
    k, clip, rng = 3, 0.3, streams("pbgd").noise("gradients")
    delta = clip if neighbours == "unbounded" else 2 * clip
    for _ in range(k):
        noise = unit_k_norm((12 + 9, D), rng) * (k * delta / FACTORIZATION)
        to_p, to_q = noise[:12].copy(), noise[12:].copy()
        for u, i, r in zip(RATINGS.users, RATINGS.items, residuals(RATINGS.values), strict=True):
            most = clip / (np.linalg.norm(p[u]) + np.linalg.norm(q[i]))
            e = np.clip(r - p[u] @ q[i], -most, most)
            to_p[u] += e * q[i]
            to_q[i] += e * p[u]
        keep = 1 - GAMMA * LAMBDA
        p, q = within(keep * p + GAMMA * to_p, P_MAX), within(keep * q + GAMMA * to_q, Q_MAX)
    found = predictions("pbgd", epochs=k, clip=clip, neighbours=neighbours, mode="corrected")
    assert found == pytest.approx(expected(p, q), abs=2e-5)

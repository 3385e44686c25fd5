"""The private factorisations against their listings written out in NumPy, noise included.

The averages are taken as known, so that the only noise is a method's own. The references draw their unit noise from
the same named streams and scale it as the paper prints. So an algorithm that omits noise, or scales it otherwise,
differs from its reference.
"""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.averages import Effects, averages_of
from dpmf_cli.algorithms.shared.effects import Part
from dpmf_cli.algorithms.shared.factorization import initial_factors
from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization, in_order
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN, grid_of, on_grid
from dpmf_cli.privacy.ledger import Epsilons, Ledger
from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace
from dpmf_cli.privacy.release import Release, Witness
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=12, n_items=9)
EPSILON, D, B, P_MAX, Q_MAX, LAMBDA, GAMMA = 3.0, 2, 1.0, 0.4, 0.5, 0.06, 0.02
FACTORIZATION = 0.7 * EPSILON
PAIRS = np.divmod(np.arange(12 * 9), 9)


def streams(key: str) -> Streams:
    return Streams(4, "d", key, 0, 0)


def known_effects(self: Any, train: Any, epsilons: Epsilons, curator: Curator) -> Effects:
    """Averages of 3.2 and 0.1 for everything, and what measuring them would have cost."""
    grid = len(epsilons)
    return Effects(np.full((9, grid), 3.2), np.full((12, grid), 0.1), np.full(grid, 3.2))


def predictions(key: str, **parameters: Any) -> np.ndarray:
    """(108,) the algorithm's predictions for all pairs, with known averages."""
    given = {"algorithm": key, "factors": D, "regularization": LAMBDA, **parameters}
    algorithm, curator = PRIVATE[key].model_validate(given), Curator(Ledger([EPSILON]), streams(key))
    with patch.object(PrivateFactorization, "measure_effects", known_effects):
        model = algorithm.fit(RATINGS, curator.ledger.limit, streams=streams(key), curator=curator)
    users, items = PAIRS
    return np.asarray(model.predict(users.astype(np.int32), items.astype(np.int32)))[:, 0]


def start(key: str) -> tuple[np.ndarray, np.ndarray]:
    algorithm = PRIVATE[key].model_validate({"algorithm": key, "factors": D})
    assert isinstance(algorithm, PrivateFactorization)
    return initial_factors(RATINGS, algorithm.initial_factors, D, streams(key))


def residuals(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(values.astype(float) - 3.3, -B, B))


def projected(rows: np.ndarray, limit: float) -> np.ndarray:
    return np.asarray(rows * np.minimum(1, limit / np.linalg.norm(rows, axis=-1, keepdims=True)))


def expected(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    users, items = PAIRS
    return np.asarray(3.3 + np.sum(p[users] * q[items], axis=1))


def test_input_perturbation_is_algorithm_3() -> None:
    p, q = start("isgd")
    visits = in_order(RATINGS, "user_major", streams("isgd"))
    unit = unit_laplace((len(RATINGS),), streams("isgd").noise("residuals"))
    perturbed = np.clip(released(residuals(visits.values), unit, 2 * B / FACTORIZATION), -B, B)
    for _ in range(4):
        for u, i, r in zip(visits.users, visits.items, perturbed, strict=True):
            e = r - p[u] @ q[i]
            p[u], q[i] = p[u] + GAMMA * (e * q[i] - LAMBDA * p[u]), q[i] + GAMMA * (e * p[u] - LAMBDA * q[i])
    assert predictions("isgd", epochs=4) == pytest.approx(expected(p, q), abs=2e-5)


def test_stochastic_gradient_perturbation_is_algorithm_4() -> None:
    p, q = start("psgd")
    p, q = projected(p, P_MAX), projected(q, Q_MAX)
    visits = in_order(RATINGS, "user_major", streams("psgd"))
    rng = streams("psgd").noise("errors")
    for _ in range(3):
        unit = unit_laplace((len(RATINGS),), rng)
        for u, i, r, noise in zip(visits.users, visits.items, residuals(visits.values), unit, strict=True):
            e = np.clip(released(r - p[u] @ q[i], noise, 3 * 2 * B / FACTORIZATION), -2, 2)
            p[u], q[i] = p[u] + GAMMA * (e * q[i] - LAMBDA * p[u]), q[i] + GAMMA * (e * p[u] - LAMBDA * q[i])
            p[u], q[i] = projected(p[u], P_MAX), projected(q[i], Q_MAX)
    assert predictions("psgd", epochs=3) == pytest.approx(expected(p, q), abs=2e-5)


@pytest.mark.parametrize(
    ("key", "mode"), [("pals", "published"), ("pals", "corrected"), ("pals_objective", "corrected")]
)
def test_alternating_least_squares_are_algorithm_6(key: str, mode: str) -> None:
    p, q = start(key)
    q = projected(q, Q_MAX)
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
        return projected(rows, limit)

    for _ in range(k):
        p = solve(matrix, rated, q, 0, P_MAX)
        q = solve(matrix.T, rated.T, p, 1, Q_MAX)
    assert predictions(key, iterations=k, mode=mode) == pytest.approx(expected(p, q), abs=3e-5)


@pytest.mark.parametrize("neighbours", ["bounded", "unbounded"])
def test_batch_gradient_descent_is_its_docstring(neighbours: str) -> None:
    p, q = start("pbgd")
    p, q = projected(p, P_MAX), projected(q, Q_MAX)
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
        p, q = projected(keep * p + GAMMA * to_p, P_MAX), projected(keep * q + GAMMA * to_q, Q_MAX)
    found = predictions("pbgd", epochs=k, clip=clip, neighbours=neighbours, mode="corrected")
    assert found == pytest.approx(expected(p, q), abs=2e-5)


STEPS = {
    "bounded": ["global average", "item averages", "global average of residuals", "user averages"],
    "unbounded": [
        "global sum",
        "global count",
        "item sums",
        "item counts",
        "global sum of residuals",
        "global count of residuals",
        "user sums",
        "user counts",
    ],
}


class OneLoudStep(Witness):
    """A witness that silences the noise of all steps except one."""

    def __init__(self, loud: str | None) -> None:
        self._loud = loud

    def published(
        self, release: Release, lanes: slice, first: int, clean: np.ndarray, noisy: np.ndarray
    ) -> np.ndarray:
        return noisy if release.entry.step == self._loud else clean


@pytest.mark.parametrize(
    ("neighbours", "step"), [(kind, step) for kind, steps in STEPS.items() for step in steps]
)
def test_the_noise_of_every_average_reaches_the_averages(neighbours: str, step: str) -> None:
    """With all other noise silenced, the averages still differ from the clean ones."""

    def averages(loud: str | None) -> np.ndarray:
        curator = Curator(Ledger([1.0]), streams("averages"), OneLoudStep(loud))
        entry = PRIVATE["pge"].model_validate(
            {"algorithm": "pge", "neighbours": neighbours, "mode": "corrected"}
        )
        shares = {part: np.array([1 / 3]) for part in Part} | {Part.OVERALL: np.array([1 / 6])}
        found = averages_of(entry, RATINGS, shares, curator)
        assert [entry.step for entry in curator.ledger.entries] == STEPS[neighbours]
        return np.concatenate([found.items.ravel(), found.users.ravel()])

    assert np.abs(averages(step) - averages(None)).max() > 1e-4

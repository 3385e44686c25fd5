"""Noise on users' gradients against its steps written out in NumPy, noise included."""

import math

import numpy as np
import pytest

from dpmf_cli.algorithms.field.mugdho_mf import MugdhoMF
from dpmf_cli.algorithms.shared.factorization import initial_factors
from dpmf_cli.core.streams import Streams
from tests.algorithms.fitted import fitted
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.5)
STREAMS = Streams(4, "d", "mugdho_mf", 0, 0)
PAIRS = np.divmod(np.arange(14 * 9, dtype=np.int32), 9)
D, J, RATE, RIDGE, C, DELTA = 3, 6, 0.03, 0.2, 0.9, 1e-5


def within(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows * np.minimum(1, C / np.linalg.norm(rows, axis=1, keepdims=True)))


@pytest.mark.parametrize("epsilon", [8.0, 1e5])
def test_users_descend_noisy_gradients_and_items_clean_ones(epsilon: float) -> None:
    algorithm = MugdhoMF(
        algorithm="mugdho_mf",
        factors=D,
        iterations=J,
        learning_rate=RATE,
        regularization=RIDGE,
        clip=C,
        initial_factors={"scale": 0.6},
        delta=DELTA,
    )
    model, ledger = fitted(algorithm, RATINGS, [2.0, epsilon], STREAMS)
    found = np.asarray(model.predict(*PAIRS)).reshape(14, 9, -1)
    p, q = initial_factors(RATINGS, algorithm.initial_factors, D, STREAMS)
    rng, tail = STREAMS.noise("user gradients"), math.log(1 / DELTA)
    rho = (math.sqrt(tail + epsilon) - math.sqrt(tail)) ** 2
    assert rho + 2 * math.sqrt(rho * tail) == pytest.approx(epsilon)
    sigma = 4 * C * math.sqrt(J / (2 * rho))
    for _ in range(J):
        error = np.zeros((14, 9))
        left = (p[RATINGS.users] * q[RATINGS.items]).sum(axis=1) - (RATINGS.values - 3)
        error[RATINGS.users, RATINGS.items] = left
        of_users = released(error @ q, rng.standard_normal((14, D)), sigma) + RIDGE * p
        of_items = error.T @ p + RIDGE * q
        p, q = within(p - RATE * of_users), within(q - RATE * of_items)
    assert found[:, :, 1] == pytest.approx(3 + p @ q.T, abs=1e-4)
    assert ledger.claimed.tolist() == [2.0, epsilon]
    assert np.isinf(ledger.provable).all()


def test_theta_is_the_mu_of_all_steps() -> None:
    algorithm = MugdhoMF(algorithm="mugdho_mf")
    assert [algorithm.theta_of(algorithm.epsilon_of(each)) for each in (0.01, 1, 50)] == pytest.approx(
        [0.01, 1, 50]
    )

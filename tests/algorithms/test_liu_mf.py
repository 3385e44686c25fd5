"""Langevin dynamics rating by rating against its visits written out in NumPy, noise included."""

import math

import numpy as np
import pytest

from dpmf_cli.algorithms.field.liu_mf import LiuMF
from dpmf_cli.algorithms.shared.factorization import at_most, initial_factors
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.langevin import visits_between
from tests.algorithms.fitted import fitted
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.5)
STREAMS = Streams(4, "d", "liu_mf", 0, 0)
PAIRS = np.divmod(np.arange(14 * 9, dtype=np.int32), 9)
D, K, ETA, GAMMA, RHO, TAU, A, B = 3, 4, 0.4, 0.5, 0.01, 4, 2.0, 7.0


def shaken(row: np.ndarray, gap: int, unit: np.ndarray, scale: float) -> np.ndarray:
    """A row with the noise of `gap` visits."""
    root = math.sqrt(gap)
    return np.asarray(released(row / root, unit, scale) * root) if gap else row


@pytest.mark.parametrize("epsilon", [150.0, 1e6, math.inf])
def test_rows_get_the_noise_of_all_visits_since_their_last(epsilon: float) -> None:
    algorithm = LiuMF(
        algorithm="liu_mf",
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
    model, ledger = fitted(algorithm, RATINGS, [2.0, epsilon], STREAMS)
    found = np.asarray(model.predict(*PAIRS)).reshape(14, 9, -1)
    train = at_most(RATINGS, TAU, STREAMS.of_ratings("ratings kept", RATINGS))
    n, power = len(train), min(epsilon / (4 * 25 * TAU), 1.0)
    assert train.user_counts.max() == TAU
    w = [
        np.column_stack([rows, np.zeros(len(rows))])
        for rows in initial_factors(train, algorithm.initial_factors, D, STREAMS)
    ]
    counts = train.user_counts, train.item_counts
    of_errors, of_rows = 1.0, [np.full(D + 1, 100.0), np.full(D + 1, 100.0)]
    rng = STREAMS.noise("factors")
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


def test_each_row_gets_the_noise_of_all_visits_of_a_round() -> None:
    squares = visits_between(RATINGS) ** 2
    n = len(RATINGS)
    of_users = np.bincount(RATINGS.users, squares[: 2 * n : 2], 14) + squares[2 * n : 2 * n + 14]
    of_items = np.bincount(RATINGS.items, squares[1 : 2 * n : 2], 9) + squares[2 * n + 14 :]
    assert of_users == pytest.approx(n)
    assert of_items == pytest.approx(n)

"""Hua et al.'s objective perturbation against dense solutions written out in NumPy, noise included, in both modes."""

from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.field.hua_mf import HuaMF
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.noise import unit_k_norm, unit_laplace
from tests.algorithms.fitted import fitted
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.5)
STREAMS = Streams(4, "d", "hua_mf", 0, 0)
PAIRS = np.divmod(np.arange(14 * 9, dtype=np.int32), 9)
D, EPSILON = 3, 6.0


def of(**parameters: Any) -> HuaMF:
    return HuaMF.model_validate({"algorithm": "hua_mf", "factors": D, **parameters})


def predicted(algorithm: HuaMF, epsilons: list[float]) -> tuple[np.ndarray, Ledger]:
    """(14, 9, E) the predictions for all pairs."""
    model, ledger = fitted(algorithm, RATINGS, epsilons, STREAMS)
    return np.asarray(model.predict(*PAIRS)).reshape(14, 9, -1), ledger


def solved(
    x: np.ndarray, q: np.ndarray, rows: np.ndarray, others: np.ndarray, ridge: Any, noise: Any
) -> np.ndarray:
    """The rows p = (Σ q·qᵀ + ridge)⁻¹(Σ x·q + noise). The ridge grows with a row's number of ratings."""
    out = []
    for row in range(rows.max() + 1):
        mine = rows == row
        own = q[others[mine]]
        right = released(-own.T @ x[mine], noise.unit[row], noise.scale) * -1 if noise else own.T @ x[mine]
        out.append(np.linalg.solve(own.T @ own + ridge(mine.sum()) * np.eye(D), right))
    return np.array(out)


class KNorm:
    def __init__(self, scale: float) -> None:
        self.unit, self.scale = unit_k_norm((9, D), STREAMS.noise("objective, item factors")), scale


def test_published_solves_the_perturbed_objective_for_users_fitted_before() -> None:
    algorithm = of(regularization=0.1, iterations=3, item_ridge=0.7)
    found, ledger = predicted(algorithm, [2.0, EPSILON])
    u, v = initial_factors(RATINGS, algorithm.initial_factors, D, STREAMS)
    users, items, r = RATINGS.users, RATINGS.items, RATINGS.values.astype(np.float64)
    for _ in range(3):
        u = solved(r, v, users, items, lambda n: 0.1 * n, None)
        v = solved(r, u, items, users, lambda n: 0.1 * n, None)
    u = u / np.linalg.norm(u, axis=1).max()
    v = solved(r, u, items, users, lambda n: 0.7, KNorm(4 / EPSILON))
    assert found[:, :, 1] == pytest.approx(u @ v.T, abs=5e-4)
    assert ledger.claimed.tolist() == [2.0, EPSILON]
    assert np.isinf(ledger.provable).all()
    assert ledger.entries[0].calibrated_to.value == 4


def test_corrected_solves_it_for_users_that_no_rating_has_touched() -> None:
    algorithm = of(
        mode="corrected",
        item_ridge=0.7,
        noise_ridge=0.3,
        user_ridge=0.9,
        budget={"global_averages": 0.1, "item_averages": 0.5, "factors": 0.4},
        effects={"beta_m": 2, "beta_u": 3, "residual_clamp": 0.8},
    )
    found, ledger = predicted(algorithm, [2.0, EPSILON])
    users, items, r = RATINGS.users, RATINGS.items, RATINGS.values.astype(np.float64)
    overall = released(r.sum(), unit_laplace((), STREAMS.noise("global average")), 4 / (0.1 * EPSILON)) / len(
        r
    )
    counts = np.bincount(items, minlength=9)
    sums = released(
        np.bincount(items, r, 9), unit_laplace((9,), STREAMS.noise("item averages")), 4 / (0.5 * EPSILON)
    )
    averages = np.clip((sums + 2 * overall) / (counts + 2), 1, 5)
    x = r - averages[items]
    u = InitialFactors(distribution="sphere", scale=1.0).draw(14, D, STREAMS.start("public user factors"))
    assert np.linalg.norm(u, axis=1) == pytest.approx(1)
    noise = KNorm(1.6 / (0.4 * EPSILON))
    ridge = 0.7 + 0.3 * noise.scale * (1 + MARGIN)
    v = solved(np.clip(x, -0.8, 0.8), u, items, users, lambda n: ridge, noise)
    own = np.bincount(users, x, 14) / (np.bincount(users, minlength=14) + 3)
    p = solved(x - own[users], v, users, items, lambda n: 0.9, None)
    assert found[:, :, 1] == pytest.approx(averages + own[:, None] + p @ v.T, abs=2e-4)
    assert ledger.provable == pytest.approx([2.0, EPSILON])

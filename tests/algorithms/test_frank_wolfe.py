"""Frank–Wolfe against its steps written out in NumPy with dense matrices, noise included, in both modes."""

import math
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.field.frank_wolfe import FrankWolfe
from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.frank_wolfe import step_towards
from dpmf_cli.privacy.accounting import epsilon_of_mu
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from tests.algorithms.fitted import curator_for, fitted
from tests.conftest import make_ratings
from tests.released import released

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.5)
STREAMS = Streams(4, "d", "frank_wolfe", 0, 0)
PAIRS = np.divmod(np.arange(14 * 9, dtype=np.int32), 9)
T, KAPPA, EPSILON = 4, 0.4, 30.0


def of(**parameters: Any) -> FrankWolfe:
    return FrankWolfe.model_validate(
        {"algorithm": "frank_wolfe", "iterations": T, "nuclear": KAPPA, **parameters}
    )


def predicted(algorithm: FrankWolfe, epsilons: list[float]) -> tuple[np.ndarray, Ledger]:
    """(14, 9, E) the predictions for all pairs."""
    model, ledger = fitted(algorithm, RATINGS, epsilons, STREAMS)
    return np.asarray(model.predict(*PAIRS)).reshape(14, 9, -1), ledger


def completed(
    train: Ratings, base: np.ndarray, *, longest: float, limit: float, sigma: float, beta: float | None
) -> np.ndarray:
    """(14, 9) Y after T steps of algorithm 1 on the residuals from `base`."""
    rated = np.zeros((14, 9), bool)
    x, y = np.zeros((14, 9)), np.zeros((14, 9))
    rated[train.users, train.items] = True
    x[train.users, train.items] = train.values - base[train.users, train.items]
    rng, upper = STREAMS.noise("AᵀA"), np.triu_indices(9)
    for _ in range(T):
        a = np.where(rated, y - x, 0)
        a *= longest / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), longest)
        w = np.zeros((9, 9))
        w[upper] = released((a.T @ a)[upper], rng.standard_normal(45), sigma)
        values, vectors = np.linalg.eigh(w + np.triu(w, 1).T)
        slack = 0.0 if beta is None else math.sqrt(sigma * (1 + MARGIN) * math.log(9 / beta)) * 9**0.25
        u = a @ vectors[:, -1] / (math.sqrt(max(values[-1], 0)) + slack)
        u = np.clip(u, -1, 1)
        y = (1 - 1 / T) * y - KAPPA * math.sqrt(14 * 9) / T * np.outer(u, vectors[:, -1])
        y *= np.minimum(
            1, limit / np.maximum(np.linalg.norm(np.where(rated, y, 0), axis=1, keepdims=True), 1e-9)
        )
    return y


@pytest.mark.parametrize("epsilon", [EPSILON, 1e5])
def test_published_is_algorithm_1(epsilon: float) -> None:
    """Noise of L²√(64·T·ln(1/δ))/ε, rows within L, on so many ratings of each user less the user's mean."""
    algorithm = of(norm=1.5, most_ratings=3, failure=0.3)
    found, ledger = predicted(algorithm, [2.0, epsilon])
    train = at_most(RATINGS, 3, STREAMS.of_ratings("ratings kept", RATINGS))
    means = np.bincount(train.users, train.values, 14) / np.bincount(train.users, minlength=14)
    base = np.repeat(means[:, None], 9, axis=1)
    sigma = 1.5**2 * math.sqrt(64 * T * math.log(1e6)) / epsilon
    wanted = base + completed(train, base, longest=3.0, limit=1.5, sigma=sigma, beta=0.3)
    assert found[:, :, 1] == pytest.approx(wanted, abs=1e-4)
    assert ledger.claimed.tolist() == [2.0, epsilon]


def test_published_proves_less_than_it_claims() -> None:
    _, ledger = predicted(of(), [1.0, 10.0])
    (entry,) = ledger.entries
    assert entry.sensitivity.value == 4 * 10.0**2
    mu = np.array([1.0, 10.0]) / (2 * math.sqrt(math.log(1e6)))
    assert ledger.provable == pytest.approx([epsilon_of_mu(each, 1e-6) for each in mu])
    assert np.all(ledger.provable < 0.8 * ledger.claimed)


@pytest.mark.parametrize("clip", [0.5, 20.0])
def test_corrected_clips_what_is_left_and_composes_exactly(clip: float) -> None:
    algorithm = of(mode="corrected", norm=clip)
    found, ledger = predicted(algorithm, [2.0, EPSILON])
    curator = curator_for(algorithm, [EPSILON], STREAMS)
    averages = algorithm.released_averages(RATINGS, algorithm.measurer(curator.ledger.limit, curator))
    effects = algorithm.own_means(RATINGS, averages)
    base = effects.items[:, 0] + effects.users[:, [0]]
    theta = algorithm.budget.gram * algorithm.theta_of(EPSILON)
    sigma = clip**2 * math.sqrt(T) / theta
    wanted = base + completed(RATINGS, base, longest=clip, limit=math.inf, sigma=sigma, beta=None)
    assert found[:, :, 1] == pytest.approx(wanted, abs=2e-4)
    assert ledger.provable == pytest.approx([2.0, EPSILON], rel=1e-6)
    assert ledger.entries[-1].sensitivity.value == clip**2


def test_a_user_takes_no_more_than_a_whole_step() -> None:
    """Where noise makes λ′ too small; and without noise, where λ′ is 0."""
    items = np.linspace(0.1, 0.5, 9)[:, None]
    model = factor_model(np.zeros((14, 1)), items, np.zeros((14, 3)), np.full((9, 3), 2.9))
    singular = np.array([1e-6, 1e6, 0.0])
    step_towards(model, RATINGS, 0, singular, keep=0.5, pull=0.7, clip=50.0, limit=math.inf)
    taken = np.abs(model.groups[0].rows("users")[:, 0, :3])
    assert taken[:, 0] == pytest.approx(0.7)
    assert (taken[:, 1] < 1e-4).all()
    assert (taken[:, 2] == 0).all()


@pytest.mark.parametrize("mode", ["published", "corrected"])
def test_what_was_released_predicts_alike_for_one_user_alone(mode: str) -> None:
    """k counts all users, not only those whose predictions are asked for."""
    algorithm = of(mode=mode)
    model, _ = fitted(algorithm, RATINGS, [EPSILON], STREAMS)
    alone = RATINGS.select(RATINGS.users == 3)
    own = Ratings(np.zeros(len(alone), np.int32), alone.items, alone.values, 1, 9, RATINGS.scale)
    again = type(model).restored(model.published, algorithm, own)
    items = np.arange(9, dtype=np.int32)
    one, other = model.predict(np.full(9, 3, np.int32), items), again.predict(np.zeros(9, np.int32), items)
    assert other == pytest.approx(one, abs=1e-6)

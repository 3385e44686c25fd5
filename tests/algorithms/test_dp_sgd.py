"""DP-SGD against its steps written out in NumPy, noise included, and its public rules."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.beyond.learned_features import expected_items
from dpmf_cli.algorithms.field.dp_sgd import DPSGD
from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.testing import make_ratings
from tests.algorithms import fitted
from tests.released import released

Array = NDArray[np.float64]

RATINGS = make_ratings(9, n_users=14, n_items=9, density=0.6)
STREAMS = Streams(4, "d", "dp_sgd", 0, 0)
D, K, T, RATE, NORM = 2, 4, 3, 0.4, 0.7


def dp_sgd(**parameters: Any) -> DPSGD:
    small = {"factors": D, "most_ratings": K, "iterations": T, "sampling_rate": RATE, "user_norm": NORM}
    return DPSGD.model_validate({"algorithm": "dp_sgd", **small, **parameters})


@dataclass
class Drawn:
    """A release of one model, by hand: the draws of a step's stream at `scale`."""

    step: str
    wanted: float

    @property
    def scale(self) -> Array:
        return np.array([self.wanted])

    def added_to(self, clean: Any, draw: int = 0) -> Array:
        rng, clean = STREAMS.noise(self.step), np.asarray(clean, dtype=float)
        shape = clean.shape[: clean.ndim - (clean.shape[-1:] == (1,))]
        for _ in range(draw + 1):
            unit = rng.standard_normal(shape)
        return np.asarray(released(clean.reshape(shape), unit, self.wanted))[..., None]


def written(entry: DPSGD, epsilon: float, ledger: Ledger) -> Array:
    """(14, 9) predictions for all pairs."""
    kept = at_most(RATINGS, K, STREAMS.of_ratings("ratings kept", RATINGS))
    rated, values = np.zeros((14, 9), bool), np.zeros((14, 9))
    rated[kept.users, kept.items], values[kept.users, kept.items] = True, kept.values
    mu, budget = entry.theta_of(epsilon), entry.budget
    spent = mu**2 / (mu**2 + 4) if entry.users == "released" else 0.0
    theta = mu * math.sqrt((1 - spent) / (budget.centre**2 + budget.counts**2 + budget.gradients**2))
    w = 1 / np.sqrt(np.maximum(rated.sum(axis=1), 1))
    counts = Drawn("item counts", 1 / (theta * budget.counts))
    means = Drawn("users' means", 1 / (theta * budget.centre))
    weight, pop, base = (each[:, 0] for each in expected_items(kept, w, counts, means))  # type: ignore[arg-type]
    (steps,) = (entry for entry in ledger.entries if entry.step == "gradients")
    assert steps.sampled is not None
    sigma = float(steps.sampled.multiplier[1])
    variance = (entry.clip * sigma / entry.sampling_rate) ** 2 / T
    noise = NORM / (mu * math.sqrt(spent)) if spent else 0.0
    kappa = {"averaged": 0.0, "own": 1.0}.get(entry.users, 1 / (1 + 2 * (noise / NORM) ** 2))

    def vectors(ratings: Array, rated: Array) -> Array:
        found = np.zeros((14, 1 + D))
        for u in range(14):
            phi = features[rated[u]]
            found[u] = np.linalg.solve(phi.T @ phi + np.eye(1 + D), phi.T @ (ratings - base)[u, rated[u]])
        return found if entry.users == "own" else fitted.within(found, NORM)

    def rate(weight: Array, variance: Array | float) -> Array:
        weight = np.maximum(weight, 1e-6)
        ridge = entry.item_ridge + variance / (0.4**2 * weight)
        return np.minimum(np.log(1 + weight / ridge) / T, 0.5) / weight

    rng = STREAMS.generator("samples of users")
    start = STREAMS.start("initial item factors").normal(0, 0.1, (9, D))
    features = np.concatenate([np.full((9, 1), 10**-0.5), start], axis=1)
    for draw in range(T):
        chosen = rng.random(14) < entry.sampling_rate
        v = kappa * vectors(values, rated)
        left = np.where(rated, values - base - v @ features.T, 0)
        along = np.concatenate([np.ones((14, 1)), v[:, 1:]], axis=1)
        parts = (chosen * w)[:, None, None] * left[..., None] * along[:, None]
        clean = fitted.within(parts.reshape(14, -1), entry.clip).sum(axis=0).reshape(9, 1 + D)
        noisy = Drawn("gradients", entry.clip * sigma).added_to(clean, draw)[..., 0] / entry.sampling_rate
        trend = np.stack([np.ones(9), pop], axis=1)
        common = rate(trend.T**2 @ weight, variance * (trend**2).sum(axis=0)) * (trend.T @ noisy[:, 0])
        own = rate(weight, variance)
        base = base + trend @ common + own * noisy[:, 0]
        features[:, 1:] += own[:, None] * noisy[:, 1:]
    if entry.users == "own":
        rated[RATINGS.users, RATINGS.items], values[RATINGS.users, RATINGS.items] = True, RATINGS.values
        return np.asarray(base + vectors(values, rated) @ features.T)
    if entry.users == "released":
        return np.asarray(
            base + kappa * Drawn("user vectors", noise).added_to(vectors(values, rated))[..., 0] @ features.T
        )
    return np.broadcast_to(base, (14, 9))


@pytest.mark.parametrize("epsilon", [2.0, 30.0])
@pytest.mark.parametrize(("users", "sampling_rate"), [("released", 0.4), ("averaged", 1.0), ("own", 0.4)])
def test_a_fit_is_its_docstring_written_out(users: str, sampling_rate: float, epsilon: float) -> None:
    entry = dp_sgd(users=users, sampling_rate=sampling_rate)
    found, ledger = fitted.predicted(entry, RATINGS, [1.0, epsilon], STREAMS)
    assert found[..., 1] == pytest.approx(written(entry, epsilon, ledger), abs=2e-4)
    assert 0.999 * ledger.limit[1] < ledger.provable[1] <= ledger.limit[1] * (1 + 1e-9)


def test_without_noise_the_steps_shrink_an_error_as_ridge_regression_would() -> None:
    entry, weight = dp_sgd(iterations=2000, item_ridge=3.0), np.array([0.5, 4.0, 300.0])
    left = (1 - entry.rates(weight, np.zeros(3)) * weight) ** entry.iterations
    assert left == pytest.approx(3 / (3 + weight), rel=0.01)


def test_users_get_next_to_nothing_where_epsilon_is_small_and_never_everything() -> None:
    parts = dp_sgd().part_of_vectors(np.array([0.02, 2.0, math.inf]))
    assert parts == pytest.approx([1e-4, 0.5, 0.9], rel=1e-3)

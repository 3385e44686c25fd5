"""DPALS and DPAM against their steps written out in NumPy, noise included, in both modes."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.beyond.learned_features import OwnRegression, of_users
from dpmf_cli.algorithms.field.chien2021 import (
    ItemAlternation,
    PrivateAlternatingLeastSquares,
    PrivateAlternatingMinimization,
)
from dpmf_cli.algorithms.shared.factorization import at_most, initial_factors
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from tests.algorithms import fitted
from tests.conftest import make_ratings
from tests.released import released

Array = NDArray[np.float64]

OF_ITEMS = {"even": np.arange(9) % 2.0, "fifth": np.arange(9) / 5.0, "third": np.arange(9) % 3.0}
FEATURES = np.column_stack([(each - each.mean()) / each.std() for each in OF_ITEMS.values()])
RATINGS = replace(make_ratings(9, n_users=14, n_items=9, density=0.6), item_columns=OF_ITEMS)
STREAMS = Streams(4, "d", "dpals", 0, 0)
D, K, T = 2, 4, 3
ROW, COLUMN = np.tril_indices(D)
RATED = np.zeros((14, 9), bool)
RATED[RATINGS.users, RATINGS.items] = True
VALUES = np.zeros((14, 9))
VALUES[RATINGS.users, RATINGS.items] = RATINGS.values

COMMON = {
    "factors": D,
    "iterations": T,
    "most_ratings": K,
    "user_norm": 0.8,
    "user_ridge": 2.0,
    "initial_factors": {"scale": 0.5},
    "effects": {"beta_u": 2},
}


AVERAGED = {"item counts", "users' means", "item sums", "users left by clipping"}


def dpals(mode: str, **parameters: Any) -> PrivateAlternatingLeastSquares:
    return PrivateAlternatingLeastSquares.model_validate(
        {"algorithm": "dpals", "mode": mode, "frequency_exponent": 0.5, **COMMON, **parameters}
    )


def dpam(mode: str, **parameters: Any) -> PrivateAlternatingMinimization:
    return PrivateAlternatingMinimization.model_validate(
        {"algorithm": "dpam", "mode": mode, "steps": 2, "clip": 1.5, **COMMON, **parameters}
    )


def predicted(algorithm: ItemAlternation, epsilon: float) -> tuple[Array, Ledger]:
    """(14, 9) the predictions for all pairs, by the second model of a grid."""
    found, ledger = fitted.predicted(algorithm, RATINGS, [1.0, epsilon], STREAMS)
    return found[..., 1], ledger


def noisy(step: str, clean: Array, scale: float, draw: int = 0) -> Array:
    """`clean` plus the draws of a step's stream."""
    rng = STREAMS.noise(step)
    for _ in range(draw + 1):
        unit = rng.standard_normal(clean.shape)
    return np.asarray(released(clean, unit, scale))


class Written:
    """An alternation as its docstring lists it."""

    def __init__(self, entry: ItemAlternation, epsilon: float) -> None:
        self.entry, self.theta = entry, entry.theta_of(epsilon)
        _, self.q = initial_factors(RATINGS, entry.initial_factors, D, STREAMS)
        kept = at_most(RATINGS, K, STREAMS.of_ratings("ratings kept", RATINGS))
        self.towards = np.zeros((9, D))
        if entry.averages is None:
            self.measure_one_mean(kept)
        else:
            self.measure_averages(entry.averages, epsilon)
        self.x = np.where(RATED, VALUES - self.centre, 0)
        self.means = np.zeros(14)
        if entry.centring == "users":
            self.means = self.x.sum(axis=1) / (RATED.sum(axis=1) + 2)
            self.x = np.where(RATED, self.x - self.means[:, None], 0)
        self.weights = np.zeros((14, 9))
        if entry.selection == "uniform":
            self.weights[kept.users, kept.items] = 1
        for u, mine in enumerate(map(np.flatnonzero, RATED)):
            if entry.selection == "tail":
                self.weights[u, mine[np.argsort(self.counts[mine], kind="stable")[:K]]] = 1
            elif entry.selection == "weighted" and len(mine):
                powers = self.counts[mine] ** -entry.weight_exponent
                self.weights[u, mine] = powers * math.sqrt(K) / np.linalg.norm(powers)

    def measure_one_mean(self, kept: Ratings) -> None:
        corrected = self.entry.mode == "corrected"
        origin, largest = (3.0, 2.0) if corrected else (0.0, 5.0)
        share = self.theta * self.entry.budget.centre / math.sqrt(2)  # type: ignore[attr-defined]
        of_sum, of_count = (K * largest, K) if corrected else (math.sqrt(K) * largest, 1)
        total = noisy("global sum", np.asarray((kept.values.astype(float) - origin).sum()), of_sum / share)
        number = noisy("global count", np.asarray(float(len(kept))), of_count / share)
        self.centre = np.full(9, np.clip(origin + float(total) / max(float(number), 1.0), 1, 5))
        of_counts = math.sqrt(K) / (self.theta * self.entry.budget.counts)  # type: ignore[attr-defined]
        self.counts = np.maximum(noisy("item counts", kept.item_counts.astype(float), of_counts), 1)

    def measure_averages(self, share: float, epsilon: float) -> None:
        """As a model of `own_regression` that has learned nothing, with the fraction `share` of μ²."""
        less = epsilon_of_mu(math.sqrt(share) * mu_of_epsilon(epsilon, 1e-6), 1e-6)
        averages = OwnRegression(algorithm="own_regression", neighbours=Neighbours.USER, factors=0)
        weights, nothing = 1 / np.sqrt(np.maximum(RATINGS.user_counts, 1)), np.zeros((9, 0))
        grid = [less]
        curator = fitted.curator_for(averages, grid, STREAMS)
        items = of_users(averages, RATINGS, weights, nothing, np.array(grid), np.zeros(1), curator)
        self.centre, self.counts = items.base[:, 0], np.maximum(math.sqrt(K) * items.weight[:, 0], 1)
        features = np.stack([items.popularity, items.quality], axis=1)[..., 0]
        self.towards = self.entry.initial_factors.scale * features
        self.q = self.towards.copy()

    def users(self) -> Array:
        x = self.x[RATINGS.users, RATINGS.items]
        return fitted.solved(x, self.q, RATINGS.users, RATINGS.items, lambda n: 2.0)

    def predictions(self) -> Array:
        return np.asarray(self.centre + self.means[:, None] + self.users() @ self.q.T)


def written_dpals(entry: PrivateAlternatingLeastSquares, epsilon: float) -> Array:
    model = Written(entry, epsilon)
    clip = entry.rating_clip if entry.mode == "corrected" else math.inf
    x = np.clip(model.x, -clip, clip)
    frequency = (model.counts + 1) ** 0.5
    frequency = frequency * model.counts.sum() / (model.counts * frequency).sum()
    norm, towards = 0.8, model.towards
    gram_scale = math.sqrt(K) * norm**2 * math.sqrt(T) / (model.theta * entry.budget.grams)
    side_scale = math.sqrt(K) * norm * math.sqrt(T) / (model.theta * entry.budget.right_sides)
    side_scale *= clip if entry.mode == "corrected" else 1
    features, weight = FEATURES, entry.item_features or 0.0
    if weight:
        left, values, _ = np.linalg.svd(features, full_matrices=False)
        model.q = left[:, :D] * values[:D] * 0.5 / np.std(left[:, :D] * values[:D])
    for t in range(1, T + 1):
        p = fitted.within(model.users(), 0.8)
        w = np.linalg.solve(model.q.T @ model.q + np.eye(D), model.q.T @ features)
        grams = np.einsum("ui,uf,ug->ifg", model.weights, p, p)
        stretch = np.where(ROW == COLUMN, 1, math.sqrt(2))
        packed = noisy(f"grams {t}", grams[:, ROW, COLUMN] * stretch, gram_scale) / stretch
        sides = noisy(f"right sides {t}", np.einsum("ui,ui,uf->if", model.weights, x, p), side_scale)
        for i in range(9):
            gram = np.zeros((D, D))
            gram[ROW, COLUMN] = gram[COLUMN, ROW] = packed[i]
            gram = gram + weight * w @ w.T
            values, vectors = np.linalg.eigh(gram)
            gram = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
            ridge = entry.item_ridge * frequency[i]
            ridge += entry.noise_ridge * math.sqrt(D) * gram_scale * (1 + MARGIN)
            model.q[i] = np.linalg.solve(
                gram + ridge * np.eye(D), sides[i] + weight * w @ features[i] + ridge * towards[i]
            )
    return model.predictions()


def written_dpam(entry: PrivateAlternatingMinimization, epsilon: float, ledger: Ledger) -> Array:
    model, rng, draw = Written(entry, epsilon), STREAMS.generator("samples of users"), 0
    sampled = ledger.entries[-1].sampled
    assert sampled is not None
    multiplier = float(sampled.multiplier[1])
    noise = math.sqrt(T * 2) * 1.5 * multiplier / entry.sampling_rate
    rate = entry.learning_rate * entry.spread / max(entry.spread, entry.learning_rate * noise)
    for _ in range(T):
        p = fitted.within(model.users(), 0.8)
        for _ in range(2):
            chosen = np.ones((14, 1), bool)
            if entry.sampling_rate < 1:
                chosen = rng.random((14, 1)) < entry.sampling_rate
            left = np.where(RATED, model.x - p @ model.q.T, 0)
            parts = (chosen * model.weights * left)[..., None] * p[:, None]
            lengths = np.maximum(np.linalg.norm(parts.reshape(14, -1), axis=1), 1e-300)
            clean = (parts * np.minimum(1, 1.5 / lengths)[:, None, None]).sum(axis=0)
            gradient = noisy("gradients", clean, 1.5 * multiplier, draw)
            pulled = entry.item_ridge * (model.q - model.towards)
            model.q = model.q + rate * (gradient / entry.sampling_rate - pulled)
            draw += 1
    return model.predictions()


SELECTIONS = list(product(("uniform", "tail", "weighted"), ("overall", "users")))


@pytest.mark.parametrize("epsilon", [30.0, math.inf])
@pytest.mark.parametrize("mode", ["published", "corrected"])
@pytest.mark.parametrize(("selection", "centring"), SELECTIONS)
def test_a_fit_is_its_docstring_written_out(selection: str, centring: str, mode: str, epsilon: float) -> None:
    als = dpals(mode, selection=selection, centring=centring)
    assert predicted(als, epsilon)[0] == pytest.approx(written_dpals(als, epsilon), abs=2e-4)
    descent = dpam(mode, selection=selection, centring=centring)
    found, ledger = predicted(descent, epsilon)
    assert found == pytest.approx(written_dpam(descent, epsilon, ledger), abs=2e-4)


@pytest.mark.parametrize("epsilon", [3.0, 30.0])
@pytest.mark.parametrize("exponent", [0.0, 0.3])
def test_averages_of_items_come_first(exponent: float, epsilon: float) -> None:
    """They get their fraction of μ²; ε is the whole of it."""
    of = {"averages": 0.7, "weight_exponent": exponent}
    als, descent = dpals("corrected", **of), dpam("corrected", **of)
    assert predicted(als, epsilon)[0] == pytest.approx(written_dpals(als, epsilon), abs=2e-4)
    found, ledger = predicted(descent, epsilon)
    assert found == pytest.approx(written_dpam(descent, epsilon, ledger), abs=2e-4)
    ledger = predicted(als, epsilon)[1]
    squares = {step: mu**2 for step, mu in mus(ledger).items()}
    of_averages = sum(square for step, square in squares.items() if step in AVERAGED)
    assert of_averages == pytest.approx(0.7 * sum(squares.values()))
    assert ledger.provable[1] == pytest.approx(epsilon)
    assert ledger.claimed[1] == pytest.approx(epsilon)


@pytest.mark.parametrize("weight", [0.1, 3.0])
def test_items_also_explain_their_public_features(weight: float) -> None:
    entry = dpals("corrected", item_features=weight)
    assert predicted(entry, 30.0)[0] == pytest.approx(written_dpals(entry, 30.0), abs=2e-4)


def test_dpam_descends_on_samples_of_users() -> None:
    entry = dpam("corrected", sampling_rate=0.4)
    found, ledger = predicted(entry, 30.0)
    assert found == pytest.approx(written_dpam(entry, 30.0, ledger), abs=2e-4)


def test_dpam_descends_slower_for_more_users_and_for_more_noise() -> None:
    entry = dpam("corrected", learning_rate=0.02, spread=0.1)
    silent, loud = np.zeros(1), np.array([4.0])
    assert [float(entry.rates(silent, n)[0]) for n in (1, 1000, 4000)] == [0.02, 0.02, 0.005]
    noise = math.sqrt(T * 2) * 1.5 * 4
    assert entry.rates(loud, 1) == pytest.approx(0.1 / noise)


def test_blocks_of_items_are_solved_as_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = predicted(dpals("corrected"), 30.0)
    monkeypatch.setattr("dpmf_cli.kernels.normal_equations.HELD", 40)
    assert np.array_equal(predicted(dpals("corrected"), 30.0)[0], found)


def mus(ledger: Ledger) -> dict[str, float]:
    """Δ/σ of the second model, by step. Together they are composed exactly."""
    return {entry.step: float(entry.mu[1]) for entry in ledger.entries if entry.mu is not None}


def test_what_the_public_code_forgets_is_proved_by_the_scale() -> None:
    """There is no Γ_M: residuals are within r_max − r_min = 4. A user occurs k times in a global sum, neither
    √k times nor once."""
    entry = dpals("published")
    _, ledger = predicted(entry, 8.0)
    theta, found = entry.theta_of(8.0), mus(ledger)
    assert found["right sides 2"] == pytest.approx(4 * theta * entry.budget.right_sides / math.sqrt(T))
    assert found["grams 2"] == pytest.approx(theta * entry.budget.grams / math.sqrt(T))
    assert found["global sum"] == pytest.approx(math.sqrt(K) * theta * entry.budget.centre / math.sqrt(2))
    assert found["global count"] == pytest.approx(K * theta * entry.budget.centre / math.sqrt(2))
    assert ledger.claimed[1] == pytest.approx(8.0)
    assert 8 < ledger.provable[1] < math.inf

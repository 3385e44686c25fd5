"""Private kNN and the fixed covariance: both against dense linear algebra, and how far one rating moves them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.algorithms.friedman2016.pknn import PrivateKNN
from dpmf_cli.algorithms.shared.averages import Effects
from dpmf_cli.algorithms.shared.item_covariance import CovarianceModel, ReleasedProducts, inverse_counts
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.covariance import weighted_products
from dpmf_cli.privacy import covariance_sensitivity as sensitivity
from dpmf_cli.privacy.grid import MARGIN, grid_of, on_grid
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.noise import unit_laplace
from dpmf_cli.testing import predict_all
from tests.algorithms.fitted import entry, fitted
from tests.conftest import make_ratings
from tests.kernels.test_covariance import unpacked

BOUNDED, UNBOUNDED = Neighbours.BOUNDED, Neighbours.UNBOUNDED
STREAMS = Streams(1, "data", "knn", 0, 0)
VARIANTS = [(neighbours, mode) for neighbours in (BOUNDED, UNBOUNDED) for mode in Mode]


def pknn(**fields: Any) -> Any:
    return entry("pknn", **fields)


def with_effects(model: CovarianceModel, effects: Effects) -> CovarianceModel:
    """The model with other averages, also in what is measured."""
    assert isinstance(model.released, ReleasedProducts)
    return replace(model, effects=effects, released=replace(model.released, effects=effects))


def predicted_densely(model: CovarianceModel) -> NDArray[np.float64]:
    """(n_users, n_items) predictions by the formulas of the papers, on dense matrices, for the first ε."""
    ratings, algorithm, n = model.own, model.settings, model.own.n_items
    assert isinstance(algorithm, PrivateKNN)
    assert isinstance(model.released, ReleasedProducts)
    known = np.zeros((ratings.n_users, n))
    known[ratings.users, ratings.items] = 1
    averages = model.effects.users[:, [0]] + model.effects.items[:, 0]
    residuals = np.zeros_like(known)
    residuals[ratings.users, ratings.items] = ratings.values - averages[ratings.users, ratings.items]
    bound, count = algorithm.effects.residual_clamp, known.sum(axis=1, keepdims=True)
    clamped = np.clip(residuals, -bound, bound)
    noise, of_weight = model.released.of_covariance, model.released.of_weight

    def noisy(clean: NDArray[np.float64], step: str, scale: float) -> NDArray[np.float64]:
        drawn = unpacked(unit_laplace((n * (n + 1) // 2,), STREAMS.noise(step)), n)
        return on_grid(clean + drawn * scale, grid_of(np.array(scale)))

    cov = noisy(clamped.T @ (clamped / count), "covariance", noise.scale[0])
    wgt = known.T @ (known / count)
    if of_weight is not None:
        wgt = np.maximum(noisy(wgt, "weights", of_weight.scale[0]), 0)
    on, off = np.eye(n, dtype=bool), np.triu(np.ones((n, n), bool), 1)
    low, high = algorithm.variance_limits
    variance = np.clip((cov[on] @ wgt[on]) / (wgt[on] @ wgt[on]), low * bound**2, high * bound**2)
    low, high = algorithm.covariance_limits
    common = np.clip((cov[off] @ wgt[off]) / (wgt[off] @ wgt[off]), low * bound**2, high * bound**2)
    pull = (
        algorithm.shrinkage / algorithm.typical_count + algorithm.noise_shrinkage * noise.scale[0] / bound**2
    )
    avg = (cov + pull * np.where(on, variance, common)) / (wgt + pull)
    out = averages.copy()
    for user in range(ratings.n_users):
        for item in range(n):
            others = [j for j in np.flatnonzero(known[user]) if j != item]
            of = sorted(others, key=lambda j: -wgt[item, j])[: algorithm.k]
            system = avg[np.ix_(of, of)] + algorithm.ridge * bound**2 * np.eye(len(of))
            out[user, item] += np.linalg.solve(system, avg[of, item]) @ residuals[user, of]
    return np.asarray(out)


@pytest.mark.parametrize(("neighbours", "mode"), VARIANTS)
@pytest.mark.parametrize("epsilon", [0.5, np.inf])
def test_predictions_are_those_of_dense_linear_algebra(
    neighbours: Neighbours, mode: Mode, epsilon: float
) -> None:
    ratings = make_ratings(2, n_users=25, n_items=14, scale=Scale(1, 9, 1))
    effects = {"residual_clamp": 2.0}
    algorithm = pknn(neighbours=neighbours, mode=mode, k=3, effects=effects)
    model, _ = fitted(algorithm, ratings, [epsilon], STREAMS)
    found = predict_all(model, ratings)[:, 0].reshape(25, 14)
    assert found == pytest.approx(predicted_densely(model), abs=1e-4)


@pytest.mark.parametrize("k", [2, 1000])
@pytest.mark.parametrize("neighbours", [BOUNDED, UNBOUNDED])
def test_the_fixed_covariance_is_the_same_predictor(neighbours: Neighbours, k: int) -> None:
    """With equal variances and equal covariances, the closed form equals the solution of the k × k system."""
    ratings = make_ratings(6, n_users=25, n_items=14)
    algorithm = entry("public_knn", neighbours=neighbours, k=k)
    model, _ = fitted(algorithm, ratings, [2.0], STREAMS)
    private = pknn(
        k=k if neighbours is BOUNDED else 1000,
        variance_limits=(0.5, 0.5),
        covariance_limits=(0.05, 0.05),
        shrinkage=1e9,
    )
    fixed, _ = fitted(private, ratings, [np.inf], STREAMS)
    fixed = with_effects(fixed, model.effects)
    assert predict_all(model, ratings) == pytest.approx(predict_all(fixed, ratings), abs=1e-5)


@pytest.mark.parametrize(("neighbours", "mode"), VARIANTS)
def test_the_ledger_says_what_the_noise_is(neighbours: Neighbours, mode: Mode, ratings: Ratings) -> None:
    clamp = 0.5
    algorithm = pknn(neighbours=neighbours, mode=mode, effects={"residual_clamp": clamp})
    model, ledger = fitted(algorithm, ratings, [2.0], STREAMS)
    steps = [entry for entry in ledger.entries if entry.step in ("covariance", "weights")]
    released = model.released
    noises = [released.of_covariance, *([] if neighbours is BOUNDED else [released.of_weight])]
    assert sum(entry.claimed[0] for entry in steps) == pytest.approx(0.10 * 2.0)
    # Bounded: 2B² of 4B². Unbounded: 3B²/2 of 3B², and 3/2 of 3.
    used = {BOUNDED: [4 * clamp**2], UNBOUNDED: [3 * clamp**2, 3.0]}[neighbours]
    for step, noise, published in zip(steps, noises, used, strict=True):
        scaled_to = published if mode is Mode.PUBLISHED else published / 2
        assert noise.scale[0] == pytest.approx((1 + MARGIN) * scaled_to / step.claimed[0])
        assert noise.at(0).added_to(np.zeros(40 * 41 // 2)).shape == (40 * 41 // 2, 1)
        assert step.provable[0] == pytest.approx((1 + MARGIN) * published / 2 / noise.scale[0])


def test_limits_must_ascend() -> None:
    with pytest.raises(ValidationError, match="limits must ascend"):
        pknn(covariance_limits=(0.2, 0.1))


# How far one rating moves a triangle. Only the rating's user matters, and the averages are already released.


def covariance(*residuals: float) -> NDArray[np.float64]:
    """Cov of one user with these clamped residuals of items 0, 1, …"""
    n, values = len(residuals), np.array(residuals, np.float32)
    one = Ratings(np.zeros(n, np.int32), np.arange(n, dtype=np.int32), values, 1, 40, Scale(1, 5))
    return weighted_products(one, values.astype(float), inverse_counts(one))


def test_the_bounds_of_a_changed_value_are_met_or_nearly() -> None:
    """Where Δr = 1 < B = 2, by a first rating: its square moves from (B − Δr)² to B²."""
    signs = [1.0, -1.0] * 20
    moved = np.abs(covariance(*signs) - covariance(*signs[:-1], 1.0)).sum()
    assert moved == pytest.approx(2 * (1 - 1 / 40))  # 2B²(1 − 1/c), which 2B² bounds
    assert sensitivity.covariance_triangle(1.0, Scale(1, 5), BOUNDED).value == 2.0
    moved = np.abs(covariance(1.0) - covariance(2.0)).sum()
    assert moved == sensitivity.covariance_triangle(2.0, Scale(0, 1), BOUNDED).value == 3.0

"""No neighbour moves a sum of clamped residuals by more than its sensitivity, for any model."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.als import by_item, by_user
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model
from dpmf_cli.kernels.reports import clamped_sums
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.neighbours import Neighbours
from tests.conftest import make_ratings

RATINGS = make_ratings(3, n_users=15, n_items=9)


def model_of(seed: int, spread: float) -> FactorModel:
    rng = np.random.default_rng(seed)
    users, items = rng.normal(0, spread, (15, 2)), rng.normal(0, spread, (9, 2))
    return factor_model(users, items, rng.normal(0, 1, (15, 2)), rng.normal(3, 1, (9, 2)))


def features_of(seed: int, rows: int) -> np.ndarray:
    features = np.random.default_rng(seed).normal(0, 1, (rows, 3))
    return np.asarray(features / np.linalg.norm(features, axis=1, keepdims=True))


def measured(
    side: Side, ratings: Ratings, model: FactorModel, bound: float, features: np.ndarray | None = None
) -> np.ndarray:
    """(rows, k, E)"""
    of_users = side == "users"
    others = np.ones((9 if of_users else 15, 1)) if features is None else features
    return clamped_sums(model, (by_user if of_users else by_item)(ratings), others, bound)


anything = {
    "side": st.sampled_from(["users", "items"]),
    "seed": st.integers(0, 10_000),
    "bound": st.floats(0.01, 2),
    "spread": st.sampled_from([1e-3, 1.0, 30.0]),
    "at": st.integers(0, len(RATINGS) - 1),
    "extremes": st.sampled_from([(1.0, 5.0), (5.0, 1.0), (2.0, 4.0)]),
}


@settings(max_examples=150, deadline=None)
@given(**anything)
def test_another_value_moves_a_sum_by_no_more_than_its_sensitivity(
    side: Side, seed: int, bound: float, spread: float, at: int, extremes: tuple[float, float]
) -> None:
    model, features = model_of(seed, spread), features_of(seed, 9 if side == "users" else 15)
    here, there = (with_value(at, value) for value in extremes)
    of_averages = sensitivity.clamped_sums()
    moved = measured(side, here, model, bound) - measured(side, there, model, bound)
    assert of_averages.neighbours is Neighbours.BOUNDED
    assert of_averages.norm == 1
    assert np.abs(moved).sum(axis=(0, 1)).max() <= of_averages.value * (1 + 1e-9)
    of_rows = sensitivity.clamped_vectors()
    moved = measured(side, here, model, bound, features) - measured(side, there, model, bound, features)
    assert of_rows.neighbours is Neighbours.BOUNDED
    assert of_rows.norm == 2
    assert np.linalg.norm(moved, axis=1).sum(axis=0).max() <= of_rows.value * (1 + 1e-9)


def with_value(at: int, value: float) -> Ratings:
    values = RATINGS.values.copy()
    values[at] = value
    return replace(RATINGS, values=values)


@pytest.mark.parametrize("side", ["users", "items"])
def test_the_bound_on_values_is_attained(side: Side) -> None:
    here, there = with_value(4, 1.0), with_value(4, 5.0)
    nothing = factor_model(np.zeros((15, 2)), np.zeros((9, 2)), np.zeros((15, 1)), np.full((9, 1), 3.0))
    for features, moves in (
        (None, sensitivity.clamped_sums()),
        (features_of(1, 9 if side == "users" else 15), sensitivity.clamped_vectors()),
    ):
        moved = measured(side, here, nothing, 1.5, features) - measured(side, there, nothing, 1.5, features)
        assert np.linalg.norm(moved, axis=1).sum() == pytest.approx(moves.value)


def test_the_bound_holds_for_the_core_too() -> None:
    """Σ_u x_u ⊗ Σ_i clamp(x)/B·y_i is one vector, to which a rating contributes clamp(x)/B·x_u ⊗ y_i."""
    users, items = features_of(1, 15), features_of(2, 9)
    model = factor_model(np.zeros((15, 2)), np.zeros((9, 2)), np.zeros((15, 2)), np.full((9, 2), 3.0))
    cores = [
        np.einsum("ua,ube->abe", users, measured("users", with_value(4, value), model, 0.5, items))
        for value in (1.0, 5.0)
    ]
    moved = np.linalg.norm(cores[0] - cores[1], axis=(0, 1))
    assert moved == pytest.approx(sensitivity.clamped_vectors().value)


@settings(max_examples=150, deadline=None)
@given(**anything)
def test_a_rating_moves_its_weights_of_signs_by_1_exactly(
    side: Side, seed: int, bound: float, spread: float, at: int, extremes: tuple[float, float]
) -> None:
    model, whole = model_of(seed, spread), with_value(at, extremes[0])
    fewer = whole.select(np.arange(len(whole)) != at)
    weights = []
    for ratings in (whole, fewer):
        counts = (ratings.user_counts if side == "users" else ratings.item_counts)[:, None, None]
        sums = measured(side, ratings, model, bound)
        weights.append(np.stack([counts + sums, counts - sums]) / 2)
    moves = sensitivity.weights_of_signs_unbounded()
    assert moves.neighbours is Neighbours.UNBOUNDED
    assert np.abs(weights[0] - weights[1]).sum(axis=(0, 1, 2)) == pytest.approx(moves.value)

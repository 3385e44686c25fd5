"""Own regression against plain NumPy, and the posteriors that it computes from released sums."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.beyond import learned_features
from dpmf_cli.algorithms.beyond.learned_features import (
    OwnRegression,
    counts_of,
    estimated,
    popularity_of,
)
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.testing import fit, make_ratings, predict_all

Array = np.ndarray


def entry(**fields: Any) -> OwnRegression:
    made = PRIVATE["own_regression"].model_validate({"algorithm": "own_regression", **fields})
    assert isinstance(made, OwnRegression)
    return made


def standardised(feature: Array, weight: Array) -> Array:
    centred = feature - np.average(feature, weights=weight)
    return np.asarray(centred / math.sqrt(np.average(centred**2, weights=weight)))


def regressions(train: Ratings, base: Array, features: Array) -> Array:
    """(n_users, k) by lstsq on ratings and rows of the ridge."""
    found = np.zeros((train.n_users, features.shape[1]))
    for u in range(train.n_users):
        mine = train.items[train.users == u]
        left = train.values[train.users == u] - base[mine]
        rows = np.concatenate([features[mine], np.eye(features.shape[1])])
        found[u] = np.linalg.lstsq(rows, np.append(left, np.zeros(features.shape[1])), rcond=None)[0]
    return found


def clipped_sums(
    train: Ratings, base: Array, features: Array, own: Array, along: Array, clip: float
) -> tuple[Array, Array]:
    """(n_items, D), (n_users,): user by user, of the residuals of the regressions."""
    left = train.values - base[train.items] - np.sum(features[train.items] * own[train.users], axis=1)
    total, kept = np.zeros((train.n_items, along.shape[1])), np.zeros(train.n_users)
    for u in np.unique(train.users):
        mine = train.users == u
        part = np.zeros_like(total)
        part[train.items[mine]] = left[mine, None] * along[u] / math.sqrt(mine.sum())
        kept[u] = min(1.0, clip / float(np.linalg.norm(part)))
        total += kept[u] * part
    return total, kept


def averages(
    sums: Array, weight: Array, popularity: Array, variance: Array, centre: Array, public: Array
) -> tuple[Array, Array]:
    """Posterior of a + s·popularity + t·public + δ by one linear system in all unknowns."""
    n, k = public.shape
    trend = np.column_stack([np.ones(n), popularity, public])
    design = np.concatenate([weight[:, None] * trend, np.diag(weight)], axis=1)
    prior = np.diag(np.concatenate([[1.0, 1 / 0.5**2], np.full(k, 1 / 0.1**2), np.full(n, 1 / 0.4**2)]))
    precise = design.T / variance
    found = np.linalg.solve(precise @ design + prior, precise @ sums)
    mean = trend @ found[: 2 + k] + found[2 + k :]
    return np.clip(centre + mean, 1, 5), 1 / (weight**2 / variance + 1 / 0.4**2)


def measured_by_numpy(
    train: Ratings, neighbours: str, clip: float, public: Array, ridge: float
) -> tuple[Array, Array, Array, Array]:
    """base, its variances, weights and popularity, without noise."""
    counts = np.bincount(train.items, minlength=train.n_items).astype(float)
    rated = np.bincount(train.users, minlength=train.n_users)[train.users]
    weight = np.bincount(train.items, rated**-0.5, train.n_items)
    if neighbours != "user":
        popularity = np.clip(standardised(np.log(counts + 30), counts), -2, 2)
        sums = np.bincount(train.items, train.values - 3.0, train.n_items)
        base, spread = averages(sums, counts, popularity, 1.5 * counts, np.full(train.n_items, 3.0), public)
        if neighbours == "unbounded":
            weight = counts * np.sum(np.sqrt(np.bincount(train.users))) / counts.sum()
        return base, spread, weight, popularity
    popularity = np.clip(standardised(np.log(weight + 1), weight), -2, 2)
    guess = 3.6 + 0.25 * popularity
    off = train.values - guess[train.items]
    means = np.bincount(train.users, off, train.n_users) / np.bincount(train.users)
    guess = guess + np.mean(np.clip(means, -1, 1))
    constant = np.column_stack([np.full(train.n_items, 1 / math.sqrt(10)), public / math.sqrt(ridge)])
    own = regressions(train, guess, constant)
    sums, kept = clipped_sums(train, guess, constant, own, np.ones((train.n_users, 1)), clip)
    seen = weight * kept.mean()
    base, spread = averages(sums[:, 0], seen, popularity, 0.1 * seen, guess, public)
    return base, spread, weight, popularity


def fitted_by_numpy(
    train: Ratings, neighbours: str, clip: float, rounds: int, public: Array, ridge: float
) -> Array:
    """(n_users, n_items) predictions, with two learned features, without noise."""
    base, spread, weight, popularity = measured_by_numpy(train, neighbours, clip, public, ridge)
    quality = standardised(base, weight)
    quality = standardised(quality - popularity * np.average(quality * popularity, weights=weight), weight)
    fixed = np.stack([np.ones_like(base), popularity, quality], axis=1) / np.sqrt([10.0, 40.0, 60.0])
    fixed = np.column_stack([fixed, public / math.sqrt(ridge)])
    learned = np.zeros((train.n_items, 2))
    known = 0.75 * weight
    for t in range(rounds):
        features = np.concatenate([fixed, learned], axis=1)
        own = regressions(train, base, features)
        z = own[:, fixed.shape[1] :] if t else own[:, 1:3]
        z = z * np.minimum(1, 2 / np.maximum(np.linalg.norm(z, axis=1), 1e-300))[:, None]
        values, vectors = np.linalg.eigh(z.T @ z / train.n_users)
        turn = vectors / np.sqrt(np.maximum(values, 0.02))
        along = np.concatenate([np.ones((train.n_users, 1)), z @ turn], axis=1)
        sums, _ = clipped_sums(train, base, features, own, along, clip * math.sqrt(3))
        variance = 0.06 * known
        before = spread + 0.02**2
        spread = 1 / (1 / before + known**2 / variance)
        base = base + spread * known / variance * sums[:, 0]
        seen = sums[:, 1:] + known[:, None] * (learned @ np.linalg.inv(turn).T)
        each = list(zip(known, variance, seen, strict=True))
        moments = sum(k / v * (np.outer(b, b) - v * np.eye(2)) for k, v, b in each)
        spreads, directions = np.linalg.eigh(moments / np.sum(known**3 / variance))
        prior = directions @ np.diag(np.maximum(spreads, 0)) @ directions.T
        posterior = [prior @ np.linalg.inv(k**2 * prior + v * np.eye(2)) @ (k * b) for k, v, b in each]
        learned = np.array(posterior) / math.sqrt(2.0)
    features = np.concatenate([fixed, learned], axis=1)
    return np.asarray(base + regressions(train, base, features) @ features.T)


@pytest.mark.parametrize("neighbours", ["user", "unbounded", "bounded"])
@pytest.mark.parametrize(
    ("clip", "rounds", "ridge"), [(0.6, 1, None), (0.2, 3, 30.0), (50.0, 2, None), (50.0, 2, 5.0)]
)
def test_without_noise_it_is_what_numpy_makes_of_its_listing(
    neighbours: str, clip: float, rounds: int, ridge: float | None
) -> None:
    """The features of the made-up items are 0, 1, 0, …, so that they are ±1 once they are standardised; a rare one
    has a deviation below 0.3."""
    made = make_ratings(5, n_users=50, n_items=12, density=0.5)
    rare = np.arange(12.0) == 3
    train = replace(made, item_columns={**made.item_columns, "rare": rare.astype(float)})
    public = np.column_stack([np.tile([-1.0, 1.0], 6), (rare - 1 / 12) / 0.3])[:, : 2 if ridge else 0]
    algorithm = entry(neighbours=neighbours, clip=clip, iterations=rounds, factors=2, item_features=ridge)
    found = predict_all(fit(algorithm, train, [math.inf])[0], train).reshape(50, 12)
    expected = fitted_by_numpy(train, neighbours, clip, rounds, public, ridge or 1)
    assert found == pytest.approx(expected, abs=2e-3)


def test_public_features_that_a_data_set_does_not_have_are_missed_by_name() -> None:
    without = replace(make_ratings(5, n_users=6, n_items=4), item_columns={})
    with pytest.raises(DpmfError, match="no public features of its items; write `dataset"):
        fit(entry(item_features=30), without, [1.0])


def test_counts_are_posterior_means() -> None:
    """Against a sum over a fine grid of all counts. Without noise they are the counts."""
    noisy, deviation = np.array([[-30.0], [2.0], [15.0], [400.0]]), 9.0
    grid = np.linspace(0, 600, 600_001)
    means, logarithms = counts_of(noisy, np.array([deviation]), 1.0)
    for value, mean, logarithm in zip(noisy[:, 0], means[:, 0], logarithms[:, 0], strict=True):
        chances = np.exp(-(((grid - value) / deviation) ** 2) / 2)
        chances *= (grid + noisy.mean()) ** -3.0
        assert mean == pytest.approx(np.average(grid, weights=chances), rel=0.03)
        assert logarithm == pytest.approx(np.average(np.log(grid + 2.7), weights=chances), abs=0.02)
    exact = np.array([[0.0], [3.0], [70.0]])
    for nearly in (0.0, 1e-6):
        means, logarithms = counts_of(exact, np.array([nearly]), 2.0)
        assert means == pytest.approx(exact, abs=1e-5)
        assert logarithms == pytest.approx(np.log(exact + 2), abs=1e-5)


def test_popularity_is_standardised_over_ratings_and_never_far() -> None:
    counts = np.array([[1.0], [50.0], [60.0], [70.0]])
    popularity = popularity_of(np.log(counts), counts)
    assert popularity[0, 0] == -2
    assert np.abs(popularity).max() <= 2
    assert popularity_of(np.zeros((3, 1)), np.zeros((3, 1))) == pytest.approx(0)


def test_a_direction_that_noise_drowns_is_left_at_0() -> None:
    rng = np.random.default_rng(1)
    weight, variance = np.full(4000, 5.0), np.full(4000, 1.0)
    true = np.stack([rng.normal(0, 0.5, 4000), np.zeros(4000)], axis=1)
    found = estimated(true * weight[:, None] + rng.normal(size=true.shape), weight, variance)
    squares = np.sort(np.mean(found**2, axis=0))
    assert squares[0] < 1e-3
    assert squares[1] == pytest.approx(0.25, rel=0.2)
    assert estimated(np.zeros((5, 2)), np.zeros(5), np.zeros(5)) == pytest.approx(0)


@pytest.mark.parametrize("neighbours", ["user", "unbounded", "bounded"])
def test_features_are_learned_where_noise_allows_and_cost_nearly_nothing_where_not(neighbours: str) -> None:
    algorithm, train = entry(neighbours=neighbours), make_ratings(5)
    strength = algorithm.strength(train, np.array([1e-3, 1.0, 1e3, math.inf]))
    assert np.all(np.diff(strength) > 0)
    most = 0.8 if neighbours == "user" else 0.95
    assert algorithm.share(strength)[[0, -1]] == pytest.approx([learned_features.NOTHING, most])
    assert algorithm.ranks(strength)[[0, -1]].tolist() == [0, 6]
    model, _ = fit(algorithm, train, [1e-4, 1e4])
    learned = model.published["factors"][:, 3:-1]
    assert not learned[..., 0].any()
    assert learned[..., 1].any()


@pytest.mark.parametrize(
    ("neighbours", "factors", "delta"), [("user", 0, 1e-6), ("unbounded", 0, 0.0), ("bounded", 2, 1e-6)]
)
def test_where_a_delta_is_spent(neighbours: str, factors: int, delta: float) -> None:
    algorithm = entry(neighbours=neighbours, factors=factors)
    assert algorithm.spends_delta == delta
    _, ledger = fit(algorithm, make_ratings(5), [1.0])
    assert any(step.mu is not None for step in ledger.entries) == (delta > 0)

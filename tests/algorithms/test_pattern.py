"""Methods on a public pattern: features, estimates from noisy sums, the split of ε, complete fits against NumPy."""

import itertools
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.beyond.patterns import (
    QUANTA,
    RIDGE,
    Law,
    Pattern,
    Predicted,
    averages_of,
    coefficients_of,
    halves_of,
    noise_variance,
    of_averages,
    of_coefficients,
    shares_of,
)
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.averages import sums_and_counts
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.noise import unit_k_norm
from dpmf_cli.testing import fit, make_ratings, predict_all

RATINGS = make_ratings(4, n_users=90, n_items=75)
USERS, ITEMS, VALUES = RATINGS.users, RATINGS.items, RATINGS.values.astype(float)
LAW = Law(of_rows=0.3, of_ratings=0.9)
Array = np.ndarray


def entry(key: str, **parameters: Any) -> Any:
    neighbours = "unbounded" if key == "shrunk_averages" else "bounded"
    return PRIVATE[key].model_validate({"algorithm": key, "neighbours": neighbours, **parameters})


def unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("k", [3, 40])
def test_features_are_leading_singular_vectors_with_rows_of_norm_1(k: int) -> None:
    """With few features by Lanczos, with many from the full matrix."""
    found, rated = Pattern.of(RATINGS, k), np.zeros((RATINGS.n_users, RATINGS.n_items))
    rated[USERS, ITEMS] = 1
    scaled = rated / np.sqrt(rated.sum(axis=1, keepdims=True)) / np.sqrt(rated.sum(axis=0))
    left, singular, right = np.linalg.svd(scaled)
    for features, vectors in ((found.users, left[:, :k]), (found.items, right[:k].T)):
        rows = unit(vectors * singular[:k])
        # Signs of singular vectors are arbitrary; products of rows are not.
        assert features @ features.T == pytest.approx(rows @ rows.T, abs=1e-6)
        assert np.linalg.norm(features, axis=1) == pytest.approx(1)
    signs = np.sign(found.users[0] * unit(left[:, :k] * singular[:k])[0])
    assert found.items * signs == pytest.approx(unit(right[:k].T * singular[:k]), abs=1e-6)


def test_a_row_without_ratings_has_no_features_and_no_covariate_but_1() -> None:
    known = RATINGS.select((RATINGS.users != 7) & (RATINGS.items != 5))
    pattern = Pattern.of(known, 4)
    assert not pattern.users[7].any()
    assert not pattern.items[5].any()
    assert pattern.covariates("items", known.item_counts, 2)[5].tolist() == [1, 0, 0, 0]
    assert np.isfinite(Pattern.of(RATINGS.select(RATINGS.users < 0), 4).items).all()


def test_coefficients_are_the_best_linear_guess() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(0, 1, (2, 6, 3))
    grams, sums = np.einsum("rni,rnj->rij", features, features), rng.normal(0, 3, (2, 3))
    found = coefficients_of(sums, np.linalg.eigh(grams), LAW, 0.7)
    for gram, own, guess in zip(grams, sums, found, strict=True):
        covariance = LAW.of_rows * gram @ gram + LAW.of_ratings * gram + 0.7 * np.eye(3)
        assert guess == pytest.approx(LAW.of_rows * gram @ np.linalg.solve(covariance, own))


def test_averages_are_the_best_linear_guess_around_a_regression() -> None:
    """By one system of all rows: s = n·(Z·w + δ) + noise, with w ~ N(0, I/RIDGE) and δ ~ N(0, τ²)."""
    rng = np.random.default_rng(2)
    counts, noise = np.array([0.0, 1, 4, 30, 200]), 5.0
    covariates = np.column_stack([np.ones(5), rng.normal(0, 1, (5, 2))])
    sums = rng.normal(0, 10, 5) * (counts > 0)
    prior = covariates @ covariates.T / RIDGE + LAW.of_rows * np.eye(5)
    rated = counts > 0
    of_sums = np.diag(counts) @ prior @ np.diag(counts) + np.diag(LAW.of_ratings * counts + noise)
    solved = np.linalg.solve(of_sums[np.ix_(rated, rated)], sums[rated])
    expected = (prior @ np.diag(counts))[:, rated] @ solved
    assert averages_of(sums, counts, covariates, LAW, noise) == pytest.approx(expected)


@pytest.mark.parametrize("bound", [0.3, 1.5])
def test_what_a_clamp_holds_back_is_given_back(bound: float) -> None:
    """A small shift of normal residuals moves their clamped mean by the same amount."""
    normal = np.random.default_rng(4).normal(0, np.sqrt(LAW.of_ratings), 500_000)
    clamped = [np.clip(normal + shift, -bound, bound).mean() / bound * LAW.star(bound) for shift in (0, 0.1)]
    assert clamped[1] - clamped[0] == pytest.approx(0.1, rel=0.02)


def test_errors_are_those_of_the_guesses() -> None:
    """Monte Carlo: the error of the estimates of coefficients that have the assumed law."""
    rng = np.random.default_rng(3)
    features = rng.normal(0, 1, (5, 2))
    gram, draws = features.T @ features, 40_000
    spectrum = tuple(np.repeat(each[None], draws, axis=0) for each in np.linalg.eigh(gram))
    true = rng.normal(0, np.sqrt(LAW.of_rows), (draws, 2))
    ratings = true @ features.T + rng.normal(0, np.sqrt(LAW.of_ratings), (draws, 5))
    sums = ratings @ features + rng.normal(0, 2, (draws, 2))
    wrong = (coefficients_of(sums, spectrum, LAW, 4.0) - true) @ features.T  # type: ignore[arg-type]
    expected = of_coefficients(LAW, spectrum[0][0], 5, 4.0)
    assert np.mean(wrong**2) == pytest.approx(expected, rel=0.03)
    rows = of_averages(LAW, np.full(1000, 7), 1, 4.0)
    assert rows == pytest.approx(float(LAW.error(np.array([7.0]), 4.0)[0]), rel=0.01)


def test_shares_are_those_of_the_least_sum_of_errors() -> None:
    """Compared with all splits. One of the errors is not convex."""
    parts: dict[str, Predicted] = {
        "a": lambda epsilons: 1 / (1 + epsilons),
        "b": lambda epsilons: 2 / (1 + epsilons**4),
        "c": lambda epsilons: 0.3 / epsilons,
    }
    for epsilon in (0.1, 1.0, 5.0):
        splits = [
            (a, b, QUANTA - a - b) for a, b in itertools.product(range(1, QUANTA), repeat=2) if a + b < QUANTA
        ]
        errors = [
            sum(part(np.array(q / QUANTA * epsilon)) for part, q in zip(parts.values(), split, strict=True))
            for split in splits
        ]
        shares = shares_of(parts, epsilon)
        assert sum(shares.values()) == pytest.approx(1)
        found = sum(part(np.asarray(shares[name] * epsilon)) for name, part in parts.items())
        assert found == pytest.approx(min(errors))


def believed_averages(rows: Array, left: Array, covariates: Array, law: Law) -> Array:
    """Without noise: `averages_of` the residuals of each row."""
    counts = np.bincount(rows, minlength=len(covariates)).astype(np.float64)
    sums = np.bincount(rows, left, len(covariates)).astype(np.float64)
    return averages_of(sums, counts, covariates, law, 0.0)


def believed_coefficients(rows: Array, n: int, z: Array, left: Array, law: Law) -> Array:
    """(n, k) without noise: τ²·(τ²·G + σ²)⁻¹·s, for s = Σ left·z and G = Σ z·zᵀ over the ratings of each row."""
    sums, grams = np.zeros((n, z.shape[1])), np.zeros((n, z.shape[1], z.shape[1]))
    np.add.at(sums, rows, z * left[:, None])
    np.add.at(grams, rows, z[:, :, None] * z[:, None])
    systems = law.of_rows * grams + law.of_ratings * np.eye(z.shape[1])
    return np.asarray(law.of_rows * np.linalg.solve(systems, sums[..., None])[..., 0])


def left_over(predicted: Array, law: Law, bound: float) -> Array:
    """Clamped residuals, scaled to make up for the clamp."""
    return np.asarray(np.clip(VALUES - predicted, -bound, bound) / bound * law.star(bound))


def item_averages(method: Any, pattern: Pattern) -> Any:
    law = method.laws.item_averages
    left = left_over(np.full(len(VALUES), VALUES.mean()), law, method.clamp)
    covariates = pattern.covariates("items", RATINGS.item_counts, 2)
    return np.clip(VALUES.mean() + believed_averages(ITEMS, left, covariates, law), 1, 5)


def check(method: Any, expected: Array) -> None:
    """The method without noise predicts the same."""
    found = predict_all(fit(method, RATINGS, [np.inf])[0], RATINGS).reshape(expected.shape)
    assert found == pytest.approx(expected, abs=1e-3)


def test_the_whole_method_without_noise_by_numpy() -> None:
    method, pattern = entry("public_pattern", factors=3, covariates=2), Pattern.of(RATINGS, 3)
    laws, bound, x, y = method.laws, method.clamp, pattern.users, pattern.items
    b = item_averages(method, pattern)
    left = left_over(b[ITEMS], laws.user_averages, bound)
    covariates = pattern.covariates("users", RATINGS.user_counts, 2)
    expected = b + believed_averages(USERS, left, covariates, laws.user_averages)[:, None]
    pairs, everything = np.einsum("na,nb->nab", x[USERS], y[ITEMS]).reshape(-1, 9), np.zeros(len(VALUES), int)
    left = left_over(expected[USERS, ITEMS], laws.core, bound)
    core = believed_coefficients(everything, 1, pairs, left, laws.core).reshape(3, 3)
    expected = expected + x @ core @ y.T
    left = left_over(expected[USERS, ITEMS], laws.item_factors, bound)
    of_items = believed_coefficients(ITEMS, RATINGS.n_items, x[USERS], left, laws.item_factors)
    expected = expected + x @ of_items.T
    left = left_over(expected[USERS, ITEMS], laws.user_factors, bound)
    of_users = believed_coefficients(USERS, RATINGS.n_users, y[ITEMS], left, laws.user_factors)
    check(method, expected + of_users @ y.T)


def test_own_regressions_without_noise_by_numpy() -> None:
    method, whole = entry("own_pattern", factors=3, covariates=2, own_features=4), Pattern.of(RATINGS, 4)
    pattern, law = whole.first(3), method.laws.item_factors
    b = item_averages(method, pattern)
    left = left_over(b[ITEMS], law, method.clamp)
    q = believed_coefficients(ITEMS, RATINGS.n_items, pattern.users[USERS], left, law)
    rows = np.hstack([np.full((RATINGS.n_items, 1), method.own_average), whole.items, q])
    expected = np.empty((RATINGS.n_users, RATINGS.n_items))
    for user in range(RATINGS.n_users):
        own = user == USERS
        z = rows[ITEMS[own]]
        p = np.linalg.solve(z.T @ z + method.own_ridge * np.eye(8), z.T @ (VALUES[own] - b[ITEMS[own]]))
        expected[user] = b + rows @ p
    check(method, expected)


def test_shrunk_averages_without_noise_by_numpy() -> None:
    method = entry("shrunk_averages")

    def covariates(counts: Array) -> Array:
        logarithms = np.log(np.hypot(counts, 1))
        activities = (logarithms - logarithms.mean()) / logarithms.std() * counts / (counts + 1)
        return np.column_stack([np.ones(len(counts)), activities])

    left = left_over(np.full(len(VALUES), VALUES.mean()), method.of_items, method.clamp)
    b = VALUES.mean() + believed_averages(ITEMS, left, covariates(RATINGS.item_counts), method.of_items)
    left = left_over(b[ITEMS], method.of_users, method.clamp)
    c = believed_averages(USERS, left, covariates(RATINGS.user_counts), method.of_users)
    check(method, np.clip(b, 1, 5) + c[:, None])


@pytest.mark.parametrize("key", ["public_pattern", "own_pattern", "shrunk_averages"])
def test_little_is_believed_where_noise_is_all_there_is(key: str) -> None:
    """At ε = 10⁻⁴ predictions stay on the scale, whatever the noise. No clamp is needed for that."""
    for run in range(3):
        predicted = predict_all(fit(entry(key), RATINGS, [1e-4], run)[0], RATINGS)
        assert np.abs(predicted - 3).max() < 4


@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_variance_that_is_reckoned_with_is_that_of_the_noise(k: int) -> None:
    drawn = 3 * unit_k_norm((200_000, k), np.random.default_rng(k))
    assert drawn.var() == pytest.approx(float(noise_variance(np.array([3.0]), k)[0]), rel=0.02)


def test_sums_and_counts_have_noise_of_the_variance_that_is_told() -> None:
    sums, counts, epsilons = np.full((100_000, 2), 0.5), np.ones(100_000, np.int64), np.array([0.5, 2.0])
    streams = Streams(1, "data", "shrunk_averages", 0, 0)
    curator = Curator(Ledger(epsilons), streams)
    *found, deviation = sums_and_counts("sums", halves_of(sums, counts), epsilons, curator)
    for noisy, mean in zip(found, (0.5, 1), strict=True):
        assert noisy.mean(axis=0) == pytest.approx(mean, abs=0.05)
        assert noisy.var(axis=0) == pytest.approx(deviation**2, rel=0.03)
    assert np.corrcoef(found[0][:, 0], found[1][:, 0])[0, 1] == pytest.approx(0, abs=0.02)

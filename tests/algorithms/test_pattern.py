"""Methods on a public pattern: features, estimates from noisy sums, the split of ε, complete fits against NumPy."""

import itertools
from dataclasses import replace
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
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.noise import unit_k_norm
from dpmf_cli.testing import fit, predict_all
from tests.conftest import make_ratings

RATINGS = make_ratings(4, n_users=90, n_items=75)
LAW = Law(of_rows=0.3, of_ratings=0.9)


def entry(key: str, **parameters: Any) -> Any:
    neighbours = "unbounded" if key == "shrunk_averages" else "bounded"
    return PRIVATE[key].model_validate({"algorithm": key, "neighbours": neighbours, **parameters})


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def dense(ratings: Ratings) -> np.ndarray:
    rated = np.zeros((ratings.n_users, ratings.n_items))
    rated[ratings.users, ratings.items] = 1
    return rated


@pytest.mark.parametrize("k", [3, 40])
def test_features_are_leading_singular_vectors_with_rows_of_norm_1(k: int) -> None:
    """With few features by Lanczos, with many from the full matrix."""
    found, rated = Pattern.of(RATINGS, k), dense(RATINGS)
    scaled = rated / np.sqrt(rated.sum(axis=1, keepdims=True)) / np.sqrt(rated.sum(axis=0))
    left, singular, right = np.linalg.svd(scaled)
    for features, vectors in ((found.users, left[:, :k]), (found.items, right[:k].T)):
        rows = unit(vectors * singular[:k])
        # Signs of singular vectors are arbitrary; products of rows are not.
        assert features @ features.T == pytest.approx(rows @ rows.T, abs=1e-6)
        assert np.linalg.norm(features, axis=1) == pytest.approx(1)
    signs = np.sign(found.users[0] * unit(left[:, :k] * singular[:k])[0])
    assert found.items * signs == pytest.approx(unit(right[:k].T * singular[:k]), abs=1e-6)


def test_features_and_shares_do_not_depend_on_values() -> None:
    turned = replace(RATINGS, values=(6 - RATINGS.values).astype(np.float32))
    one, other = (Pattern.of(ratings, 5) for ratings in (RATINGS, turned))
    assert one.users.tobytes() == other.users.tobytes()
    assert one.items.tobytes() == other.items.tobytes()
    spent = [
        [step.claimed.tolist() for step in fit(entry("public_pattern"), ratings, [0.3, 3.0])[1].entries]
        for ratings in (RATINGS, turned)
    ]
    assert spent[0] == spent[1]


def test_a_row_without_ratings_has_no_features_and_no_covariate_but_1() -> None:
    known = RATINGS.select((RATINGS.users != 7) & (RATINGS.items != 5))
    pattern = Pattern.of(known, 4)
    assert not pattern.users[7].any()
    assert not pattern.items[5].any()
    assert pattern.covariates("items", known.item_counts, 2)[5].tolist() == [1, 0, 0, 0]
    assert np.isfinite(Pattern.of(RATINGS.select(RATINGS.users < 0), 4).items).all()


def test_gram_matrices_are_those_of_what_each_row_has() -> None:
    pattern, rated = Pattern.of(RATINGS, 3), dense(RATINGS)
    x, y = pattern.users, pattern.items
    pairs = np.einsum("ua,ib->uiab", x, y)[rated > 0].reshape(-1, 9)
    for spectrum, grams in (
        (pattern.of_users, np.einsum("ui,ia,ib->uab", rated, y, y)),
        (pattern.of_items, np.einsum("ui,ua,ub->iab", rated, x, x)),
        (pattern.of_pairs, (pairs.T @ pairs)[None]),
    ):
        values, vectors = spectrum
        assert np.einsum("rij,rj,rkj->rik", vectors, values, vectors) == pytest.approx(grams, abs=1e-9)


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
    expected = of_coefficients(LAW, spectrum[0][0], 5)(4.0)
    assert np.mean(wrong**2) == pytest.approx(expected, rel=0.03)
    rows = of_averages(LAW, np.full(1000, 7), 1)(4.0)
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


def believed(sums: np.ndarray, grams: np.ndarray, law: Law) -> np.ndarray:
    """Without noise: τ²·(τ²·G + σ²)⁻¹·s."""
    k = grams.shape[-1]
    systems = law.of_rows * grams + law.of_ratings * np.eye(k)
    return np.asarray(law.of_rows * np.linalg.solve(systems, sums[..., None])[..., 0])


def left_over(values: np.ndarray, predicted: np.ndarray, law: Law, bound: float) -> np.ndarray:
    """Clamped residuals, scaled to make up for the clamp."""
    return np.asarray(np.clip(values - predicted, -bound, bound) / bound * law.star(bound))


def averages_by_numpy(rows: np.ndarray, left: np.ndarray, covariates: np.ndarray, law: Law) -> np.ndarray:
    counts = np.bincount(rows, minlength=len(covariates)).astype(np.float64)
    sums = np.bincount(rows, left, len(covariates)).astype(np.float64)
    return averages_of(sums, counts, covariates, law, 0.0)


def test_the_whole_method_without_noise_by_numpy() -> None:
    method = entry("public_pattern", factors=3, covariates=2)
    users, items, values = RATINGS.users, RATINGS.items, RATINGS.values.astype(float)
    pattern, laws, bound = Pattern.of(RATINGS, 3), method.laws, method.clamp
    x, y, predicted = pattern.users[users], pattern.items[items], np.full(len(values), values.mean())
    left = left_over(values, predicted, laws.item_averages, bound)
    of_items = averages_by_numpy(
        items, left, pattern.covariates("items", RATINGS.item_counts, 2), laws.item_averages
    )
    b = np.clip(values.mean() + of_items, 1, 5)
    left = left_over(values, b[items], laws.user_averages, bound)
    c = averages_by_numpy(
        users, left, pattern.covariates("users", RATINGS.user_counts, 2), laws.user_averages
    )
    predicted = b[items] + c[users]
    pairs = np.einsum("na,nb->nab", x, y).reshape(-1, 9)
    core = believed(
        (pairs.T @ left_over(values, predicted, laws.core, bound))[None], (pairs.T @ pairs)[None], laws.core
    ).reshape(3, 3)
    predicted = predicted + np.einsum("na,ab,nb->n", x, core, y)
    coefficients = {}
    for side, rows, z, law in (
        ("items", items, x, laws.item_factors),
        ("users", users, y, laws.user_factors),
    ):
        n = RATINGS.n_items if side == "items" else RATINGS.n_users
        sums, grams = np.zeros((n, 3)), np.zeros((n, 3, 3))
        np.add.at(sums, rows, z * left_over(values, predicted, law, bound)[:, None])
        np.add.at(grams, rows, z[:, :, None] * z[:, None])
        coefficients[side] = believed(sums, grams, law)
        predicted = predicted + np.einsum("na,na->n", coefficients[side][rows], z)
    expected = (
        b
        + c[:, None]
        + pattern.users @ core @ pattern.items.T
        + pattern.users @ coefficients["items"].T
        + coefficients["users"] @ pattern.items.T
    )
    found = predict_all(fit(method, RATINGS, [np.inf])[0], RATINGS).reshape(expected.shape)
    assert found == pytest.approx(expected, abs=1e-4)


def test_own_regressions_without_noise_by_numpy() -> None:
    method = entry("own_pattern", factors=3, covariates=2, own_features=4)
    users, items, values = RATINGS.users, RATINGS.items, RATINGS.values.astype(float)
    whole, laws = Pattern.of(RATINGS, 4), method.laws
    pattern = whole.first(3)
    left = left_over(values, np.full(len(values), values.mean()), laws.item_averages, method.clamp)
    covariates = pattern.covariates("items", RATINGS.item_counts, 2)
    b = np.clip(values.mean() + averages_by_numpy(items, left, covariates, laws.item_averages), 1, 5)
    left = left_over(values, b[items], laws.item_factors, method.clamp)
    sums, grams = np.zeros((RATINGS.n_items, 3)), np.zeros((RATINGS.n_items, 3, 3))
    x = pattern.users[users]
    np.add.at(sums, items, x * left[:, None])
    np.add.at(grams, items, x[:, :, None] * x[:, None])
    q = believed(sums, grams, laws.item_factors)
    rows = np.hstack([np.full((RATINGS.n_items, 1), method.own_average), whole.items, q])
    expected = np.empty((RATINGS.n_users, RATINGS.n_items))
    for user in range(RATINGS.n_users):
        own = users == user
        z = rows[items[own]]
        p = np.linalg.solve(z.T @ z + method.own_ridge * np.eye(8), z.T @ (values[own] - b[items[own]]))
        expected[user] = b + rows @ p
    found = predict_all(fit(method, RATINGS, [np.inf])[0], RATINGS).reshape(expected.shape)
    assert found == pytest.approx(expected, abs=1e-3)


def test_shrunk_averages_without_noise_by_numpy() -> None:
    method = entry("shrunk_averages")
    users, items, values = RATINGS.users, RATINGS.items, RATINGS.values.astype(float)

    def covariates(counts: np.ndarray) -> np.ndarray:
        logarithms = np.log(np.hypot(counts, 1))
        activities = (logarithms - logarithms.mean()) / logarithms.std() * counts / (counts + 1)
        return np.column_stack([np.ones(len(counts)), activities])

    left = left_over(values, np.full(len(values), values.mean()), method.of_items, method.clamp)
    b = values.mean() + averages_by_numpy(items, left, covariates(RATINGS.item_counts), method.of_items)
    left = left_over(values, b[items], method.of_users, method.clamp)
    c = averages_by_numpy(users, left, covariates(RATINGS.user_counts), method.of_users)
    found = predict_all(fit(method, RATINGS, [np.inf])[0], RATINGS).reshape(len(c), len(b))
    assert found == pytest.approx(np.clip(b, 1, 5) + c[:, None], abs=1e-4)


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
    found = sums_and_counts("sums", halves_of(sums, counts), epsilons, Curator(Ledger(epsilons), streams))
    assert found.sums.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.05)
    assert found.counts.mean(axis=0) == pytest.approx([1, 1], abs=0.05)
    for noisy in (found.sums, found.counts):
        assert noisy.var(axis=0) == pytest.approx(found.deviation**2, rel=0.03)
    assert np.corrcoef(found.sums[:, 0], found.counts[:, 0])[0, 1] == pytest.approx(0, abs=0.02)

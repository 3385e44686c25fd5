"""Item neighbourhoods without noise: how they are chosen, predictions against direct formulas, what is learned."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.algorithms.shared.neighbourhood import all_others, largest, most_co_rated
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.folds import assign_folds, split
from tests.algorithms.similarity_models import RATINGS, SCALE, Array, baseline, error_on, fit, predictions


def dense(train: Ratings) -> Array:
    """(n_users, n_items), NaN where there is no rating."""
    rows = np.full((train.n_users, train.n_items), np.nan)
    rows[train.users, train.items] = train.values
    return rows


def predicted(rows: Array, s: Array, k: int) -> Array:
    """Equation 2 with the k largest similarities s (n_items, n_items) of each item."""
    means, found = np.nanmean(rows, axis=0), np.empty_like(rows)
    for user, item in np.ndindex(*rows.shape):
        others = sorted((j for j in range(len(s)) if j != item), key=lambda j: -s[item, j])[:k]
        of = [j for j in others if np.isfinite(rows[user, j])]
        norm = np.abs(s[item, of]).sum()
        own = rows[user, of] - means[of]
        found[user, item] = means[item] + (s[item, of] @ own / norm if norm > 0 else 0.0)
    return found


def test_neighbours_are_those_with_the_most_common_raters() -> None:
    known = np.isfinite(dense(RATINGS)).astype(int)
    counts = known.T @ known
    found = most_co_rated(RATINGS, 4)
    assert found.shape == (12, 4)
    for item, row in enumerate(found):
        ranked = sorted((j for j in range(12) if j != item), key=lambda j: (-counts[item, j], j))
        assert row.tolist() == sorted(ranked[:4])
    assert np.array_equal(most_co_rated(RATINGS, 500), all_others(12))


def test_every_other_item_is_every_other_item() -> None:
    assert all_others(3).tolist() == [[1, 2], [0, 2], [0, 1]]
    assert all_others(3).dtype == np.int32
    assert all_others(1).shape == (1, 0)


def test_among_equals_the_lower_item_is_nearer() -> None:
    scores = np.array([[9.0, 1, 1, 3, 1], [2.0, 9, -1, -1, -1]])
    assert largest(scores, slice(0, 2), 3).tolist() == [[1, 2, 3], [0, 2, 3]]


def test_ratings_are_removed_at_random_from_users_with_too_many() -> None:
    """4 of 12 ratings stay: each in a third of 4,000 draws, and each pair in 1/11 of them."""
    users = np.repeat(np.arange(3, dtype=np.int32), [12, 3, 5])
    items = np.concatenate([np.arange(12), np.arange(3), np.arange(5)]).astype(np.int32)
    train = Ratings(users, items, np.arange(20, dtype=np.float32) % 5 + 1, 3, 12, SCALE)
    rng, draws = np.random.default_rng(0), 4000
    kept = np.zeros((draws, 17))
    for draw in range(draws):
        some = at_most(train, 4, rng.random(len(train)))
        assert some.user_counts.tolist() == [4, 3, 4]
        kept[draw, some.items[some.users == 0]] = 1
        kept[draw, 12 + some.items[some.users == 2]] = 1
    together = kept.T @ kept / draws
    shares = np.where(np.arange(17) < 12, 1 / 3, 4 / 5)
    expected = np.outer(shares, shares)  # users are independent of each other
    expected[:12, :12], expected[12:, 12:] = 1 / 11, 3 / 5
    np.fill_diagonal(expected, shares)
    error = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(together - expected) < 5 * error).all()
    assert (5 * error[:12, :12] < 0.3 * expected[:12, :12]).all()
    assert np.array_equal(at_most(train, 12, rng.random(len(train))).values, train.values)


@pytest.mark.parametrize("k", [3, 100])
def test_pcc_is_its_formula(k: int) -> None:
    rows = dense(RATINGS)
    centred = rows - np.nanmean(rows, axis=0)
    assert predictions(baseline("pcc", k=k), RATINGS) == pytest.approx(
        predicted(rows, over_common_raters(centred), k), abs=1e-4
    )


@pytest.mark.parametrize("k", [3, 100])
@pytest.mark.parametrize("over", ["raters", "co_raters"])
def test_cos_is_its_formula(over: str, k: int) -> None:
    rows = dense(RATINGS)
    filled = np.nan_to_num(rows)
    norms = np.sqrt((filled**2).sum(axis=0))
    s = over_common_raters(rows) if over == "co_raters" else filled.T @ filled / np.outer(norms, norms)
    cos = baseline("cos", over=over, k=k)
    assert predictions(cos, RATINGS) == pytest.approx(predicted(rows, s, k), abs=1e-4)


@pytest.mark.parametrize("k", [3, 100])
@pytest.mark.parametrize("key", ["pcc", "cos"])
def test_between_users_it_is_the_formula_of_the_transposed_ratings(key: str, k: int) -> None:
    rows = dense(RATINGS).T
    s = over_common_raters(rows - np.nanmean(rows, axis=0) if key == "pcc" else rows)
    over = {"over": "co_raters"} if key == "cos" else {}
    found = predictions(baseline(key, between="users", k=k, **over), RATINGS)
    assert found == pytest.approx(predicted(rows, s, k).T, abs=1e-4)
    assert found != pytest.approx(predictions(baseline(key, k=k, **over), RATINGS), abs=0.01)


def over_common_raters(values: Array) -> Array:
    s = np.zeros((values.shape[1],) * 2)
    for i, j in np.ndindex(*s.shape):
        x, y = values[np.isfinite(values[:, i]) & np.isfinite(values[:, j])][:, [i, j]].T
        norm = np.sqrt((x**2).sum() * (y**2).sum())
        s[i, j] = (x * y).sum() / norm if norm > 0 else 0.0
    return s


@pytest.mark.parametrize("k", [3, 100])
def test_constant_similarity_is_a_mean_over_the_neighbours(k: int) -> None:
    rows = dense(RATINGS)
    counts = np.isfinite(rows).astype(float).T @ np.isfinite(rows).astype(float)
    means, found = np.nanmean(rows, axis=0), np.empty_like(rows)
    for user, item in np.ndindex(*rows.shape):
        near = sorted((j for j in range(12) if j != item), key=lambda j: (-counts[item, j], j))[:k]
        own = [rows[user, j] - means[j] for j in near if np.isfinite(rows[user, j])]
        found[user, item] = means[item] + (np.mean(own) if own else 0.0)
    constant = baseline("constant_nbm", k=k)
    assert predictions(constant, RATINGS) == pytest.approx(found, abs=1e-5)


def test_pnbm_learns_more_with_every_step() -> None:
    errors = [error_on(baseline("constant_nbm"), RATINGS, RATINGS)]
    for steps in (1, 3, 10):
        algorithm = baseline("pnbm", learning_rate=1, iterations=steps)
        errors.append(error_on(algorithm, RATINGS, RATINGS))
    assert all(after < 0.97 * before for before, after in pairwise(errors))


def test_pnbm_depends_on_the_step_in_units_of_its_start_alone() -> None:
    """r̂ does not depend on the scale of S: only η/s₀² and λ·η matter."""
    one, other = (
        baseline(
            "pnbm", initial_similarity=s0, learning_rate=0.2 * s0**2, regularization=0.1 / s0**2, iterations=4
        )
        for s0 in (1.0, 4.0)
    )
    assert predictions(one, RATINGS) == pytest.approx(predictions(other, RATINGS), abs=1e-5)


def test_clamped_errors_move_pnbm_less_where_they_are_large() -> None:
    """|e| ≤ 0.5 + 3/(t + 1): at most 2 in the first step."""
    far = replace(RATINGS, values=np.where(np.arange(len(RATINGS)) % 2, 1, 5).astype(np.float32))
    free, clamped = (
        fit(baseline("pnbm", iterations=1, regularization=0, clamp_errors=of), far)[0].groups[0].rows() - 1
        for of in (False, True)
    )
    assert np.abs(clamped).sum() < 0.98 * np.abs(free).sum()
    near = replace(RATINGS, values=np.where(np.arange(len(RATINGS)) % 2, 3, 4).astype(np.float32))
    free, clamped = (
        predictions(baseline("pnbm", iterations=1, clamp_errors=of), near) for of in (False, True)
    )
    assert np.array_equal(free, clamped)


def test_pnbm_is_regularized() -> None:
    free, shrunk = (baseline("pnbm", learning_rate=0.5, iterations=1, regularization=of) for of in (0.0, 0.3))
    one, other = (fit(each, RATINGS)[0].groups[0].rows() for each in (free, shrunk))
    assert one - other == pytest.approx(0.5 * 0.3, abs=1e-6)


def test_on_ml_100k_constant_similarities_beat_item_averages_and_pnbm_beats_them(
    real_data: Path, session_cache: Path
) -> None:
    spec = CatalogSpec(name="ml-100k")
    ratings = load(spec, Folders(real_data, session_cache, real_data)).ratings
    train, test = split(ratings, assign_folds(len(ratings), 5, np.random.default_rng(1)), 0)
    averages, constant, pnbm = (
        error_on(baseline(key), train, test) for key in ("ia", "constant_nbm", "pnbm")
    )
    assert constant < averages - 0.06
    assert pnbm < constant - 0.008


def test_neighbours_of_correlations_are_the_most_similar_or_those_with_common_raters() -> None:
    common = most_co_rated(RATINGS, 5)
    for kind, same in (("common_raters", True), ("similarity", False)):
        model, _ = fit(baseline("pcc", k=5, nearest=kind), RATINGS)
        assert np.array_equal(model.groups[0].neighbours, common) == same

"""Item neighbourhoods without noise: how they are chosen, predictions against direct formulas, what is learned."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.algorithms.shared.neighbourhood import all_others, largest, most_co_rated
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.folds import assign_folds
from dpmf_cli.kernels import similarities
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.testing import predict_all
from tests.algorithms.fitted import entry, fitted
from tests.conftest import make_ratings

Array = NDArray[Any]
RATINGS = make_ratings(5, n_users=25, n_items=12, density=0.5)


def streams_of(algorithm: Algorithm) -> Streams:
    return Streams(3, "data", algorithm.algorithm, 0, 0)


def fit(algorithm: Algorithm, train: Ratings, epsilons: Sequence[float] = (1.0,)) -> tuple[Any, Ledger]:
    return fitted(algorithm, train, [*epsilons], streams_of(algorithm))


def predictions(algorithm: Algorithm, train: Ratings) -> Array:
    """(n_users, n_items)"""
    return predict_all(fit(algorithm, train)[0], train)[:, 0].reshape(train.n_users, train.n_items)


def error_on(algorithm: Algorithm, train: Ratings, test: Ratings) -> float:
    found = fit(algorithm, train)[0].predict(test.users, test.items)[:, 0]
    return float(np.sqrt(np.mean((found - test.values) ** 2)))


def dense(train: Ratings) -> Array:
    """(n_users, n_items), NaN where there is no rating."""
    rows = np.full((train.n_users, train.n_items), np.nan)
    rows[train.users, train.items] = train.values
    return rows


def predicted(rows: Array, s: Array, near: Array, k: int) -> Array:
    """Equation 2 with the similarities s (n_items, n_items) of the k items for which `near` is largest."""
    means, found = np.nanmean(rows, axis=0), np.empty_like(rows)
    for user, item in np.ndindex(*rows.shape):
        others = sorted((j for j in range(len(s)) if j != item), key=lambda j: -near[item, j])[:k]
        of = [j for j in others if np.isfinite(rows[user, j])]
        norm = np.abs(s[item, of]).sum()
        own = rows[user, of] - means[of]
        found[user, item] = means[item] + (s[item, of] @ own / norm if norm > 0 else 0.0)
    return found


def over_common_raters(values: Array) -> Array:
    s = np.zeros((values.shape[1],) * 2)
    for i, j in np.ndindex(*s.shape):
        x, y = values[np.isfinite(values[:, i]) & np.isfinite(values[:, j])][:, [i, j]].T
        norm = np.sqrt((x**2).sum() * (y**2).sum())
        s[i, j] = (x * y).sum() / norm if norm > 0 else 0.0
    return s


def cosine(rows: Array) -> Array:
    filled = np.nan_to_num(rows)
    norms = np.sqrt((filled**2).sum(axis=0))
    return np.asarray(filled.T @ filled / np.outer(norms, norms))


SIMILARITIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "pcc": (lambda rows: over_common_raters(rows - np.nanmean(rows, axis=0)), {"key": "pcc"}),
    "cos": (cosine, {"key": "cos"}),
    "cos of common raters": (over_common_raters, {"key": "cos", "over": "co_raters"}),
}


@pytest.mark.parametrize("k", [3, 100])
@pytest.mark.parametrize("between", ["items", "users"])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_a_neighbourhood_is_its_formula(name: str, between: str, k: int) -> None:
    """Between users it is the formula of the transposed ratings."""
    similarity, keys = SIMILARITIES[name]
    rows = dense(RATINGS) if between == "items" else dense(RATINGS).T
    s = similarity(rows)
    wanted = predicted(rows, s, s, k)
    found = predictions(entry(**keys, between=between, k=k), RATINGS)
    assert found == pytest.approx(wanted if between == "items" else wanted.T, abs=1e-4)


@pytest.mark.parametrize("k", [3, 100])
def test_constant_similarity_is_a_mean_over_the_neighbours(k: int) -> None:
    rows = dense(RATINGS)
    counts = np.isfinite(rows).astype(float).T @ np.isfinite(rows).astype(float)
    found = predictions(entry("constant_nbm", k=k), RATINGS)
    assert found == pytest.approx(predicted(rows, np.ones((12, 12)), counts, k), abs=1e-5)


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
    users = np.repeat(np.arange(2, dtype=np.int32), [12, 3])
    items = np.concatenate([np.arange(12), np.arange(3)]).astype(np.int32)
    train = Ratings(users, items, np.arange(15, dtype=np.float32) % 5 + 1, 2, 12, Scale(1, 5, 1))
    rng, draws = np.random.default_rng(0), 4000
    kept = np.zeros((draws, 12))
    for draw in range(draws):
        some = at_most(train, 4, rng.random(len(train)))
        assert some.user_counts.tolist() == [4, 3]
        kept[draw, some.items[some.users == 0]] = 1
    expected = np.full((12, 12), 1 / 11)
    np.fill_diagonal(expected, 1 / 3)
    error = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(kept.T @ kept / draws - expected) < 5 * error).all()


@pytest.mark.parametrize("clamp", [False, True])
def test_steps_of_pnbm_are_on_all_ratings(clamp: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    descend = lambda model, learned, step: steps.append(step)  # noqa: E731
    monkeypatch.setattr(similarities, "descend_similarities", descend)
    model, _ = fit(
        entry("pnbm", iterations=3, initial_similarity=2, regularization=0.3, clamp_errors=clamp), RATINGS
    )
    assert (model.groups[0].rows()[..., 0] == 2).all()
    bounds = [0.5 + 3 / (t + 1) if clamp else np.inf for t in (1, 2, 3)]
    assert [(step.rates.tolist(), step.regularization, step.error_bound) for step in steps] == [
        ([2.0], 0.3, bound) for bound in bounds
    ]
    assert all(step.sampled.all() for step in steps)


def test_on_ml_100k_constant_similarities_beat_item_averages_and_pnbm_beats_them(
    real_data: Path, session_cache: Path
) -> None:
    spec = CatalogSpec(name="ml-100k")
    ratings = load(spec, Folders(real_data, session_cache, real_data)).ratings
    held_out = assign_folds(len(ratings), 5, np.random.default_rng(1)) == 0
    train, test = ratings.select(~held_out), ratings.select(held_out)
    averages, constant, pnbm = (error_on(entry(key), train, test) for key in ("ia", "constant_nbm", "pnbm"))
    assert constant < averages - 0.06
    assert pnbm < constant - 0.008


def test_neighbours_of_correlations_are_the_most_similar_or_those_with_common_raters() -> None:
    common = most_co_rated(RATINGS, 5)
    for kind, same in (("common_raters", True), ("similarity", False)):
        model, _ = fit(entry("pcc", k=5, nearest=kind), RATINGS)
        assert np.array_equal(model.groups[0].neighbours, common) == same

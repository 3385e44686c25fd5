"""Nearest items and interpolation weights, against sorting and dense linear algebra.

Ridge regressions of users, against dense linear algebra.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels import neighbours as subspace
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.kernels.neighbours import ITEMS_AT_ONCE, interpolate, nearest, regress
from tests.conftest import make_ratings
from tests.kernels.test_covariance import packed, unpacked

RATINGS = make_ratings(3, n_users=20, n_items=12)


def one_user(first: int, n_items: int) -> Ratings:
    """A user who rated all items from the `first` on."""
    items = np.arange(first, n_items, dtype=np.int32)
    return Ratings(np.zeros_like(items), items, np.ones(len(items), np.float32), 1, n_items, Scale(1, 5))


def of_user(ratings: Ratings, user: int) -> list[int]:
    return list(range(ratings.user_starts[user], ratings.user_starts[user + 1]))


@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("k", [1, 4, 12])
@pytest.mark.parametrize("n_items", [1, 12, 2 * ITEMS_AT_ONCE + 5])
def test_nearest_are_the_first_of_the_sorted(n_items: int, k: int, levels: int) -> None:
    """With few levels there are ties: the lower item comes first. An item is never its own neighbour. The test
    does not ask for every item, and uses more similarities than are read at once."""
    ratings = make_ratings(3, n_users=20, n_items=n_items)
    rng = np.random.default_rng(k)
    similarity = rng.integers(-levels, levels, triangle_size(n_items)).astype(np.float32)
    dense = unpacked(similarity, n_items)
    users, items = np.divmod(rng.permutation(20 * n_items)[: 16 * n_items], n_items)
    found = nearest(ratings, users.astype(np.int32), items.astype(np.int32), similarity, k)
    for row, user, item in zip(found, users, items, strict=True):
        others = [at for at in of_user(ratings, user) if ratings.items[at] != item]
        expected = sorted(others, key=lambda at: -dense[item, ratings.items[at]])[:k]
        assert row.tolist() == expected + [-1] * (k - len(expected))


@pytest.mark.parametrize("n", [1, 3, 240])
@pytest.mark.parametrize("k", [1, 4])
def test_interpolation_solves_the_ridge_system(k: int, n: int) -> None:
    """Full groups of predictions that are solved side by side, and a group that is not full."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(12, 12))
    dense = root @ root.T / 12
    residuals = rng.normal(size=len(RATINGS))
    users, items = (part.astype(np.int32) for part in np.divmod(np.arange(n), 12))
    found = nearest(RATINGS, users, items, packed(dense), k)
    predictions = interpolate(RATINGS, items, found, residuals, packed(dense), 0.3)
    for x in range(n):
        places = found[x][found[x] >= 0]
        of = RATINGS.items[places]
        weights = np.linalg.solve(dense[np.ix_(of, of)] + 0.3 * np.eye(len(of)), dense[of, items[x]])
        assert predictions[x] == pytest.approx(weights @ residuals[places], abs=1e-5)


def test_a_neighbour_that_adds_nothing_is_left_out() -> None:
    """Items 1 and 2 are duplicates, and item 3 has a negative variance, so only item 1 predicts item 0."""
    dense = np.array([[1, 0.5, 0.5, 0.9], [0.5, 1, 1, 0], [0.5, 1, 1, 0], [0.9, 0, 0, -1]])
    residuals, neighbours = np.array([2.0, 100.0, 1000.0]), np.array([[0, 1, 2, -1]])
    item = np.array([0], np.int32)
    found = interpolate(one_user(1, 4), item, neighbours, residuals, packed(dense), 1e-9)
    assert found == pytest.approx([0.5 * 2.0])


def test_a_prediction_does_not_depend_on_those_beside_it() -> None:
    """Singular systems; in the second group one without neighbours and one with few. Each has the same bits as
    when it is solved alone."""
    rng = np.random.default_rng(6)
    root = rng.normal(size=(12, 3))
    covariance, residuals = packed(root @ root.T), rng.normal(size=len(RATINGS))
    users, items = np.arange(16, dtype=np.int32), np.arange(16, dtype=np.int32) % 12
    found = nearest(RATINGS, users, items, covariance, 5)
    found[11] = -1
    found[13, 2:] = -1
    together = interpolate(RATINGS, items, found, residuals, covariance, 1e-3)
    alone = [interpolate(RATINGS, items[[x]], found[[x]], residuals, covariance, 1e-3)[0] for x in range(16)]
    assert together.tolist() == alone
    assert together[11] == 0
    assert np.count_nonzero(together) == 15


@settings(deadline=None, max_examples=60)
@given(k=st.integers(1, 13), flat=st.booleans(), float32=st.booleans(), seed=st.integers(0, 10**6))
def test_predictions_are_those_of_the_normal_equations(k: int, flat: bool, float32: bool, seed: int) -> None:
    """With pairs in any order, some of them twice, some of the user's own ratings, and a user without ratings."""
    rng = np.random.default_rng(seed)
    ratings = make_ratings(seed % 7, n_users=9, n_items=14)
    ratings = ratings.select(ratings.users != 4)
    vectors: NDArray[np.floating] = rng.normal(size=(14, k))
    vectors = vectors.astype(np.float32) if float32 else vectors
    ridge = np.full(k, 0.3) if flat else rng.uniform(0.1, 3, k)
    residuals = rng.normal(size=len(ratings))
    users, items = np.divmod(rng.integers(9 * 14, size=200), 14)
    found = regress(ratings, users.astype(np.int32), items.astype(np.int32), residuals, vectors, ridge)
    for user in range(9):
        own = slice(ratings.user_starts[user], ratings.user_starts[user + 1])
        rated = vectors[ratings.items[own]].astype(np.float64)
        weights = np.linalg.solve(rated.T @ rated + np.diag(ridge), rated.T @ residuals[own])
        assert found[users == user] == pytest.approx(vectors[items[users == user]] @ weights, abs=1e-9)
    assert (found[users == 4] == 0).all()


def test_a_user_with_more_ratings_than_are_taken_at_once() -> None:
    rng = np.random.default_rng(0)
    n = 2 * subspace.RATINGS_AT_ONCE + 3
    of_all = one_user(0, n)
    vectors, residuals, ridge = rng.normal(size=(n, 5)), rng.normal(size=n), np.full(5, 0.1)
    weights = np.linalg.solve(vectors.T @ vectors + np.diag(ridge), vectors.T @ residuals)
    found = regress(of_all, np.zeros(n, np.int32), of_all.items, residuals, vectors, ridge)
    assert found == pytest.approx(vectors @ weights, abs=1e-9)


def test_without_a_ridge_a_factor_that_adds_nothing_gets_no_weight() -> None:
    """The second vector is the first again, the third is 0: least squares on the first and the fourth."""
    rng = np.random.default_rng(1)
    first, fourth = rng.normal(size=(2, 12))
    vectors = np.stack([first, first, np.zeros(12), fourth], axis=1)
    residuals = rng.normal(size=len(RATINGS))
    users, items = (part.astype(np.int32) for part in np.divmod(np.arange(240), 12))
    found = regress(RATINGS, users, items, residuals, vectors, np.zeros(4))
    expected = regress(RATINGS, users, items, residuals, vectors[:, [0, 3]], np.full(2, 1e-9))
    assert found == pytest.approx(expected, abs=1e-5)
    assert np.abs(found).max() > 0.1

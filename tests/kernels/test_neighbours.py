"""Nearest items against sorting; weights of neighbours and of users where a system is singular or long."""

import numpy as np
import pytest

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

"""Synthetic ratings: their counts, their spread, and the required order of the baselines."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmf_cli.datasets import Folders, load, sizes
from dpmf_cli.datasets.canonical import checksum
from dpmf_cli.datasets.catalog import Counts, TwinShape, entry
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.datasets.synthetic import generate
from dpmf_cli.ratings import Ratings, Scale
from tests.datasets.building import WHOLE_STARS


@pytest.fixture(scope="module")
def movies(session_cache: Path) -> Ratings:
    spec = SyntheticSpec(kind="synthetic", like="ml-100k")
    found = load(spec, Folders(session_cache, session_cache, session_cache))
    assert found.identity.key == "synthetic-ml-100k"
    assert found.identity.title == "synthetic, shaped like MovieLens 100K"
    return found.ratings


def made(
    seed: int = 1, users: int = 50, items: int = 40, n: int = 500, scale: Scale = WHOLE_STARS
) -> Ratings:
    return generate("synthetic-x", Counts(users, items, n, 3.5, 1.2), TwinShape(), scale, seed=seed).ratings


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int]:
    users, items = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    return users, items, draw(st.integers(max(users, items), users * items))


@settings(max_examples=60, deadline=None)
@given(counts(), st.integers(0, 5), st.sampled_from([WHOLE_STARS, Scale(0.5, 5, 0.5), Scale(-10, 10)]))
def test_exact_counts_whatever_is_asked(shape: tuple[int, int, int], seed: int, scale: Scale) -> None:
    users, items, n = shape
    ratings = made(seed, users, items, n, scale)
    keys = ratings.users.astype(np.int64) * items + ratings.items
    assert len(ratings) == n
    assert (np.diff(keys) > 0).all()
    assert ratings.user_counts.min() >= 1
    assert ratings.item_counts.min() >= 1
    assert (len(ratings.user_counts), len(ratings.item_counts)) == (users, items)
    assert ratings.values.min() >= scale.minimum
    assert ratings.values.max() <= scale.maximum
    if scale.step:
        assert not ((ratings.values - scale.minimum) % scale.step).any()


def test_a_seed_makes_the_same_ratings_and_another_others() -> None:
    assert checksum(made(1)) == checksum(made(1))
    assert checksum(made(1)) != checksum(made(2))


def test_the_stream_of_a_seed_does_not_change() -> None:
    # A change here changes every synthetic result ever stored, so raise PARSER_VERSION with it.
    assert checksum(made(1))[:16] == "1413d05eb031c429"


def test_mean_variance_and_long_tails(movies: Ratings) -> None:
    expected = entry("ml-100k").expected
    assert (movies.n_users, movies.n_items, len(movies)) == (943, 1682, 100_000)
    assert movies.values.mean(dtype=np.float64) == pytest.approx(expected.mean, abs=2e-3)
    assert movies.values.var(dtype=np.float64) == pytest.approx(expected.variance, abs=2e-3)
    for ratings_per_one, least in ((movies.user_counts, 20), (movies.item_counts, 1)):
        assert ratings_per_one.min() >= least
        assert np.median(ratings_per_one) < 0.8 * ratings_per_one.mean()
        assert ratings_per_one.max() > 5 * ratings_per_one.mean()
    top = np.sort(movies.item_counts)[::-1]
    assert top[: len(top) // 5].sum() > 0.5 * len(movies)


def averages(
    index: NDArray[Any], values: NDArray[np.float64], n: int, prior: float, damping: float
) -> NDArray[np.float64]:
    counts = np.bincount(index, minlength=n)
    return (np.bincount(index, values, n) + damping * prior) / (counts + damping)


def factors(
    users: NDArray[Any],
    items: NDArray[Any],
    residuals: NDArray[np.float64],
    shape: tuple[int, int],
    rank: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Alternating least squares, the loss weighted by the number of ratings."""
    sides = [np.zeros((n, rank)) for n in shape]
    sides[1] = np.random.default_rng(0).normal(0, 0.1, (shape[1], rank))
    for step in range(16):
        side = step % 2
        own, other = (users, items) if side == 0 else (items, users)
        rows = sides[1 - side][other]
        gram = np.zeros((shape[side], rank, rank))
        right = np.zeros((shape[side], rank))
        np.add.at(gram, own, rows[:, :, None] * rows[:, None, :] + 0.06 * np.eye(rank))
        np.add.at(right, own, rows * residuals[:, None])
        rated = np.bincount(own, minlength=shape[side]) > 0
        sides[side] = np.zeros_like(right)
        sides[side][rated] = np.linalg.solve(gram[rated], right[rated][:, :, None])[:, :, 0]
    return sides[0], sides[1]


def test_baselines_stand_in_the_order_of_real_data(movies: Ratings) -> None:
    """Held-out RMSE near MovieLens 100K's 1.126 (mean), 1.028 (items), 0.957 (effects), 0.920 (factors)."""
    test = np.random.default_rng(0).random(len(movies)) < 0.1
    train = movies.select(~test)
    users, items, values = movies.users[test], movies.items[test], movies.values[test].astype(np.float64)
    mean = float(train.values.mean(dtype=np.float64))
    item = averages(train.items, train.values.astype(np.float64), movies.n_items, mean, 10)
    left = train.values - item[train.items]
    user = averages(train.users, left, movies.n_users, float(left.mean()), 20)
    left -= user[train.users]
    p, q = factors(train.users, train.items, left, (movies.n_users, movies.n_items), 3)
    effects = item[items] + user[users]

    def error(predicted: Any) -> float:
        return float(np.sqrt(np.mean((values - predicted) ** 2)))

    rmse = [error(mean), error(item[items]), error(effects), error(effects + (p[users] * q[items]).sum(1))]
    np.testing.assert_allclose(rmse, [1.126, 1.03, 0.955, 0.92], atol=0.025)
    assert all(better < worse - 0.02 for worse, better in itertools.pairwise(rmse))


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmf_cli.datasets import synthetic

    monkeypatch.setattr(synthetic, "_BLOCK", 100)
    ratings = made(1, 50, 40, 500)
    assert len(ratings) == 500
    assert ratings.item_counts.min() >= 1
    assert (np.diff(ratings.users.astype(np.int64) * 40 + ratings.items) > 0).all()


def test_overrides_and_sizes(cache: Path) -> None:
    spec = SyntheticSpec(kind="synthetic", like="ml-1m", users=40, items=30, ratings=400)
    found = load(spec, Folders(cache, cache, cache))
    assert found.identity.title == "synthetic, shaped like MovieLens 1M (400 ratings of 30 items by 40 users)"
    assert found.user_ids.tolist() == list(range(1, 41))
    size = sizes(spec, Folders(cache, cache, cache))
    assert (size.users, size.items, size.ratings, size.basis) == (40, 30, 400, "expected")


def test_a_million_ratings_of_netflix_shape() -> None:
    like = entry("netflix")
    target = Counts(20_000, 17_770, 1_000_000, like.expected.mean, like.expected.variance)
    ratings = generate("synthetic-netflix", target, like.shape, like.scale, seed=1).ratings
    assert len(ratings) == 1_000_000
    assert ratings.item_counts.min() >= 1
    assert ratings.values.mean(dtype=np.float64) == pytest.approx(target.mean, abs=2e-3)

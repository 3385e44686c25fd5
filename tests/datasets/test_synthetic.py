"""Synthetic ratings have the shape that is asked for, and samples of real ones are random and repeatable."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.datasets import Dataset, Folders, Sizes, load, sizes, synthetic
from dpmf_cli.datasets.canonical import checksum
from dpmf_cli.datasets.catalog import Counts, SyntheticShape, entry
from dpmf_cli.datasets.spec import CatalogSpec, SampleSpec, SyntheticSpec
from dpmf_cli.datasets.synthetic import generate
from dpmf_cli.evaluation.metrics import errors_of
from dpmf_cli.testing import fit
from tests.algorithms.fitted import entry as baseline
from tests.datasets.building import WHOLE_STARS, with_another_value

MOVIES = SyntheticSpec(kind="synthetic", like="ml-100k")


@pytest.fixture(scope="module")
def movies(session_cache: Path) -> Ratings:
    found = load(MOVIES, Folders(session_cache, session_cache, session_cache))
    assert found.identity.key == "synthetic-ml-100k"
    assert found.identity.title == "synthetic, shaped like MovieLens 100K"
    return found.ratings


def made(
    seed: int = 1, users: int = 50, items: int = 40, n: int = 500, scale: Scale = WHOLE_STARS
) -> Ratings:
    """Ratings with exactly these counts, whatever is asked."""
    shape = Counts(users, items, n, 3.5, 1.2)
    ratings = generate("synthetic-x", shape, SyntheticShape(), scale, seed=seed).ratings
    keys = ratings.users.astype(np.int64) * items + ratings.items
    assert (len(ratings), ratings.n_users, ratings.n_items) == (n, users, items)
    assert (np.diff(keys) > 0).all()
    assert min(ratings.user_counts.min(), ratings.item_counts.min()) >= 1
    assert scale.minimum <= ratings.values.min() <= ratings.values.max() <= scale.maximum
    if scale.step:
        assert not ((ratings.values - scale.minimum) % scale.step).any()
    return ratings


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int]:
    users, items = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    return users, items, draw(st.integers(max(users, items), users * items))


@settings(max_examples=60)
@given(counts(), st.integers(0, 5), st.sampled_from([WHOLE_STARS, Scale(0.5, 5, 0.5), Scale(-10, 10)]))
def test_exact_counts_whatever_is_asked(shape: tuple[int, int, int], seed: int, scale: Scale) -> None:
    made(seed, *shape, scale)


def test_a_seed_makes_the_same_ratings_and_another_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # A change here changes every synthetic result ever stored, so raise PARSER_VERSION with it.
    assert checksum(made(1))[:16] == "1413d05eb031c429"
    assert checksum(made(1)) != checksum(made(2))
    monkeypatch.setattr(synthetic, "_BLOCK", 100)  # blocks do not show
    made(1)


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


def test_baselines_stand_in_the_order_of_real_data(movies: Ratings) -> None:
    """Held-out RMSE near MovieLens 100K's 1.126 (mean), 1.028 (items), 0.957 (effects), 0.920 (factors)."""
    held_out = np.random.default_rng(0).random(len(movies)) < 0.1
    train, test = movies.select(~held_out), movies.select(held_out)
    models = (fit(baseline(key), train, [])[0] for key in ("ga", "ia", "ge", "als"))
    rmse = [errors_of(each.predict(test.users, test.items), test.values)["rmse"][0] for each in models]
    np.testing.assert_allclose(rmse, [1.126, 1.03, 0.955, 0.92], atol=0.025)
    assert all(better < worse - 0.02 for worse, better in itertools.pairwise(rmse))


def test_overrides_and_sizes(cache: Path) -> None:
    spec = SyntheticSpec(kind="synthetic", like="ml-1m", users=40, items=30, ratings=400)
    found = load(spec, Folders(cache, cache, cache))
    assert found.identity.title == "synthetic, shaped like MovieLens 1M (400 ratings of 30 items by 40 users)"
    assert found.user_ids.tolist() == list(range(1, 41))
    assert sizes(spec, Folders(cache, cache, cache)) == Sizes(40, 30, 400, "expected")


def pairs(dataset: Dataset) -> dict[tuple[int, int], tuple[float, int]]:
    """(rating, time) by the ids of the source."""
    ratings = dataset.ratings
    users, items = dataset.user_ids[ratings.users].tolist(), dataset.item_ids[ratings.items].tolist()
    content = zip(ratings.values.tolist(), ratings.columns["timestamp"].tolist(), strict=True)
    return dict(zip(zip(users, items, strict=True), content, strict=True))


@pytest.fixture(scope="module")
def read(real_data: Path, session_cache: Path) -> Any:
    def open_sample(**sample: int) -> Dataset:
        spec = CatalogSpec(name="ml-100k", sample=SampleSpec(**sample) if sample else None)
        return load(spec, Folders(real_data, session_cache, real_data))

    return open_sample


def test_sampled_users_have_all_their_ratings_and_no_others(read: Any) -> None:
    whole, sample = read(), read(users=200, seed=1)
    assert (sample.ratings.n_users, sample.identity.key) == (200, "ml-100k-sample-200-seed1")
    assert sample.identity.checksum != whole.identity.checksum
    assert sample.identity.checksum == checksum(sample.ratings)
    assert sample.identity == read(users=200).identity
    assert sample.identity.checksum != read(users=200, seed=2).identity.checksum
    assert sample.identity.title == "MovieLens 100K, random sample of 200 users (seed 1)"
    chosen = set(sample.user_ids.tolist())
    assert pairs(sample) == {pair: rest for pair, rest in pairs(whole).items() if pair[0] in chosen}
    assert (sample.ratings.item_counts > 0).all()
    assert len(sample.item_ids) == sample.ratings.n_items < whole.ratings.n_items
    # The sampled users are neither the first ones nor those with the most ratings.
    assert 350 < np.mean(sample.user_ids) < 600
    assert 70 < len(sample.ratings) / 200 < 150


def test_samples_of_one_seed_do_not_overlap_where_one_skips_the_other(read: Any) -> None:
    whole, first, second = read(), read(users=443), read(users=500, skip=443)
    assert second.identity.key == "ml-100k-sample-500-skip443-seed1"
    assert second.identity.title == "MovieLens 100K, random sample of 500 users past the first 443 (seed 1)"
    assert "skip" not in SampleSpec(users=443).model_dump()  # so that older results are found
    users = [set(each.user_ids.tolist()) for each in (first, second, whole)]
    assert not users[0] & users[1]
    assert users[0] | users[1] == users[2]


def test_of_the_ratings_of_these_users_so_many(read: Any) -> None:
    users, fewer = read(users=200), read(users=200, ratings=5000)
    assert (len(fewer.ratings), fewer.identity.key) == (5000, "ml-100k-sample-200-5000r-seed1")
    assert pairs(fewer).items() < pairs(users).items()
    assert 150 < fewer.ratings.n_users <= 200
    assert (fewer.ratings.user_counts > 0).all()
    with pytest.raises(
        DpmfError, match=r"the 20 users of this sample have [\d,]+ ratings, not 90,000; ask for"
    ):
        read(users=20, ratings=90_000)


def test_a_plan_knows_about_how_large_it_will_be(real_data: Path, tmp_path: Path) -> None:
    spec = CatalogSpec(name="netflix", sample=SampleSpec(users=7128, seed=1))
    size = sizes(spec, Folders(tmp_path, tmp_path, tmp_path))
    assert (size.users, size.basis) == (7128, "expected")
    assert size.ratings == pytest.approx(1.5e6, rel=0.02)
    small = CatalogSpec(name="ml-100k", sample=SampleSpec(users=200))
    assert sizes(small, Folders(real_data, tmp_path, tmp_path)).basis == "expected"
    load(small, Folders(real_data, tmp_path, tmp_path))
    assert sizes(small, Folders(real_data, tmp_path, tmp_path)).basis == "counted"


def test_a_sample_is_not_drawn_from_a_damaged_whole(real_data: Path, tmp_path: Path, read: Any) -> None:
    whole = CatalogSpec(name="ml-100k")
    checksum_of_whole = load(whole, Folders(real_data, tmp_path, real_data)).identity.checksum
    place = tmp_path / "ratings" / f"{checksum_of_whole}.dpmf"
    altered = with_another_value(place.read_bytes())
    place.unlink()
    place.write_bytes(altered)
    spec = CatalogSpec(name="ml-100k", sample=SampleSpec(users=200, seed=1))
    sample = load(spec, Folders(real_data, tmp_path, real_data))
    assert sample.identity.checksum == read(users=200, seed=1).identity.checksum

"""A data set reduced at random: complete users, the same for the same seed, under its own name and checksum."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.datasets import Dataset, Folders, load, sizes
from dpmf_cli.datasets.canonical import checksum
from dpmf_cli.datasets.spec import CatalogSpec, SampleSpec
from dpmf_cli.errors import DpmfError


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
    assert sample.identity.title == "MovieLens 100K, random sample of 200 users (seed 1)"
    chosen = set(sample.user_ids.tolist())
    assert pairs(sample) == {pair: rest for pair, rest in pairs(whole).items() if pair[0] in chosen}
    assert (sample.ratings.item_counts > 0).all()
    assert len(sample.item_ids) == sample.ratings.n_items < whole.ratings.n_items
    # The sampled users are neither the first ones nor those with the most ratings.
    assert 350 < np.mean(sample.user_ids) < 600
    assert 70 < len(sample.ratings) / 200 < 150


def test_the_same_seed_is_the_same_sample_and_another_is_not(
    read: Any, real_data: Path, tmp_path: Path
) -> None:
    spec = CatalogSpec(name="ml-100k", sample=SampleSpec(users=200, seed=1))
    again = load(spec, Folders(real_data, tmp_path, real_data))
    assert (
        again.identity.checksum
        == read(users=200, seed=1).identity.checksum
        != read(users=200, seed=2).identity.checksum
    )
    assert read(users=200, seed=1).identity.checksum == read(users=200).identity.checksum


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


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"users": 944}, "ml-100k has 943 users, too few for a sample of 944"),
        ({"users": 9, "ratings": 100_001}, "has 100,000 ratings, too few for a sample of 100,001"),
        ({"users": 9, "ratings": 8}, "8 ratings of 9 users"),
        ({"users": 0}, "greater than or equal to 1"),
        ({"user": 9}, 'did you mean "users"'),
        ({"users": 9, "seed": -1}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_is_refused_before_any_file_is_read(sample: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CatalogSpec.model_validate({"name": "ml-100k", "sample": sample})


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
    values = tmp_path / "ratings" / checksum_of_whole / "values.npy"
    altered = np.load(values)[::-1]
    values.unlink()
    np.save(values, altered)
    spec = CatalogSpec(name="ml-100k", sample=SampleSpec(users=200, seed=1))
    sample = load(spec, Folders(real_data, tmp_path, real_data))
    assert sample.identity.checksum == read(users=200, seed=1).identity.checksum

"""The publishers' own files: their counts, means and checksums, and each command run on them."""

import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders, Sizes, catalog, load, located, sizes, soundness
from dpmf_cli.datasets.spec import CatalogSpec, SampleSpec
from tests.datasets.building import tarred

# users, items, ratings, mean as the data folder's README prints them
TABLE = {
    "ml-100k": (943, 1_682, 100_000, 3.52986),
    "ml-1m": (6_040, 3_706, 1_000_209, 3.58156),
    "jester-1": (73_421, 100, 4_136_360, 0.74215),
    "ml-10m-partial": (69_878, 3_326, 698_780, 3.6340),
    "netflix-sample": (4_953, 4_591, 305_725, 3.6034),
}


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=pytest.mark.slow if key == "jester-1" else ()) for key in TABLE]
)
def test_counts_and_mean(key: str, real_data: Path, session_cache: Path) -> None:
    users, items, n, mean = TABLE[key]
    found = load(CatalogSpec(name=key), Folders(real_data, session_cache, real_data))
    counted = soundness.figures(found.ratings)
    assert (counted["users"], counted["items"], counted["ratings"]) == (users, items, n)
    assert counted["mean"] == pytest.approx(mean, abs=5e-5)
    assert bool(found.ratings.columns) == catalog.entry(key).timestamps  # stand-in times are dropped
    assert counted["variance"] == pytest.approx(catalog.entry(key).expected.variance, abs=soundness.TOLERANCE)
    size = sizes(CatalogSpec(name=key), Folders(real_data, session_cache, real_data))
    assert size == Sizes(users, items, n, "counted")


def test_first_lines_of_ml_100k(real_data: Path, session_cache: Path) -> None:
    found = load(CatalogSpec(name="ml-100k"), Folders(real_data, session_cache, real_data))
    user = int(np.searchsorted(found.user_ids, 196))
    rows = np.flatnonzero(found.ratings.users == user)
    row = rows[found.item_ids[found.ratings.items[rows]] == 242][0]
    assert found.ratings.values[row] == 3
    assert found.ratings.columns["timestamp"][row] == 881250949


@pytest.mark.parametrize("key", ["ml-100k", "ml-1m"])
def test_genres_and_years_of_films(key: str, real_data: Path, session_cache: Path) -> None:
    folders = Folders(real_data, session_cache, real_data)
    plain, found = (load(CatalogSpec(name=key, item_features=asked), folders) for asked in (False, True))
    columns, toy_story = found.ratings.item_columns, int(np.searchsorted(found.item_ids, 1))
    has = {name for name, column in columns.items() if column[toy_story] == 1}
    assert has == {"Animation", "Children's", "Comedy"}
    assert columns["year"][toy_story] == 1995
    assert (columns["year"].min(), columns["year"].max()) == (
        (1922, 1998) if key == "ml-100k" else (1919, 2000)
    )
    assert not plain.ratings.item_columns
    assert plain.checksum != found.checksum  # results with them are others than those without
    assert (plain.ratings.values == found.ratings.values).all()
    sample = SampleSpec(users=40)
    few = load(CatalogSpec(name=key, item_features=True, sample=sample), folders)
    years = dict(zip(found.item_ids.tolist(), columns["year"].tolist(), strict=True))
    assert few.ratings.item_columns["year"].tolist() == [years[each] for each in few.item_ids.tolist()]


def test_another_list_of_films_is_refused_and_features_that_nobody_has(
    real_data: Path, tmp_path: Path, session_cache: Path
) -> None:
    (tmp_path / "ml-100k").mkdir()
    with zipfile.ZipFile(real_data / "ml-100k.zip") as whole:
        for name in ("u.data", "u.item"):
            (tmp_path / "ml-100k" / name).write_bytes(whole.read(f"ml-100k/{name}"))
    folders, spec = (
        Folders(tmp_path, session_cache, tmp_path),
        CatalogSpec(name="ml-100k", item_features=True),
    )
    assert load(spec, folders).ratings.item_columns
    films = tmp_path / "ml-100k" / "u.item"
    films.write_bytes(films.read_bytes().replace(b"(1995)", b"(1996)", 1))
    with pytest.raises(DpmfError, match=r"u\.item: it is damaged, or another version; get it with"):
        load(spec, replace(folders, cache=tmp_path / "cache"))
    films.unlink()
    with pytest.raises(DpmfError, match=r"holds no u\.item; get it with"):
        load(spec, replace(folders, cache=tmp_path / "other"))
    with pytest.raises(ValidationError, match=r"jester-1 has no `item_features`; these have: ml-100k, ml-1m"):
        CatalogSpec(name="jester-1", item_features=True)


def test_ml_1m_is_parsed_in_about_a_second(real_data: Path, tmp_path: Path) -> None:
    start = time.perf_counter()
    load(CatalogSpec(name="ml-1m"), Folders(real_data, tmp_path, real_data))
    # About 0.9 s alone on a core; the bound leaves room for a busy machine.
    assert time.perf_counter() - start < 6


@pytest.mark.parametrize(("stand_in", "key"), [("ml-10m-partial", "ml-10m"), ("netflix-sample", "netflix")])
def test_no_stand_in_passes_for_the_real_set(
    real_data: Path, session_cache: Path, stand_in: str, key: str
) -> None:
    assert ("SAMPLE" if key == "netflix" else "PARTIAL") in catalog.entry(stand_in).title
    path = str(real_data / f"{stand_in}.zip")
    with pytest.raises(DpmfError, match=r"checksum is|it is not complete"):
        load(CatalogSpec(name=key, path=path), Folders(real_data, session_cache, real_data))


def test_mirror_of_ml_1m_inside_a_source_archive(
    real_data: Path, session_cache: Path, tmp_path: Path
) -> None:
    spec = CatalogSpec(name="ml-1m")
    inner = (real_data / "ml-1m.zip").read_bytes()
    (tmp_path / "scikit_rec-0.3.0.tar.gz").write_bytes(tarred({"x/ml-1m.zip": inner}, "w:gz"))
    expected = load(spec, Folders(real_data, session_cache, real_data)).identity.checksum
    assert load(spec, Folders(tmp_path, session_cache, tmp_path)).identity.checksum == expected


def test_jester_in_one_folder(real_data: Path, session_cache: Path, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        shutil.unpack_archive(real_data / f"jester_dataset_1_{number}.zip", tmp_path / "jester-1")
    found = located.locate(catalog.entry("jester-1"), tmp_path)
    assert len(found.source.paths) == 1
    assert located.fault(found, session_cache)[0] is None

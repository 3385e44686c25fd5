"""A missing data set is reported with the way to get it; a present one is not."""

from pathlib import Path

from dpmf_cli.datasets import Folders
from dpmf_cli.datasets.located import present_keys, what_is_missing
from dpmf_cli.datasets.spec import CatalogSpec, CsvSpec, SyntheticSpec


def test_catalog(tmp_path: Path) -> None:
    spec = CatalogSpec(name="ml-100k")
    missing = what_is_missing(spec, Folders(tmp_path, tmp_path, tmp_path))
    assert missing is not None
    assert "dpmf datasets fetch ml-100k" in missing
    (tmp_path / "ml-100k.zip").touch()
    assert what_is_missing(spec, Folders(tmp_path, tmp_path, tmp_path)) is None


def test_a_path_of_ones_own_starts_at_the_config(tmp_path: Path) -> None:
    own = CatalogSpec(name="ml-100k", path="own.zip")
    assert "own.zip is not there" in str(what_is_missing(own, Folders(tmp_path, tmp_path, tmp_path)))
    columns = {"user": "u", "item": "i", "rating": "r"}
    csv = CsvSpec.model_validate(
        {
            "kind": "csv",
            "name": "shop",
            "path": "own.zip",
            "columns": columns,
            "scale": {"minimum": 1, "maximum": 5},
        }
    )
    assert "own.zip is not there" in str(what_is_missing(csv, Folders(tmp_path, tmp_path, tmp_path)))
    (tmp_path / "own.zip").touch()
    assert what_is_missing(own, Folders(tmp_path, tmp_path, tmp_path)) is None
    assert what_is_missing(csv, Folders(tmp_path, tmp_path, tmp_path)) is None


def test_made_up_ratings_are_always_there(tmp_path: Path) -> None:
    assert (
        what_is_missing(SyntheticSpec(kind="synthetic", like="ml-10m"), Folders(tmp_path, tmp_path, tmp_path))
        is None
    )


def test_only_data_sets_with_all_their_files_are_present(tmp_path: Path) -> None:
    assert present_keys(tmp_path) == set()
    for name in ("ml-100k.zip", "jester_dataset_1_1.zip"):
        (tmp_path / name).touch()
    assert present_keys(tmp_path) == {"ml-100k"}

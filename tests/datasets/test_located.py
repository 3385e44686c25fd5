"""Where data files are, what is missing and how to get it, and whether files are those that results came from."""

import hashlib
from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders, known, load, located
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.located import present_keys, what_is_missing
from dpmf_cli.datasets.soundness import Soundness, add_source, of_cache
from dpmf_cli.datasets.spec import CatalogSpec, CsvSpec, SampleSpec, SyntheticSpec
from tests.datasets.building import MakeEntry
from tests.datasets.tiny import U_DATA


def test_what_the_command_line_does_not_name_the_environment_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPMF_DATA", "from-environment")
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path))
    assert Folders.named() == Folders(Path("from-environment"), tmp_path, Path(), Path("results"))
    named = Folders.named(Path("mine"), base=Path("configs"), results=Path("out"))
    assert named == Folders(Path("mine"), tmp_path, Path("configs"), Path("out"))
    monkeypatch.delenv("DPMF_DATA")
    assert Folders.named().data == Path("datasets")


def test_a_path_of_a_config_starts_at_its_folder_or_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    folders = Folders(Path("data"), Path("cache"), base=Path("configs"))
    assert folders.beside_config("own/r.csv") == Path("configs/own/r.csv")
    assert folders.beside_config("/own/r.csv") == Path("/own/r.csv")
    assert folders.beside_config("~/r.csv") == Path("/somebody/r.csv")


def test_what_was_read_before_is_known_and_the_same(tmp_path: Path) -> None:
    spec = SyntheticSpec(kind="synthetic", like="ml-100k", users=60, items=40, ratings=900)
    folders = Folders(tmp_path, tmp_path)
    assert known(spec, folders) is None
    loaded, found = load(spec, folders), known(spec, folders)
    assert found is not None
    assert found.identity == loaded.identity
    assert found.identity.checksums == (loaded.identity.checksum,)


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


def looked_at(folders: Folders, checksum: str, spec: CatalogSpec | SyntheticSpec) -> Soundness:
    found = Soundness("data files")
    add_source(found, spec, folders, checksum)
    return found


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("sample", [None, SampleSpec(users=1, seed=3)])
def test_a_changed_file_of_the_catalog_is_off(
    data: Path, cache: Path, make_entry: MakeEntry, published: bool, sample: SampleSpec | None
) -> None:
    digest = f"sha256:{hashlib.sha256(U_DATA).hexdigest()}"
    make_entry(contents=(Content("u.data", "u.data", frozenset({digest} if published else ())),))
    (data / "u.data").write_bytes(U_DATA)
    folders, spec = Folders(data, cache), CatalogSpec(name="tiny", sample=sample)
    checksum = load(spec, folders).identity.checksum
    kept = sorted(cache.rglob("*"))
    found = looked_at(folders, checksum, spec)
    assert (found.sound, found.off, found.notes) == (1, [], [])
    (data / "u.data").write_bytes(U_DATA.replace(b"30\t4", b"30\t2").replace(b"30\t5", b"30\t1"))
    found = looked_at(folders, checksum, spec)
    assert found.sound == 0
    (damage,) = found.off
    assert ("the publisher's is sha256:" if published else "its ratings changed since") in damage.what
    assert "dpmf datasets fetch tiny --from-file" in damage.fix
    assert sorted(cache.rglob("*")) == kept


def test_a_remembered_digest_is_not_believed(
    data: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if the size and times of the file are unchanged."""
    digests = frozenset({f"sha256:{hashlib.sha256(U_DATA).hexdigest()}"})
    make_entry(digests=digests, contents=(Content("u.data", "u.data", digests),))
    (data / "u.data").write_bytes(U_DATA)
    folders = Folders(data, cache)
    spec = CatalogSpec(name="tiny")
    checksum = load(spec, folders).identity.checksum
    (data / "u.data").write_bytes(U_DATA.replace(b"\t5\t", b"\t4\t"))
    monkeypatch.setattr(located, "_recall", lambda *_: f"sha256:{hashlib.sha256(U_DATA).hexdigest()}")
    assert load(spec, folders).identity.checksum == checksum
    assert len(looked_at(folders, checksum, spec).off) == 1


def test_synthetic_ratings_have_no_files(data: Path, cache: Path) -> None:
    assert looked_at(Folders(data, cache), "", SyntheticSpec(kind="synthetic", like="ml-100k")) == Soundness(
        "data files"
    )


def test_a_cache_that_is_not_there_is_empty(cache: Path) -> None:
    assert of_cache(cache) == Soundness("parsed ratings, ids")

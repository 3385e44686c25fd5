"""Checks of data files: by the publisher's checksums, else by the parsed ratings; nothing is kept."""

import hashlib
from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders, load, located
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.soundness import Soundness, add_source, of_cache
from dpmf_cli.datasets.spec import CatalogSpec, SampleSpec, SyntheticSpec
from tests.datasets.building import MakeEntry
from tests.datasets.tiny import U_DATA


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

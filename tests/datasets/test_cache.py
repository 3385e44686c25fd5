"""Where files are and what is missing; the cache: opened without parsing, rebuilt when broken, safe for processes."""

import errno
import hashlib
import json
import multiprocessing
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core import files
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import remove
from dpmf_cli.datasets import Dataset, Folders, cache as kept, known, load, loading, located, open_cached
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.located import present_keys, what_is_missing
from dpmf_cli.datasets.soundness import Soundness, add_cache, add_source
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, SampleSpec, SyntheticSpec
from tests.datasets.building import U_DATA, Shelf, check_tiny, zipped
from tests.datasets.test_own_files import spec

SMALL = SyntheticSpec(kind="synthetic", like="ml-100k", users=30, items=40, ratings=300)
DIGESTS = frozenset({f"sha256:{hashlib.sha256(U_DATA).hexdigest()}"})


def of_cache(cache: Path, only: list[str] | None = None) -> Soundness:
    add_cache(found := Soundness("parsed ratings, ids"), cache, only)
    return found


def small(cache: Path) -> Dataset:
    return load(SMALL, Folders(cache, cache, cache))


def content(dataset: Dataset) -> tuple[object, ...]:
    arrays = (dataset.ratings.users, dataset.ratings.items, dataset.ratings.values)
    ids = (dataset.user_ids, dataset.item_ids)
    return dataset.identity, dataset.merged, *(array.tolist() for array in (*arrays, *ids))


def test_second_load_and_workers_do_not_parse(shelf: Shelf) -> None:
    shelf.put("tiny.zip", zipped({"u.data": U_DATA}))
    assert known(CatalogSpec(name="tiny"), shelf.folders) is None
    first = shelf.load()
    shelf.patch.setattr(loading, "read_catalog", lambda *_: pytest.fail("parsed again"))
    second, third = shelf.load(), known(CatalogSpec(name="tiny"), shelf.folders)
    assert third is not None
    assert first.identity == second.identity == third.identity
    assert first.identity.checksums == (first.identity.checksum,)
    for ratings in (second.ratings, third.ratings, open_cached(first.identity.checksum, shelf.cache)):
        assert isinstance(ratings.values, np.memmap)
        assert not ratings.values.flags.writeable
        np.testing.assert_array_equal(ratings.values, [3, 5, 4])
        np.testing.assert_array_equal(ratings.columns["timestamp"], [13, 12, 11])
        assert ratings.scale == first.ratings.scale


def test_zipped_again_is_the_same_data_and_a_changed_file_is_other_data(shelf: Shelf) -> None:
    shelf.put("tiny.zip", zipped({"u.data": U_DATA}))
    before = shelf.load().identity.checksum
    os.utime(shelf.put("tiny.zip", zipped({"README": b"x", "other/u.data": U_DATA})), (1, 1))
    assert shelf.load().identity.checksum == before
    assert [len(list((shelf.cache / kind).iterdir())) for kind in ("ratings", "sources")] == [1, 2]
    shelf.put("tiny.zip", zipped({"u.data": U_DATA.replace(b"\t5\t", b"\t4\t")}))
    assert shelf.load().identity.checksum != before


@pytest.mark.parametrize("kind", ["ratings", "sources"])
@pytest.mark.parametrize("harm", ["cut", "empty", "gone", "longer", "first line"])
def test_broken_cache_is_rebuilt(cache: Path, kind: str, harm: str) -> None:
    found = small(cache)
    before = content(found)
    place = next((cache / kind).iterdir())
    whole = place.read_bytes()
    remove(place)  # the ratings of above are mapped from it
    if harm != "gone":
        harmed = {"cut": whole[:-1], "empty": b"", "longer": whole + b"x", "first line": b'{"files": 3'}
        place.write_bytes(harmed[harm])
    if kind == "ratings":
        with pytest.raises(DpmfError, match="run the command again"):
            open_cached(found.identity.checksum, cache)
    assert content(small(cache)) == before
    assert sorted(path.name for path in (cache / kind).iterdir()) == [place.name]


def _load_in_process(cache: str, start: Any, out: Any) -> None:
    start.wait()
    out.put(small(Path(cache)).identity.checksum)


@pytest.mark.parametrize("broken", [False, True])
def test_processes_at_once(cache: Path, broken: bool) -> None:
    expected = small(cache).identity.checksum
    for path in (*(cache / "ratings").iterdir(), *(cache / "sources").iterdir()):
        if broken:
            os.truncate(path, 5)
        else:
            remove(path)
    context = multiprocessing.get_context("fork")
    start, out = context.Event(), context.Queue()
    workers = [context.Process(target=_load_in_process, args=(str(cache), start, out)) for _ in range(6)]
    for worker in workers:
        worker.start()
    start.set()
    sums = {out.get(timeout=30) for _ in workers}
    for worker in workers:
        worker.join()
    assert sums == {expected}
    assert not list(cache.glob("*/.writing-*"))


def test_a_failed_write_leaves_nothing_and_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    place = tmp_path / "a"
    with pytest.raises(DpmfError, match=r"cannot be written \(No space left on device\).*\$DPMF_CACHE"):
        kept.write(place / "b", parts())
    assert list(place.iterdir()) == []
    (place / ".writing-1-a").mkdir()
    with files.temporary_folder(place) as held:
        os.utime(held, (1, 1))  # a clock says nothing
        kept.write(place / "x", [b"x"])
        assert held.exists()
    assert [path.name for path in place.iterdir()] == ["x"]


def test_no_flipped_bit_gives_an_item_the_name_of_another(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each flip in ratings, in ids and in what names them is told, or seen before the ratings are opened."""
    expected, rng = content(small(cache)), random.Random(2)
    for path in (*cache.glob("sources/*"), *cache.glob("ratings/*")):
        whole = path.read_bytes()
        for bit in (*rng.sample(range(8 * len(whole)), 40), 8 * len(whole) - 1):
            path.unlink()  # the ratings of above are mapped from it
            flipped = bytes([whole[bit // 8] ^ 1 << bit % 8])
            path.write_bytes(whole[: bit // 8] + flipped + whole[bit // 8 + 1 :])
            wrong = kept.broken(path)
            assert wrong is not None
            assert content(small(cache)) == expected
            assert path.read_bytes() == whole
            told = f"{path}: damaged (" in capsys.readouterr().err
            assert told or (
                path.parent.name == "ratings" and wrong != "its content does not fit its checksum"
            )


def test_ids_as_an_older_version_kept_them_are_made_anew(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = content(small(cache))
    (source,) = cache.glob("sources/*")
    whole = source.read_bytes()
    source.with_name("another").write_bytes(whole)
    assert (
        kept.broken(source.with_name("another")) is not None
    )  # the ids of one source are not those of another
    (damage,) = of_cache(cache, only=["x"]).off  # damaged ids cannot say whose they are
    assert damage.path == str(source.with_name("another"))
    source.with_name("another").unlink()
    source.unlink()
    source.mkdir()
    (source / "meta.json").write_text("{}")
    (cache / "ratings" / "old").mkdir()
    assert ["as an older version kept it" in note for note in of_cache(cache).notes] == [True, True]
    assert of_cache(cache, only=["another"]) == Soundness("parsed ratings, ids")
    assert content(small(cache)) == expected
    assert source.read_bytes() == whole
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mode", [0o777, 0o770])
@pytest.mark.parametrize("place", [".", "ratings", "sources", "digests"])
def test_a_cache_that_others_may_write_to_is_refused(cache: Path, place: str, mode: int) -> None:
    checksum = small(cache).identity.checksum
    (cache / "digests").mkdir()
    (cache / place).chmod(mode)
    for use in (lambda: small(cache), lambda: open_cached(checksum, cache)):
        with pytest.raises(
            DpmfError, match=r"parsed ratings are not kept there: .*chmod -R go-w.*DPMF_CACHE"
        ):
            use()


def test_a_cache_of_another_user_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(cache)
    status = cache.lstat()
    another = os.stat_result((*status[:4], os.getuid() + 1, *status[5:10]))
    monkeypatch.setattr(Path, "lstat", lambda path: another if path == cache else os.lstat(path))
    with pytest.raises(DpmfError, match=r"belongs to another user"):
        small(cache)


def test_a_file_that_others_may_write_to_is_made_anew_and_none_is_made(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.umask(0)
    try:
        expected = content(small(cache))
    finally:
        os.umask(before)
    assert not [path for path in cache.rglob("*") if path.stat().st_mode & 0o022]
    for part, told in (("ratings/*", 0), ("sources/*", 1)):
        path = next(cache.glob(part))
        path.chmod(0o777)
        assert content(small(cache)) == expected
        assert capsys.readouterr().err.count("it is replaced") == told
        assert not path.stat().st_mode & 0o022


def test_digests_are_remembered_until_the_file_changes(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    first = located.file_digest(path, cache)
    assert first == "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert not (cache / "digests").exists()  # it was just written, so it could change and keep its times
    os.utime(path, (1, 1))
    located.file_digest(path, cache)
    (note,) = (cache / "digests").iterdir()
    held = json.loads(note.read_text())
    note.write_text(json.dumps({**held, "digest": "remembered"}))
    assert located.file_digest(path, cache) == "remembered"
    note.write_text("broken")
    assert located.file_digest(path, cache) == first
    path.write_bytes(b"two")
    os.utime(path, (1, 1))  # a change that hides its time
    assert located.file_digest(path, cache) != first


def test_folders_are_sources_too(shelf: Shelf) -> None:
    shelf.entry(Content("mv_*.txt", "netflix"), counts=(2, 2, 2))
    for movie in (1, 2):
        place = shelf.put(f"tiny/mv_{movie}.txt", b"%d:\n%d,3,2001-01-01\n" % (movie, movie))
        os.utime(place, (1, 1))
    before = shelf.load().identity.checksum
    assert len(list((shelf.cache / "digests").iterdir())) == 1
    place.write_bytes(b"2:\n2,4,2001-01-01\n")
    assert shelf.load().identity.checksum != before


def test_a_cache_that_is_read_only_serves_a_copy_of_a_file_that_it_holds(shelf: Shelf) -> None:
    for name in ("old", "new"):
        os.utime(shelf.put(f"{name}/u.data", U_DATA), (1, 1))
    shelf.load("old")

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    for module in (files, located):
        shelf.patch.setattr(module, "write_whole", refuse)
    shelf.patch.setattr(files, "make_folder", refuse)
    check_tiny(shelf.load("new"))
    shelf.put("new/u.data", U_DATA.replace(b"\t5\t", b"\t4\t"))
    with pytest.raises(DpmfError, match=r"ratings: cannot be written \(Read-only file system\).*DPMF_CACHE"):
        shelf.load("new")


def test_folders_are_those_of_the_command_line_of_the_environment_and_of_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPMF_DATA", "from-environment")
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path))
    monkeypatch.setenv("HOME", "/somebody")
    assert Folders.named() == Folders(Path("from-environment"), tmp_path, Path(), Path("results"))
    named = Folders.named(Path("mine"), base=Path("configs"), results=Path("out"))
    assert named == Folders(Path("mine"), tmp_path, Path("configs"), Path("out"))
    monkeypatch.delenv("DPMF_DATA")
    assert Folders.named().data == Path("datasets")
    for path, place in (
        ("own/r.csv", "configs/own/r.csv"),
        ("/own/r.csv", "/own/r.csv"),
        ("~/r.csv", "/somebody/r.csv"),
    ):
        assert named.beside_config(path) == Path(place)


def test_what_is_missing_is_said_with_the_way_to_get_it(shelf: Shelf) -> None:
    assert present_keys(shelf.data) == set()
    for wanted, said in (
        (CatalogSpec(name="ml-100k"), "get it with `dpmf datasets fetch ml-100k`"),
        (CatalogSpec(name="ml-100k", path="r.csv"), "r.csv is not there"),
        (spec(), "r.csv is not there"),
        (SyntheticSpec(kind="synthetic", like="ml-10m"), ""),
    ):
        assert said in (what_is_missing(wanted, shelf.folders) or "")
        for name in ("ml-100k.zip", "r.csv", "jester_dataset_1_1.zip"):
            shelf.put(name, b"")
        assert what_is_missing(wanted, shelf.folders) is None
        assert present_keys(shelf.data) == {"ml-100k"}
        shutil.rmtree(shelf.data)


def looked_at(folders: Folders, checksum: str, spec: AnySpec) -> Soundness:
    found = Soundness("data files")
    add_source(found, spec, folders, checksum, "folds")
    return found


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("sample", [None, SampleSpec(users=1, seed=3)])
def test_a_changed_file_of_the_catalog_is_off(
    shelf: Shelf, published: bool, sample: SampleSpec | None
) -> None:
    shelf.entry(Content("u.data", "u.data", DIGESTS if published else frozenset()))
    shelf.put("u.data", U_DATA)
    spec = CatalogSpec(name="tiny", sample=sample)
    checksum = load(spec, shelf.folders).identity.checksum
    kept = sorted(shelf.cache.rglob("*"))
    assert looked_at(shelf.folders, checksum, spec) == Soundness("data files", sound=1)
    shelf.put("u.data", U_DATA.replace(b"30\t4", b"30\t2").replace(b"30\t5", b"30\t1"))
    found = looked_at(shelf.folders, checksum, spec)
    (damage,) = found.off
    assert found.sound == 0
    assert ("the publisher's is sha256:" if published else "its ratings changed since") in damage.what
    assert "dpmf datasets fetch tiny --from-file" in damage.fix
    assert sorted(shelf.cache.rglob("*")) == kept


def test_a_remembered_digest_is_not_believed(shelf: Shelf) -> None:
    """Not even if the size and times of the file are unchanged."""
    shelf.entry(Content("u.data", "u.data", DIGESTS), digests=DIGESTS)
    shelf.put("u.data", U_DATA)
    checksum = shelf.load().identity.checksum
    shelf.put("u.data", U_DATA.replace(b"\t5\t", b"\t4\t"))
    shelf.patch.setattr(
        located, "_remembered", lambda key, paths, cache, compute: next(iter(DIGESTS)) if cache else compute()
    )
    assert shelf.load().identity.checksum == checksum
    assert len(looked_at(shelf.folders, checksum, CatalogSpec(name="tiny")).off) == 1


def test_what_is_made_up_or_not_there_is_sound(shelf: Shelf) -> None:
    assert looked_at(shelf.folders, "", SMALL) == Soundness("data files")
    assert of_cache(shelf.cache) == Soundness("parsed ratings, ids")

"""The cache: opened without parsing, rebuilt when broken, and safe when several processes use it."""

import errno
import json
import multiprocessing
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core import files
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Dataset, Folders, cache, load, loading, located, open_cached
from dpmf_cli.datasets import cache as kept
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.spec import CatalogSpec, SyntheticSpec
from tests.datasets.building import MakeEntry, zipped
from tests.datasets.tiny import check_tiny, read

U_DATA = b"100\t30\t4\t11\n7\t30\t5\t12\n7\t4\t3\t13\n"
SMALL = SyntheticSpec(kind="synthetic", like="ml-100k", users=30, items=40, ratings=300)


def tiny(data: Path, cache: Path) -> Dataset:
    return load(CatalogSpec(name="tiny"), Folders(data, cache, data))


def small(cache: Path) -> Dataset:
    return load(SMALL, Folders(cache, cache, cache))


def forbid_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr(loading, "read_catalog", parse)
    monkeypatch.setattr(loading, "_make", parse)


def test_second_load_and_workers_do_not_parse(
    data: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_entry()
    (data / "tiny.zip").write_bytes(zipped({"u.data": U_DATA}))
    first = tiny(data, cache)
    forbid_parsing(monkeypatch)
    second = tiny(data, cache)
    assert second.identity.checksum == first.identity.checksum
    for ratings in (second.ratings, open_cached(first.identity.checksum, cache)):
        assert isinstance(ratings.values, np.memmap)
        assert not ratings.values.flags.writeable
        np.testing.assert_array_equal(ratings.values, [3, 5, 4])
        np.testing.assert_array_equal(ratings.columns["timestamp"], [13, 12, 11])
        assert ratings.scale == first.ratings.scale


def test_zipped_again_is_the_same_data(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry()
    (data / "tiny.zip").write_bytes(zipped({"u.data": U_DATA}))
    before = tiny(data, cache)
    (data / "tiny.zip").write_bytes(zipped({"README": b"x", "other/u.data": U_DATA}))
    after = tiny(data, cache)
    assert after.identity.checksum == before.identity.checksum
    assert len(list((cache / "ratings").iterdir())) == 1
    assert len(list((cache / "sources").iterdir())) == 2


def test_a_changed_file_is_other_data(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry()
    path = data / "u.data"
    path.write_bytes(U_DATA)
    os.utime(path, (1, 1))
    before = tiny(data, cache).identity.checksum
    path.write_bytes(U_DATA.replace(b"\t5\t", b"\t4\t"))
    assert tiny(data, cache).identity.checksum != before


@pytest.mark.parametrize("kind", ["ratings", "sources"])
@pytest.mark.parametrize("harm", ["cut", "empty", "gone", "meta", "no meta", "all"])
def test_broken_cache_is_rebuilt(cache: Path, kind: str, harm: str) -> None:
    found = small(cache)
    values, ids = found.ratings.values.copy(), found.user_ids.copy()
    folder = next((cache / kind).iterdir())
    victim = next(folder.glob("*.npy"))
    if harm == "cut":
        os.truncate(victim, victim.stat().st_size - 1)
    elif harm == "empty":
        os.truncate(victim, 0)
    elif harm == "gone":
        victim.unlink()
    elif harm == "meta":
        (folder / "meta.json").write_text('{"files": 3')
    elif harm == "no meta":
        (folder / "meta.json").unlink()
    else:
        shutil.rmtree(folder)
    if kind == "ratings":
        with pytest.raises(DpmfError, match="run the command again"):
            open_cached(found.identity.checksum, cache)
    again = small(cache)
    assert again.identity.checksum == found.identity.checksum
    np.testing.assert_array_equal(again.ratings.values, values)
    np.testing.assert_array_equal(again.user_ids, ids)
    assert sorted(path.name for path in (cache / kind).iterdir()) == [folder.name]


def _load_in_process(cache: str, start: object, out: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    out.put(small(Path(cache)).identity.checksum)  # type: ignore[attr-defined]


@pytest.mark.parametrize("broken", [False, True])
def test_processes_at_once(cache: Path, broken: bool) -> None:
    expected = small(cache).identity.checksum
    for kind in ("ratings", "sources"):
        for path in (cache / kind).iterdir():
            if broken:
                os.truncate(next(path.glob("*.npy")), 5)
            else:
                shutil.rmtree(path)
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


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError(28, "No space left on device")

    with pytest.raises(DpmfError, match=r"cannot be written \(No space left on device\).*\$DPMF_CACHE"):
        cache.publish(tmp_path / "a" / "b", write, lambda _: False)
    assert list((tmp_path / "a").iterdir()) == []


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    left = tmp_path / ".writing-1-a"
    left.mkdir()
    with files.temporary_folder(tmp_path) as held:
        os.utime(held, (1, 1))  # a clock says nothing
        cache.publish(tmp_path / "x", lambda folder: (folder / "f").touch(), lambda folder: folder.exists())
        assert held.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("name", ["users", "items", "values"])
def test_an_altered_cache_is_told_and_made_again(
    cache: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    expected = small(cache)
    path = cache / "ratings" / expected.identity.checksum / f"{name}.npy"
    whole = path.read_bytes()
    path.unlink()  # the ratings of above are mapped from it
    path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    again = small(cache)
    assert again.identity.checksum == expected.identity.checksum
    assert path.read_bytes() == whole
    assert f"{path.parent}: damaged (its content does not fit its checksum); it is replaced" in (
        capsys.readouterr().err
    )


def content(dataset: Dataset) -> tuple[object, ...]:
    arrays = (dataset.ratings.users, dataset.ratings.items, dataset.ratings.values)
    ids = (dataset.user_ids.tolist(), dataset.item_ids.tolist())
    return dataset.identity, dataset.merged, *(array.tolist() for array in arrays), *ids


def test_no_flipped_bit_gives_an_item_the_name_of_another(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of ids and of what names them, each flip is told. Of ratings, a flip in the padding of a header is none."""
    expected, rng = content(small(cache)), random.Random(2)
    for path in (*cache.glob("sources/*/*"), *cache.glob("ratings/*/*")):
        whole, places = path.read_bytes(), range(8 * path.stat().st_size)
        for bit in rng.sample(places, 40):
            path.unlink()  # the ratings of above are mapped from it
            path.write_bytes(
                whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]
            )
            wrong = kept.broken(path.parent)
            assert wrong is not None or path.parent.parent.name == "ratings"
            assert content(small(cache)) == expected
            said = capsys.readouterr().err
            assert f"{path.parent}: damaged (" in said or path.parent.parent.name == "ratings"
            assert path.read_bytes() == whole or wrong is None


def test_ids_without_a_checksum_are_made_anew(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = content(small(cache))
    (meta,) = cache.glob("sources/*/meta.json")
    body = json.loads(meta.read_text())
    sizes = {name: (meta.parent / name).stat().st_size for name in body["files"]}
    meta.write_text(json.dumps({"checksum": body["checksum"], "merged": 0, "files": sizes}))
    ids = meta.parent / "item_ids.npy"
    ids.write_bytes(ids.read_bytes()[:-8] + b"\x7f" + bytes(7))
    assert kept.is_older(meta.parent)
    assert content(small(cache)) == expected
    assert json.loads(meta.read_text()) == body
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


def test_a_file_that_others_may_write_to_is_made_anew(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = content(small(cache))
    for path in (next(cache.glob("sources/*/user_ids.npy")), next(cache.glob("sources/*"))):
        path.chmod(0o777)
        assert content(small(cache)) == expected
        assert capsys.readouterr().err.count("it is replaced") == 1
        assert not path.stat().st_mode & 0o022


def test_with_any_umask_a_cache_is_this_users_alone(cache: Path) -> None:
    before = os.umask(0)
    try:
        small(cache / "made")
        assert content(small(cache / "made")) == content(small(cache))
    finally:
        os.umask(before)
    assert not [path for path in (cache / "made").rglob("*") if path.stat().st_mode & 0o022]


def test_digests_are_remembered_until_the_file_changes(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    os.utime(path, (1, 1))
    first = located.file_digest(path, cache)
    assert first == "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    (note,) = (cache / "digests").iterdir()
    held = json.loads(note.read_text())
    note.write_text(json.dumps({**held, "digest": "remembered"}))
    assert located.file_digest(path, cache) == "remembered"
    note.write_text("broken")
    assert located.file_digest(path, cache) == first
    path.write_bytes(b"two")
    os.utime(path, (2, 2))
    assert located.file_digest(path, cache) != first


def test_a_change_that_hides_its_time_is_seen(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    os.utime(path, (1, 1))
    first = located.file_digest(path, cache)
    path.write_bytes(b"two")
    os.utime(path, (1, 1))
    assert located.file_digest(path, cache) != first


def test_a_file_just_written_is_not_remembered(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    located.file_digest(tmp_path / "file", cache)
    assert not (cache / "digests").exists()


def test_folders_are_sources_too(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry(contents=(Content("mv_*.txt", "netflix"),), counts=(2, 2, 2))
    folder = data / "tiny"
    folder.mkdir()
    for movie in (1, 2):
        (folder / f"mv_{movie}.txt").write_bytes(b"%d:\n%d,3,2001-01-01\n" % (movie, movie))
        os.utime(folder / f"mv_{movie}.txt", (1, 1))
    before = tiny(data, cache).identity.checksum
    assert len(list((cache / "digests").iterdir())) == 1
    (folder / "mv_2.txt").write_bytes(b"2:\n2,4,2001-01-01\n")
    assert tiny(data, cache).identity.checksum != before


def test_ratings_travel_to_another_cache_whole_and_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = small(cache), tmp_path / "other"
    files = kept.packed(first.identity.checksum, cache)
    damaged = {**files, "values.npy": files["values.npy"][:-1] + b"\x7f"}
    with pytest.raises(DpmfError, match="came damaged over the network"):
        kept.unpack(first.identity.checksum, damaged, other)
    with pytest.raises(DpmfError, match="cut off"):
        kept.unpack(first.identity.checksum, {**files, "users.npy": b""}, other)
    assert list((other / "ratings").iterdir()) == []
    kept.unpack(first.identity.checksum, files, other)
    assert kept.packed(first.identity.checksum, other) == files
    np.testing.assert_array_equal(open_cached(first.identity.checksum, other).values, first.ratings.values)
    values = other / "ratings" / first.identity.checksum / "values.npy"
    np.save(values, np.load(values)[::-1])
    kept.unpack(first.identity.checksum, files, other)
    assert kept.packed(first.identity.checksum, other) == files
    monkeypatch.setattr(kept, "publish", None)
    kept.unpack(first.identity.checksum, files, other)


def test_a_cache_that_is_read_only_serves_a_copy_of_a_file_that_it_holds(
    data: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_entry()
    for name in ("old", "new"):
        (data / name).mkdir()
        (data / name / "u.data").write_bytes(U_DATA)
        os.utime(data / name / "u.data", (1, 1))
    read(data / "old" / "u.data", cache)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    for module in (kept, located):
        monkeypatch.setattr(module, "write_whole", refuse)
    monkeypatch.setattr(kept, "make_folder", refuse)
    check_tiny(read(data / "new" / "u.data", cache))
    (data / "new" / "u.data").write_bytes(U_DATA.replace(b"\t5\t", b"\t4\t"))
    with pytest.raises(DpmfError, match=r"ratings: cannot be written \(Read-only file system\).*DPMF_CACHE"):
        read(data / "new" / "u.data", cache)

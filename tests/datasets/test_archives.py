"""Archives that must be refused, with messages that say why."""

import contextlib
import io
import os
import tarfile
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders, archives, load
from dpmf_cli.datasets.archives import Wanted, members
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.spec import CatalogSpec
from tests.datasets.building import MakeEntry, tarred, zipped

LINE = b"1\t2\t3\t4\n"


def read_all(path: Path, limit: int = 1 << 20) -> list[bytes]:
    wanted = Wanted(("u.data",), ("*.zip", "*.tar"), limit)
    return [member.stream.read() for member in members(path, wanted)]


@pytest.mark.parametrize(
    "name", ["/etc/u.data", "../u.data", "a/../../u.data", "C:\\u.data", "a\\..\\u.data"]
)
@pytest.mark.parametrize("wrap", [zipped, tarred])
def test_names_that_lead_outside(tmp_path: Path, name: str, wrap: object) -> None:
    (tmp_path / "a").write_bytes(wrap({name: LINE}))  # type: ignore[operator]
    with pytest.raises(DpmfError, match="outside of its own folder"):
        read_all(tmp_path / "a")


def with_empty_files(kind: str, count: int) -> bytes:
    """An archive of `count` empty files, then the ratings."""
    wrap = zipped if kind == "zip" else tarred
    return wrap({**{f"{number}.txt": b"" for number in range(count)}, "u.data": LINE})


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_more_members_than_an_honest_copy_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(archives, "_Budget", partial(archives._Budget, members=20))
    (tmp_path / "a").write_bytes(with_empty_files(kind, 19))
    assert read_all(tmp_path / "a") == [LINE]
    (tmp_path / "a").write_bytes(with_empty_files(kind, 20))
    with pytest.raises(DpmfError, match=r"a: holds more than 50,000 files; refused; give the files"):
        read_all(tmp_path / "a")


def test_members_of_nested_archives_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_Budget", partial(archives._Budget, members=20))
    inner = with_empty_files("zip", 9)
    (tmp_path / "a").write_bytes(zipped({"1.zip": inner, "2.zip": inner}))
    with pytest.raises(DpmfError, match="more than 50,000 files"):
        read_all(tmp_path / "a")


def test_a_directory_of_a_zip_that_is_too_large_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MOST_OF_A_DIRECTORY", 1000)
    monkeypatch.setattr(zipfile.ZipInfo, "_decodeExtra", lambda *_: pytest.fail("an entry is parsed"))
    (tmp_path / "a").write_bytes(with_empty_files("zip", 100))
    with pytest.raises(DpmfError, match="more than 50,000 files"):
        read_all(tmp_path / "a")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_in_a_tar(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a", "w") as archive:
        info = tarfile.TarInfo("u.data")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(DpmfError, match="is a link"):
        read_all(tmp_path / "a")


def test_links_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        info = zipfile.ZipInfo("u.data")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DpmfError, match="is a link"):
        read_all(tmp_path / "a")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE])
def test_devices_in_a_tar(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a", "w") as archive:
        info = tarfile.TarInfo("u.data")
        info.type = kind
        archive.addfile(info)
    if kind == tarfile.CONTTYPE:  # a plain file, by an old name
        assert read_all(tmp_path / "a") == [b""]
        return
    with pytest.raises(DpmfError, match=r"u.data: is no file; refused"):
        read_all(tmp_path / "a")


def test_devices_in_a_zip_and_in_a_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        info = zipfile.ZipInfo("u.data")
        info.external_attr = 0o020666 << 16
        archive.writestr(info, LINE)
    with pytest.raises(DpmfError, match=r"u.data: is no file; refused"):
        read_all(tmp_path / "a")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "folder" / "u.data")
    assert read_all(tmp_path / "folder") == []
    with pytest.raises(DpmfError, match="neither a file nor a folder"):
        read_all(tmp_path / "folder" / "u.data")
    with pytest.raises(DpmfError, match="neither a file nor a folder"):
        read_all(Path("/dev/zero"))


@pytest.mark.parametrize("again", ["u.data", "./u.data", "a//../a/u.data"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice(tmp_path: Path, again: str) -> None:
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive, tarfile.open(tmp_path / "tar", "w") as tar:
        for name in ("u.data", again):
            archive.writestr(name, LINE)
            info = tarfile.TarInfo(name)
            info.size = len(LINE)
            tar.addfile(info, io.BytesIO(LINE))
    for path in (tmp_path / "zip", tmp_path / "tar"):
        with pytest.raises(DpmfError, match=r"holds two members named|outside of its own folder"):
            read_all(path)


def test_archives_within_archives_end(tmp_path: Path) -> None:
    content = zipped({"u.data": LINE})
    for _ in range(3):
        content = zipped({"a.zip": content})
    (tmp_path / "a").write_bytes(content)
    assert read_all(tmp_path / "a") == [LINE]
    (tmp_path / "a").write_bytes(zipped({"a.zip": content}))
    with pytest.raises(DpmfError, match="archives within archives, more than 3 deep"):
        read_all(tmp_path / "a")


def test_many_members_share_one_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(zipped({f"{n}/u.data": LINE for n in range(10)}))
    assert read_all(tmp_path / "a", 80) == [LINE] * 10
    with pytest.raises(DpmfError, match="far more than"):
        read_all(tmp_path / "a", 79)


def header(**fields: bytes) -> bytes:
    """A tar with one member whose header fields are replaced; the checksum of the header is then computed again."""
    places = {"size": 124, "type": 156}
    data = bytearray(tarred({"u.data": LINE}))
    for name, value in fields.items():
        data[places[name] : places[name] + len(value)] = value
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def extended(**fields: str) -> bytes:
    """A tar with one member that has these extended headers."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("u.data")
        info.size, info.pax_headers = (
            len(LINE),
            {name.replace("_", "."): text for name, text in fields.items()},
        )
        archive.addfile(info, io.BytesIO(LINE))
    return held.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        header(size=b"77777777777\0"),
        header(size=b"\x80" + b"\x7f" * 11),
        header(size=b"\xff" * 12),
        extended(size="9" * 30),
        extended(size="9" * 30, GNU_sparse_size="8", GNU_sparse_major="0", GNU_sparse_map="0,8"),
        extended(GNU_sparse_major="0", GNU_sparse_minor="1", GNU_sparse_map="1,2,x"),
        extended(size="-1"),
    ],
    ids=["octal", "binary", "negative", "extended", "sparse", "map", "minus"],
)
def test_sizes_that_no_archive_has(tmp_path: Path, content: bytes) -> None:
    """tarfile walks to the end of a member step by step, however large the member claims to be."""
    (tmp_path / "a").write_bytes(content)
    begin = time.process_time()
    with contextlib.suppress(DpmfError):
        assert read_all(tmp_path / "a") in ([LINE], [b""], [])
    assert time.process_time() - begin < 2


def test_sparse_members_of_a_tar(tmp_path: Path) -> None:
    """A tar of a few bytes may hold a file with any number of zeros."""
    content = extended(
        GNU_sparse_major="0", GNU_sparse_minor="1", GNU_sparse_size="9000000", GNU_sparse_map="0,8"
    )
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DpmfError, match=r"u.data: is no file; refused"):
        read_all(tmp_path / "a", 1 << 30)


def test_other_compressions_are_not_opened(tmp_path: Path) -> None:
    for kind in ("xz", "bz2"):
        (tmp_path / "a").write_bytes(tarred({"u.data": LINE}, f"w:{kind}"))
        assert read_all(tmp_path / "a") == []


def test_bombs(tmp_path: Path) -> None:
    bomb = bytes(8 << 20)
    for number, content in enumerate((zipped({"u.data": bomb}), tarred({"u.data": bomb}, "w:gz"))):
        path = tmp_path / str(number)
        path.write_bytes(content)
        with pytest.raises(DpmfError, match="refused"):
            read_all(path, limit=1 << 30)


def test_encrypted_zip(tmp_path: Path) -> None:
    content = bytearray(zipped({"u.data": LINE}))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + offset] |= 1
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DpmfError, match="is encrypted"):
        read_all(tmp_path / "a")


ARCHIVES = {
    "zip": zipped({"u.data": LINE * 5000}),
    "tar": tarred({"u.data": LINE * 5000}),
    "tar.gz": tarred({"u.data": LINE * 5000}, "w:gz"),
    "nested": tarred({"a.tar": tarred({"u.data": LINE * 5000})}, "w:gz"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 0.98))
def test_cut_off_archives_never_pass(
    tmp_path_factory: pytest.TempPathFactory, kind: str, share: float
) -> None:
    whole = ARCHIVES[kind]
    path = tmp_path_factory.mktemp("cut") / "a"
    # A tar ends in about 10 kB of zeros that do not matter, so cut it within the part that matters.
    content = len(whole.rstrip(b"\0"))
    path.write_bytes(whole[: int(share * content)])
    found = None
    with contextlib.suppress(DpmfError):
        found = read_all(path)
    assert found != [LINE * 5000]


def test_missing_file_and_folder_without_a_match(tmp_path: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry()
    with pytest.raises(DpmfError, match=r"gone.zip: no such file or folder; .*fetch tiny --from-file PATH"):
        load(CatalogSpec(name="tiny", path="gone.zip"), Folders(tmp_path, cache, tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DpmfError, match=r"empty: holds no u.data, so it is not Tiny set"):
        load(CatalogSpec(name="tiny", path="empty"), Folders(tmp_path, cache, tmp_path))
    with pytest.raises(DpmfError, match=r"Tiny set is not there \(no tiny.zip"):
        load(CatalogSpec(name="tiny"), Folders(tmp_path, cache, tmp_path))


def test_another_set_under_the_name_is_refused(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry(counts=(943, 1682, 100_000))
    (data / "tiny.zip").write_bytes(zipped({"u.data": LINE}))
    with pytest.raises(DpmfError, match=r"1 ratings by 1 users of 1 items, but Tiny set has 100,000"):
        load(CatalogSpec(name="tiny"), Folders(data, cache, data))


def test_wrong_checksum_is_refused_with_the_line_at_fault(
    data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    make_entry(contents=(Content("u.data", "u.data", frozenset({"md5:" + "0" * 32})),), counts=(1, 1, 1))
    (data / "tiny.zip").write_bytes(zipped({"u.data": LINE}))
    with pytest.raises(
        DpmfError, match=r"u.data: its checksum is md5:.*, but the publisher's is md5:0+: it is damaged"
    ):
        load(CatalogSpec(name="tiny"), Folders(data, cache, data))
    (data / "tiny.zip").write_bytes(zipped({"u.data": LINE + b"1\t3\n"}))
    with pytest.raises(DpmfError, match=r"u.data:2: 2 field.*its checksum is"):
        load(CatalogSpec(name="tiny"), Folders(data, cache, data))

"""Archives that must be refused, with messages that say why."""

import contextlib
import io
import os
import tarfile
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import archives
from dpmf_cli.datasets.archives import Wanted, members
from dpmf_cli.datasets.catalog import Content
from tests.datasets.building import Shelf, tarred, zipped

LINE = b"1\t2\t3\t4\n"


def read_all(path: Path, limit: int = 1 << 20) -> list[bytes]:
    wanted = Wanted(("u.data",), ("*.zip", "*.tar"), limit)
    return [member.stream.read() for member in members(path, wanted)]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[bytes]]:
    """Reads the ratings in an archive of that content."""

    def read(content: bytes, limit: int = 1 << 20) -> list[bytes]:
        (tmp_path / "a").write_bytes(content)
        return read_all(tmp_path / "a", limit)

    return read


Read = Callable[..., list[bytes]]


def with_empty_files(count: int, wrap: Callable[..., bytes] = zipped) -> bytes:
    """An archive of `count` empty files, then the ratings."""
    return wrap({**{f"{number}.txt": b"" for number in range(count)}, "u.data": LINE})


@pytest.mark.parametrize("wrap", [zipped, tarred])
def test_more_members_than_an_honest_copy_has_also_in_nested_archives_together(
    read: Read, monkeypatch: pytest.MonkeyPatch, wrap: Callable[..., bytes]
) -> None:
    monkeypatch.setattr(archives, "_Search", partial(archives._Search, more=20))
    assert read(with_empty_files(19, wrap)) == [LINE]
    inner = with_empty_files(9)
    for content in (with_empty_files(20, wrap), wrap({"1.zip": inner, "2.zip": inner})):
        with pytest.raises(DpmfError, match=r"holds more than 50,000 files; refused; give the files"):
            read(content)


def test_a_directory_of_a_zip_that_is_too_large_is_not_parsed(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MOST_OF_A_DIRECTORY", 1000)
    monkeypatch.setattr(zipfile.ZipInfo, "_decodeExtra", lambda *_: pytest.fail("an entry is parsed"))
    with pytest.raises(DpmfError, match="more than 50,000 files"):
        read(with_empty_files(100))


def special(kind: bytes) -> bytes:
    """A tar with a member of that type."""
    return header(size=b"00000000000\0", type=kind, linkname=b"/etc/passwd")


def of_mode(mode: int) -> bytes:
    """A zip with a member of that mode."""
    held, info = io.BytesIO(), zipfile.ZipInfo("u.data")
    info.external_attr = mode << 16
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(info, LINE)
    return held.getvalue()


def header(**fields: bytes) -> bytes:
    """A tar with one member whose header fields are replaced; the checksum of the header is then computed again."""
    places = {"size": 124, "type": 156, "linkname": 157}
    data = bytearray(tarred({"u.data": LINE}))
    for name, value in fields.items():
        data[places[name] : places[name] + len(value)] = value
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def extended(**fields: str) -> bytes:
    """A tar with one member that has these extended headers."""
    held, info = io.BytesIO(), tarfile.TarInfo("u.data")
    info.size = len(LINE)
    info.pax_headers = {name.replace("_", "."): text for name, text in fields.items()}
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(LINE))
    return held.getvalue()


def encrypted() -> bytes:
    content = bytearray(zipped({"u.data": LINE}))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + offset] |= 1
    return bytes(content)


def nested(levels: int) -> bytes:
    return zipped({"a.zip": nested(levels - 1)} if levels else {"u.data": LINE})


SPARSE = {
    "GNU_sparse_major": "0",
    "GNU_sparse_minor": "1",
    "GNU_sparse_size": "9000000",
    "GNU_sparse_map": "0,8",
}
OUTSIDE = ["/etc/u.data", "../u.data", "a/../../u.data", "C:\\u.data", "a\\..\\u.data"]
REFUSED: dict[str, tuple[bytes, str]] = {
    **{f"{wrap.__name__} {name}": (wrap({name: LINE}), "outside of its own folder") for name in OUTSIDE for wrap in (zipped, tarred)},
    **{f"tar of {kind!r}": (special(kind), "u.data: is a link; refused") for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE)},
    **{f"tar of {kind!r}": (special(kind), "u.data: is no file; refused") for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)},
    "link in a zip": (of_mode(0o120777), "u.data: is a link; refused"),
    "device in a zip": (of_mode(0o020666), "u.data: is no file; refused"),
    "twice in a zip": (zipped({"u.data": LINE, "./u.data": LINE}), 'holds two members named "./u.data"; refused'),
    "twice in a tar": (tarred({"u.data": LINE, "./u.data": LINE}), 'holds two members named "./u.data"; refused'),
    "too deep": (nested(4), "archives within archives, more than 3 deep"),
    "a few bytes that stand for many zeros": (extended(**SPARSE), "u.data: is no file; refused"),
    "zip bomb": (zipped({"u.data": bytes(8 << 20)}), "unpacks more than 200-fold; refused"),
    "tar bomb": (tarred({"u.data": bytes(8 << 20)}, "w:gz"), "refused"),
    "encrypted": (encrypted(), "is encrypted; unpack it"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_honest_copy_is(read: Read, case: str) -> None:
    content, message = REFUSED[case]
    with pytest.raises(DpmfError, match=message):
        read(content, 1 << 30)


def test_what_an_honest_copy_may_be(read: Read) -> None:
    assert read(nested(3)) == [LINE]
    assert read(special(tarfile.CONTTYPE)) == [b""]  # a plain file, by an old name
    for kind in ("xz", "bz2"):  # not opened
        assert read(tarred({"u.data": LINE}, f"w:{kind}")) == []
    many = zipped({f"{n}/u.data": LINE for n in range(10)})
    assert read(many, 80) == [LINE] * 10
    with pytest.raises(DpmfError, match="far more than"):
        read(many, 79)


def test_devices_in_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "u.data")
    assert read_all(tmp_path) == []
    for path in (tmp_path / "u.data", Path("/dev/zero")):
        with pytest.raises(DpmfError, match="neither a file nor a folder"):
            read_all(path)


SIZES = {
    "octal": header(size=b"77777777777\0"),
    "binary": header(size=b"\x80" + b"\x7f" * 11),
    "negative": header(size=b"\xff" * 12),
    "extended": extended(size="9" * 30),
    "sparse": extended(size="9" * 30, GNU_sparse_size="8", GNU_sparse_major="0", GNU_sparse_map="0,8"),
    "map": extended(GNU_sparse_major="0", GNU_sparse_minor="1", GNU_sparse_map="1,2,x"),
    "minus": extended(size="-1"),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_that_no_archive_has(read: Read, case: str) -> None:
    """tarfile walks to the end of a member step by step, however large the member claims to be."""
    begin = time.process_time()
    with contextlib.suppress(DpmfError):
        assert read(SIZES[case]) in ([LINE], [b""], [])
    assert time.process_time() - begin < 2


MANY = {"u.data": LINE * 5000}
WHOLE = {
    "zip": zipped(MANY),
    "tar": tarred(MANY),
    "tar.gz": tarred(MANY, "w:gz"),
    "nested": tarred({"a.tar": tarred(MANY)}, "w:gz"),
}


@pytest.mark.parametrize("kind", WHOLE)
@settings(max_examples=30)
@given(share=st.floats(0, 0.98))
def test_cut_off_archives_never_pass(
    tmp_path_factory: pytest.TempPathFactory, kind: str, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a"
    # A tar ends in about 10 kB of zeros that do not matter, so cut it within the part that matters.
    content = len(WHOLE[kind].rstrip(b"\0"))
    path.write_bytes(WHOLE[kind][: int(share * content)])
    with contextlib.suppress(DpmfError):
        assert read_all(path) != [LINE * 5000]


def test_another_or_no_file_is_refused_with_the_line_at_fault(shelf: Shelf) -> None:
    def refused(message: str, path: str | None = None) -> None:
        with pytest.raises(DpmfError, match=message):
            shelf.load(path)

    refused(r"gone.zip: no such file or folder; .*fetch tiny --from-file PATH", "gone.zip")
    shelf.put("empty/x", b"")
    refused(r"empty: holds no u.data, so it is not Tiny set", "empty")
    refused(r"Tiny set is not there \(no tiny.zip")
    shelf.entry(counts=(943, 1682, 100_000))
    shelf.put("tiny.zip", zipped({"u.data": LINE}))
    refused(r"1 ratings by 1 users of 1 items, but Tiny set has 100,000")
    shelf.entry(Content("u.data", "u.data", frozenset({"md5:" + "0" * 32})), counts=(1, 1, 1))
    refused(r"u.data: its checksum is md5:.*, but the publisher's is md5:0+: it is damaged")
    shelf.put("tiny.zip", zipped({"u.data": LINE + b"1\t3\n"}))
    refused(r"u.data:2: 2 field.*its checksum is")

"""Archives that must be refused, and what is refused is said."""

import contextlib
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.datasets import load
from dpmf_cli.datasets.archives import Wanted, members
from dpmf_cli.datasets.entry import Content
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
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


def test_bombs(tmp_path: Path) -> None:
    bomb = bytes(8 << 20)
    for number, content in enumerate((zipped({"u.data": bomb}), tarred({"u.data": bomb}, "w:gz"))):
        path = tmp_path / str(number)
        path.write_bytes(content)
        with pytest.raises(DpmfError, match="refused"):
            read_all(path, limit=1 << 30)


@pytest.mark.parametrize("wrap", [zipped, tarred])
def test_more_bytes_than_the_data_set_can_have(tmp_path: Path, wrap: object) -> None:
    (tmp_path / "a").write_bytes(wrap({"u.data": LINE * 100}))  # type: ignore[operator]
    assert read_all(tmp_path / "a", limit=800) == [LINE * 100]
    with pytest.raises(DpmfError, match="far more than"):
        read_all(tmp_path / "a", limit=799)


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
    # A tar ends in some 10 kB of zeros that do not matter: cut within what does.
    content = len(whole.rstrip(b"\0"))
    path.write_bytes(whole[: int(share * content)])
    found = None
    with contextlib.suppress(DpmfError):
        found = read_all(path)
    assert found != [LINE * 5000]


@settings(max_examples=60, deadline=None)
@given(at=st.floats(0, 1), value=st.integers(0, 255), kind=st.sampled_from(sorted(ARCHIVES)))
def test_a_changed_byte_raises_nothing_but_the_one_error(
    tmp_path_factory: pytest.TempPathFactory, at: float, value: int, kind: str
) -> None:
    content = bytearray(ARCHIVES[kind])
    content[int(at * (len(content) - 1))] = value
    path = tmp_path_factory.mktemp("changed") / "a"
    path.write_bytes(content)
    with contextlib.suppress(DpmfError):
        read_all(path)


def test_missing_file_and_folder_without_a_match(tmp_path: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry()
    with pytest.raises(DpmfError, match=r"gone.zip: no such file or folder; .*fetch tiny --from-file PATH"):
        load(CatalogSpec(name="tiny", path="gone.zip"), data=tmp_path, cache=cache, base=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DpmfError, match=r"empty: holds no u.data, so it is not Tiny set"):
        load(CatalogSpec(name="tiny", path="empty"), data=tmp_path, cache=cache, base=tmp_path)
    with pytest.raises(DpmfError, match=r"Tiny set is not there \(no tiny.zip"):
        load(CatalogSpec(name="tiny"), data=tmp_path, cache=cache, base=tmp_path)


def test_another_set_under_the_name_is_refused(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry(counts=(943, 1682, 100_000))
    (data / "tiny.zip").write_bytes(zipped({"u.data": LINE}))
    with pytest.raises(DpmfError, match=r"1 ratings by 1 users of 1 items, but Tiny set has 100,000"):
        load(CatalogSpec(name="tiny"), data=data, cache=cache, base=data)


def test_wrong_checksum_is_refused_with_the_line_at_fault(
    data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    make_entry(contents=(Content("u.data", "u.data", frozenset({"md5:" + "0" * 32})),), counts=(1, 1, 1))
    (data / "tiny.zip").write_bytes(zipped({"u.data": LINE}))
    with pytest.raises(
        DpmfError, match=r"u.data: its checksum is md5:.*, the publisher's md5:0+: it is damaged"
    ):
        load(CatalogSpec(name="tiny"), data=data, cache=cache, base=data)
    (data / "tiny.zip").write_bytes(zipped({"u.data": LINE + b"1\t3\n"}))
    with pytest.raises(DpmfError, match=r"u.data:2: 2 field.*its checksum is"):
        load(CatalogSpec(name="tiny"), data=data, cache=cache, base=data)

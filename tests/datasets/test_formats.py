"""Known answers for every format in every wrapping, and the place of every kind of fault."""

from pathlib import Path

import pytest

from dpmf_cli.datasets.catalog import Content
from dpmf_cli.errors import DpmfError
from tests.datasets.building import MakeEntry, tarred, zipped
from tests.datasets.tiny import CSV, DAT, INTER, NETFLIX, U_DATA, check_tiny, read

FORMATS = [
    ("u.data", "u.data", U_DATA),
    ("ratings.dat", "dat", DAT),
    ("ratings.csv", "ratings.csv", CSV),
    ("tiny.inter", "inter", INTER),
    ("combined_data_1.txt", "netflix", NETFLIX),
]


@pytest.mark.parametrize(("name", "kind", "text"), FORMATS, ids=[kind for _, kind, _ in FORMATS])
@pytest.mark.parametrize(
    "wrapping", ["bare", "folder", "zip", "tar", "tar.gz", "zip in tar.gz", "tar in tar.gz"]
)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "no last"])
def test_every_format_in_every_wrapping(
    tmp_path: Path,
    cache: Path,
    make_entry: MakeEntry,
    name: str,
    kind: str,
    text: bytes,
    wrapping: str,
    ends: str,
) -> None:
    make_entry(contents=(Content(name, kind),), nested=("inner.*",))
    text = {"\n": text, "\r\n": text.replace(b"\n", b"\r\n"), "no last": text.removesuffix(b"\n")}[ends]
    path = tmp_path / "archive"
    if wrapping == "bare":
        path = tmp_path / name
        path.write_bytes(text)
    elif wrapping == "folder":
        (path / "deeper").mkdir(parents=True)
        (path / "deeper" / name).write_bytes(text)
    else:
        files = {"a/other.txt": b"x", f"a/{name}": text}
        path.write_bytes(
            {
                "zip": lambda: zipped(files),
                "tar": lambda: tarred(files),
                "tar.gz": lambda: tarred(files, "w:gz"),
                "zip in tar.gz": lambda: tarred({"b/inner.zip": zipped(files)}, "w:gz"),
                "tar in tar.gz": lambda: tarred({"b/inner.tar": tarred(files)}, "w:gz"),
            }[wrapping]()
        )
    check_tiny(read(path, cache))


BAD_LINES = [
    ("u.data", U_DATA + b"8\t4\t3\n", "u.data:4: 3 field"),
    ("u.data", U_DATA + b"8\t4\t3\t1\t1\n", "u.data:4: 5 field"),
    ("u.data", b"8\t4\t3\t1\t1\n" + U_DATA, "u.data:1: 5 field"),
    ("u.data", b"8\t4\t3\t1\t1\n8\t5\t3\n", "u.data:1: 5 field"),
    ("u.data", b"\n" + U_DATA + b"\nx\t4\t3\t1\n", 'u.data:6: the user "x" is not a whole number'),
    ("u.data", U_DATA + b"8\t4\tgood\t1\n", 'u.data:4: the rating "good" is not a finite number'),
    ("u.data", U_DATA + b"8\t4\t6\t1\n", "u.data:4: the rating 6 is off the scale from 1 to 5"),
    ("u.data", b"\n\n" + U_DATA + b"8\t4\t0\t1\n", "u.data:6: the rating 0 is off the scale"),
    ("u.data", U_DATA + b"8\t4\t3.5\t1\n", r"u.data:4: the rating 3.5 is not one of 1, 2, … 5"),
    ("u.data", U_DATA + b"7\t30\t1\t1\n", r"u.data:4: user 7 has rated item 30 before, at .*u.data:2"),
    ("u.data", b"1.5\t4\t3\t1\n", 'u.data:1: the user "1.5"'),
    ("u.data", b"1\t99999999999999999999\t3\t1\n", "u.data:1: the item"),
    ("u.data", b"1\t2\t3\t\xff\xfe\n", "u.data:1: the timestamp"),
    ("u.data", b"1\t2\t3\t4\n1\t\x00\t3\t4\n", "u.data:2: the item"),
    ("u.data", b'1\t2\t3\t4\n1\t"5\t3\t4\n', "u.data:2: the item"),
    ("u.data", U_DATA.replace(b"\n", b"\t\n"), "u.data:1: 5 field"),
    ("u.data", b"\xef\xbb\xbf" + U_DATA + b"x\t4\t3\t1\n", 'u.data:4: the user "x"'),
    ("u.data", b"\xef\xbb\xbfx\t4\t3\t1\n", 'u.data:1: the user "x"'),
    ("netflix", b"1:\n5,3,2005-01-01\n6,3", 'u.data:3: "6,3" is not'),
    ("u.data", b"", "u.data: no ratings in it"),
    (
        "dat",
        b"1::2::3::4\n1:2::3::4\n",
        r"u.data:2: 3 field\(s\), not the 4 of user::item::rating::timestamp",
    ),
    ("dat", b"1::2::3::4\n1\t2::3::4::5\n", "u.data:2: the user"),
    (
        "ratings.csv",
        b"user,item,rating\n",
        'u.data:1: the first line is not "userId,movieId,rating,timestamp"',
    ),
    ("ratings.csv", CSV + b"1,2,3\n", "u.data:5: 3 field"),
    ("inter", b"", "u.data:1: the first line is not"),
    ("netflix", b"5,3,2005-01-01\n", 'u.data:1: "5,3,2005-01-01" stands before the first line "movie:"'),
    ("netflix", b"1:\n5,3,2005-01-01\nabc:\n6,3,2005-01-01\n", 'u.data:3: "abc:" is not'),
    ("netflix", b"1:\n5,3,2005-01-01\n6,3\n", 'u.data:3: "6,3" is not'),
    ("netflix", b"1:\n5,3,2005-13-01\n", "u.data:2"),
    ("netflix", b"1:\n5,3,2005-01-01\n\n6,3,2005-01-01\n", 'u.data:3: "" is not'),
    ("netflix", b"1:\n5,9,2005-01-01\n", "u.data:2: the rating 9 is off the scale"),
    (
        "netflix",
        b"1:\n5,3,2005-01-01\n2:\n6,3,2005-01-01\n1:\n5,4,2005-01-01\n",
        r"u.data:6: .* at .*u.data:2",
    ),
]


@pytest.mark.parametrize(("kind", "text", "message"), BAD_LINES)
def test_bad_lines_are_named(
    tmp_path: Path, cache: Path, make_entry: MakeEntry, kind: str, text: bytes, message: str
) -> None:
    make_entry(contents=(Content("u.data", kind),))
    (tmp_path / "a.zip").write_bytes(zipped({"x/u.data": text}))
    with pytest.raises(DpmfError, match=message) as error:
        read(tmp_path / "a.zip", cache)
    assert "dpmf datasets fetch tiny" in str(error.value)
    assert not (cache / "ratings").exists()


def test_byte_order_mark_and_row_order_do_not_matter(
    tmp_path: Path, cache: Path, make_entry: MakeEntry
) -> None:
    make_entry()
    (tmp_path / "u.data").write_bytes(U_DATA)
    before = read(tmp_path / "u.data", cache).identity.checksum
    lines = U_DATA.splitlines(keepends=True)
    (tmp_path / "u.data").write_bytes(b"\xef\xbb\xbf" + b"".join(reversed(lines)))
    assert read(tmp_path / "u.data", cache).identity.checksum == before
    make_entry(contents=(Content("u.data", "ratings.csv"),))
    (tmp_path / "u.data").write_bytes(b"\xef\xbb\xbf" + CSV)
    assert read(tmp_path / "u.data", cache).identity.checksum == before

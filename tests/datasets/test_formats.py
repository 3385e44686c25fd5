"""Known answers for every format in every wrapping, and the place of every kind of fault."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Scale
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.catalog import Content, SourcePart
from dpmf_cli.datasets.formats import netflix
from dpmf_cli.datasets.spec import CatalogSpec
from tests.datasets.building import MakeEntry, sheet, tarred, zipped
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
    ("u.data", b"\n\n", "u.data: no ratings in it"),
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


def jester_row(*ratings: float) -> list[float | str]:
    return [float(len(ratings)), *ratings, *[99.0] * (100 - len(ratings))]


def jester_entry(make_entry: MakeEntry, counts: tuple[int, int, int]) -> None:
    parts = tuple(
        SourcePart((f"j{n}.zip",), (Content(f"jester-data-{n}.xls", "jester"),), digests=frozenset())
        for n in (1, 2)
    )
    make_entry(parts=parts, counts=counts, scale=Scale(-10, 10))


def test_jester_numbers_users_through_the_sheets(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    jester_entry(make_entry, (3, 2, 4))
    (data / "j1.zip").write_bytes(zipped({"jester-data-1.xls": sheet([jester_row(-7.82, 8.79)])}))
    (data / "j2.zip").write_bytes(zipped({"jester-data-2.xls": sheet([jester_row(10), jester_row(-10)])}))
    found = load(CatalogSpec(name="tiny"), Folders(data, cache, data))
    assert found.user_ids.tolist() == [1, 2, 3]
    assert found.ratings.users.tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(found.ratings.values, [-7.82, 8.79, 10, -10], rtol=1e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [jester_row(1), [2.0, *jester_row(1, 2, 3)[1:]]],
            r"row 2: the first cell says 2 ratings, the row has 3",
        ),
        (
            [jester_row(1), jester_row(1, 11)],
            r"row 2, column 3: the rating 11 is off the scale from -10 to 10",
        ),
        ([jester_row(1)[:50]], r"row 1: 50 cells where 101 are expected"),
        ([jester_row(1), ["one", *jester_row(1)[1:]]], r"row 2, column 1: 'one' is not a number"),
    ],
)
def test_jester_faults(
    data: Path, cache: Path, make_entry: MakeEntry, rows: list[list[float | str]], message: str
) -> None:
    jester_entry(make_entry, (2, 2, 3))
    (data / "j1.zip").write_bytes(zipped({"jester-data-1.xls": sheet([jester_row(5)])}))
    (data / "j2.zip").write_bytes(zipped({"jester-data-2.xls": sheet(rows)}))
    with pytest.raises(DpmfError, match="jester-data-2.xls: " + message):
        load(CatalogSpec(name="tiny"), Folders(data, cache, data))


def test_jester_that_is_no_spreadsheet(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    jester_entry(make_entry, (2, 2, 3))
    for n in (1, 2):
        (data / f"j{n}.zip").write_bytes(zipped({f"jester-data-{n}.xls": b"not a sheet"}))
    with pytest.raises(DpmfError, match=r"jester-data-1.xls: cannot be opened as a spreadsheet"):
        load(CatalogSpec(name="tiny"), Folders(data, cache, data))


def altered_sheet(part: str, before: str, after: str) -> bytes:
    """A sheet of one row, with one of its parts changed."""
    with zipfile.ZipFile(io.BytesIO(sheet([jester_row(5)]))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    changed = parts[part].replace(before.encode(), after.encode())
    assert changed != parts[part]
    return zipped({**parts, part: changed})


FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'


def test_a_spreadsheet_that_takes_gigabytes_is_refused(
    data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    """A cell at the far end of a sheet ends the process of the library that reads it, so the library has its
    own process."""
    jester_entry(make_entry, (2, 2, 3))
    bomb = altered_sheet("xl/worksheets/sheet1.xml", "</sheetData>", FAR)
    for n in (1, 2):
        (data / f"j{n}.zip").write_bytes(zipped({f"jester-data-{n}.xls": bomb}))
    with pytest.raises(
        DpmfError, match=r"jester-data-1.xls: cannot be opened as a spreadsheet \(its reader gave up"
    ):
        load(CatalogSpec(name="tiny"), Folders(data, cache, data))


def test_netflix_dates_become_seconds(tmp_path: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry(contents=(Content("c.txt", "netflix"),))
    (tmp_path / "c.txt").write_bytes(NETFLIX)
    times = read(tmp_path / "c.txt", cache).ratings.columns["timestamp"]
    days = [np.datetime64(int(time), "s").astype("datetime64[D]").astype(str) for time in times]
    assert days == ["2000-02-29", "2005-12-31", "1970-01-01"]


def test_stand_in_times_are_dropped(tmp_path: Path, real_data: Path, session_cache: Path) -> None:
    spec = CatalogSpec(name="netflix-sample")
    assert not load(spec, Folders(real_data, session_cache, tmp_path)).ratings.columns


@pytest.mark.parametrize("block", [1, 7, 16, 40, 1000])
def test_netflix_blocks_may_cut_anywhere(
    tmp_path: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(netflix, "_BLOCK", block)
    make_entry(contents=(Content("mv_*.txt", "netflix"),))
    folder = tmp_path / "training_set"
    folder.mkdir()
    first, second = NETFLIX[: NETFLIX.index(b"4:")], NETFLIX[NETFLIX.index(b"4:") :]
    (folder / "mv_0000030.txt").write_bytes(first.replace(b"30:", b"30:", 1))
    (folder / "mv_0000004.txt").write_bytes(b"4:\n" + second.partition(b"\n")[2])
    check_tiny(read(folder, cache))
    for file in folder.iterdir():
        file.unlink()
    (folder / "mv_all.txt").write_bytes(NETFLIX)
    check_tiny(read(folder, cache))


@pytest.mark.parametrize("block", [1, 16, 1000])
def test_netflix_fault_has_its_own_line(
    tmp_path: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(netflix, "_BLOCK", block)
    make_entry(contents=(Content("mv_*.txt", "netflix"),))
    (tmp_path / "mv_1.txt").write_bytes(b"1:\n5,3,2005-01-01\n")
    (tmp_path / "mv_2.txt").write_bytes(b"2:\n5,3,2005-01-01\n6,3,2005-01-01\n7,3;2005-01-01\n")
    with pytest.raises(DpmfError, match=r'mv_2.txt:4: "7,3;2005-01-01" is not customer,rating,date'):
        read(tmp_path, cache)


def test_probe_and_judging(tmp_path: Path) -> None:
    (tmp_path / "probe.txt").write_bytes(b"1:\n30878\n2647871\n10:\n5\n")
    movies, customers = netflix.read_probe(tmp_path / "probe.txt")
    assert movies.tolist() == [1, 1, 10]
    assert customers.tolist() == [30878, 2647871, 5]
    for text in (b"1:\n30878,4,2005-12-26\n10:\n5,1,2004-01-01\n", b"1:\n30878,4\n10:\n5,1\n"):
        (tmp_path / "a.tar.gz").write_bytes(tarred({"grand_prize/judging.txt": text}, "w:gz"))
        movies, customers, ratings = netflix.read_judging(tmp_path / "a.tar.gz")
        assert (movies.tolist(), customers.tolist(), ratings.tolist()) == ([1, 10], [30878, 5], [4, 1])
    (tmp_path / "probe.txt").write_bytes(b"1:\n3,4\n")
    with pytest.raises(DpmfError, match=r"probe.txt:2: .* is not customer"):
        netflix.read_probe(tmp_path / "probe.txt")
    with pytest.raises(DpmfError, match=r"holds no probe\.txt"):
        netflix.read_probe(tmp_path / "a.tar.gz")

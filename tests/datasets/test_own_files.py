"""A user's own file, in any wrapping and notation: the same ratings, or a message that names the fix."""

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Dataset, Folders, archives, load, loading, sizes
from dpmf_cli.datasets.spec import CsvSpec
from tests.datasets.building import parquet, tarred, zipped, zstandard

TEXT = b"when,stars,sku,customer\n11,4,b,x\n12,5,a,x\n13,3,b,w\n"
COLUMNS: dict[str, Any] = {"user": "customer", "item": "sku", "rating": "stars", "timestamp": "when"}


def spec(**changed: Any) -> CsvSpec:
    given = {
        "kind": "csv",
        "name": "shop",
        "path": "r.csv",
        "columns": COLUMNS,
        "scale": {"minimum": 1, "maximum": 5, "step": 1},
        **changed,
    }
    return CsvSpec.model_validate(given)


def read(tmp_path: Path, text: bytes, **changed: Any) -> Dataset:
    (tmp_path / "r.csv").write_bytes(text)
    return load(spec(**changed), Folders(tmp_path, tmp_path / "cache", tmp_path))


def test_known_answer(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT)
    assert (found.identity.key, found.identity.title) == ("shop", "shop")
    assert found.user_ids.tolist() == ["w", "x"]
    assert found.item_ids.tolist() == ["a", "b"]
    ratings = found.ratings
    assert (ratings.users.tolist(), ratings.items.tolist()) == ([0, 1, 1], [1, 0, 1])
    assert ratings.values.tolist() == [3, 5, 4]
    assert ratings.columns["timestamp"].tolist() == [13, 12, 11]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (b"\xef\xbb\xbf" + TEXT, {}),
        (TEXT.replace(b"\n", b"\r\n"), {}),
        (TEXT.removesuffix(b"\n"), {}),
        (b"\n" + TEXT.replace(b"\n", b"\n\n"), {}),
        (TEXT.replace(b",", b";"), {"separator": ";"}),
        (TEXT.replace(b",", b"\t"), {"separator": "\t"}),
        (TEXT.replace(b"x\n", b'"x"\n'), {}),
        (
            TEXT.partition(b"\n")[2],
            {"header": False, "columns": {"user": 3, "item": 2, "rating": 1, "timestamp": 0}},
        ),
        (TEXT, {"columns": {"user": 3, "item": 2, "rating": "stars", "timestamp": 0}}),
        (TEXT.replace(b"4,b", b"4.0,b"), {}),
    ],
)
def test_other_ways_to_write_the_same(tmp_path: Path, text: bytes, changed: dict[str, Any]) -> None:
    expected = read(tmp_path, TEXT).identity.checksum
    assert read(tmp_path, text, **changed).identity.checksum == expected


def test_ids_that_look_missing_or_numeric_stay_what_they_are(tmp_path: Path) -> None:
    text = b"customer,sku,stars\nNA,007,1\nnull,7,2\nnan,7.0,3\n"
    found = read(tmp_path, text, columns={"user": "customer", "item": "sku", "rating": "stars"})
    assert found.user_ids.tolist() == ["NA", "nan", "null"]
    assert found.item_ids.tolist() == ["007", "7", "7.0"]


@pytest.mark.parametrize(
    ("text", "changed", "message"),
    [
        (b"", {}, "r.csv: the file is empty"),
        (b"when,stars,sku,customer\n", {}, "no ratings in it"),
        (b"PK\x03\x04", {}, "the archive is damaged or cut off"),
        (
            TEXT.replace(b"customer", b"costumer"),
            {},
            r'r.csv:1: no column "customer" \(user\); did you mean "costumer"\?; it has: when, stars',
        ),
        (TEXT.replace(b"when", b"sku"), {}, 'two columns "sku"'),
        (
            b",".join(b"%d" % n + b"x" * 99 for n in range(999)),
            {},
            r'no column "customer" \(user\); known: 0x{39}, (\d+x+, ){28}29x{38}, …$',
        ),
        (TEXT.replace(b"when", b"stars"), {"columns": {**COLUMNS, "timestamp": None}}, 'two columns "stars"'),
        (TEXT, {"columns": {**COLUMNS, "user": 9}}, 'no column "9"'),
        (
            TEXT,
            {"header": False, "columns": {"user": 3, "item": 2, "rating": 4}},
            r"r.csv:1: has 4 columns, numbered from 0; none is number 4 \(rating\)",
        ),
        (TEXT, {"separator": ";"}, "no column"),
        (TEXT + b"14,3,c\n", {}, r"r.csv:5: 3 field\(s\) where the first line has 4"),
        (TEXT + b"14,3,c,y,z\n", {}, r"r.csv:5: 5 field\(s\) where the first line has 4"),
        (TEXT + b"\n14,good,c,y\n", {}, 'r.csv:6: the rating "good" is not a finite number'),
        (
            TEXT + b"09/03/2015,3,c,y\n",
            {},
            'r.csv:5: the timestamp "09/03/2015" is not a finite number of seconds, nor a date like 2015-03-09 18:22:11; '
            "correct the line",
        ),
        (TEXT + b"nan,3,c,y\n", {}, "r.csv:5: the timestamp"),
        (TEXT + b"14,3,,y\n", {}, "r.csv:5: the item is empty"),
        (TEXT + b"14,3,c,  \n", {}, "r.csv:5: the user is empty"),
        (TEXT + b"14,nan,c,y\n", {}, "r.csv:5: the rating"),
        (TEXT + b"14,2,c,\xe9\n", {}, "r.csv:5: byte 8 of the line is not UTF-8"),
        (TEXT + b"14,2,c\x00,y\n", {}, "r.csv:5"),
        (TEXT + b'"14",3,c,y,z\n', {}, r"r.csv:5: 5 field\(s\) where the first line has 4"),
        (TEXT + b'"14",3,c\n', {}, r"r.csv:5: 3 field\(s\) where the first line has 4"),
        (TEXT + b",,,\n", {}, "r.csv:5: the user is empty"),
        (TEXT + b'14,2,"c\nd",y\n', {}, "r.csv:6: the item holds a line end"),
        (
            TEXT + b"14,2,b,x\n",
            {},
            r"r.csv:5: user 'x' has rated item 'b' before, at .*r.csv:2; .*set `duplicates`",
        ),
        (
            b"customer,sku,stars,e\nx,a,3,0.5\nx,b,3,0\n",
            {"columns": {"user": "customer", "item": "sku", "rating": "stars", "epsilon": "e"}},
            "r.csv:3: epsilon is 0.0, not a number from 1e-06 to 1e[+]06; correct the file",
        ),
        (
            b"customer,sku,stars,e\nx,a,3,1e-300\n",
            {"columns": {"user": "customer", "item": "sku", "rating": "stars", "epsilon": "e"}},
            "r.csv:2: epsilon is 1e-300, not a number from",
        ),
    ],
)
def test_faults(tmp_path: Path, text: bytes, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DpmfError, match=message):
        read(tmp_path, text, **changed)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        DpmfError, match=r"r.csv: no such file; correct `path` of data set shop, which is relative"
    ):
        load(spec(), Folders(tmp_path, tmp_path / "cache", tmp_path))


def test_options_make_another_source(tmp_path: Path) -> None:
    text = TEXT + b"14,2,b,x\n"
    last = read(tmp_path, text, duplicates="last")
    mean = read(tmp_path, text, duplicates="mean", scale={"minimum": 1, "maximum": 5})
    assert last.ratings.values.tolist() == [3, 5, 2]
    assert mean.ratings.values.tolist() == [3, 5, 3]


def test_sizes_of_small_and_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"".join(b"%d,3,%d,%d\n" % (n, n % 10, n) for n in range(1000))
    (tmp_path / "r.csv").write_bytes(b"when,stars,sku,customer\n" + lines)
    places = Folders(tmp_path, tmp_path / "cache", tmp_path)
    monkeypatch.setattr(loading, "_QUICK_BYTES", 4000)
    estimate = sizes(spec(), places)
    assert estimate.basis == "estimated"
    assert estimate.items == 10
    assert estimate.ratings == pytest.approx(1000, rel=0.2)
    assert estimate.users == pytest.approx(1000, rel=0.2)
    monkeypatch.undo()
    counted = sizes(spec(), places)
    assert (counted.users, counted.items, counted.ratings, counted.basis) == (1000, 10, 1000, "counted")


def test_times_beyond_whole_numbers_stay_what_they_are(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT.replace(b"13,", b"1e300,"))
    assert found.ratings.columns["timestamp"].tolist() == [1e300, 12.0, 11.0]
    found = read(tmp_path, TEXT.replace(b"13,", b"9223372036854774784,"))
    assert found.ratings.columns["timestamp"].tolist() == [9223372036854774784, 12, 11]


def test_nothing_but_a_broken_line(tmp_path: Path) -> None:
    for rest in (b"1", b"\r", b'"', b"\r\r\n", b",,,,,,"):
        with pytest.raises(DpmfError, match=r"r\.csv"):
            read(tmp_path, TEXT.partition(b"\n")[0] + b"\n" + rest)


DATED = (
    TEXT.replace(b"11,", b"2015-03-09,").replace(b"12,", b"2015-03-09T18:22:11Z,").replace(b"13,", b"1.5,")
)
HALVES = b"customer;sku;stars\nx;a;4,5\nw;b;3\nx;b;0,5\n"
THREE = {"user": "customer", "item": "sku", "rating": "stars"}


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "two gz in a row": lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:]),
    "zst": zstandard,
    "zip": lambda text: zipped({"a/ratings.csv": text}),
    "zip from a Mac": lambda text: zipped({"ratings.csv": text, "__MACOSX/._ratings.csv": b"x"}),
    "tar": lambda text: tarred({"ratings.csv": text}),
    "tar.gz": lambda text: tarred({"ratings.csv": text}, "w:gz"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_packed_is_the_same(tmp_path: Path, kind: str) -> None:
    expected = read(tmp_path, TEXT).identity.checksum
    assert read(tmp_path, PACKED[kind](TEXT)).identity.checksum == expected
    found = sizes(spec(), Folders(tmp_path, tmp_path / "cache", tmp_path))
    assert (found.ratings, found.basis) == (3, "counted")


@pytest.mark.parametrize("kind", PACKED)
def test_a_fault_in_what_is_packed_has_its_line(tmp_path: Path, kind: str) -> None:
    with pytest.raises(
        DpmfError, match=r'r\.csv:5: the rating "good" is not a finite number; correct the line'
    ):
        read(tmp_path, PACKED[kind](TEXT + b"14,good,c,y\n"))
    with pytest.raises(DpmfError, match=r"r\.csv:5: the rating 6 is off the scale"):
        read(tmp_path, PACKED[kind](TEXT + b"14,6,c,y\n"))


@pytest.mark.parametrize("kind", ["gz", "zst", "zip", "tar.gz"])
def test_what_is_cut_off_is_refused_and_not_read_in_part(tmp_path: Path, kind: str) -> None:
    data = PACKED[kind](TEXT * 50)
    with pytest.raises(DpmfError, match=r"damaged or cut off|cannot be read"):
        read(tmp_path, data[: len(data) * 3 // 4])


@pytest.mark.parametrize("pack", [gzip.compress, zstandard, lambda data: zipped({"r.csv": data})])
def test_what_unpacks_to_far_more_is_refused(tmp_path: Path, pack: Any) -> None:
    with pytest.raises(DpmfError, match=r"refused"):
        read(tmp_path, pack(b"0" * (8 << 20)))


def test_an_archive_of_several_files_names_them(tmp_path: Path) -> None:
    with pytest.raises(
        DpmfError, match=r"holds 2 files \(a\.csv, b\.csv\), not one; unpack it and name the file of"
    ):
        read(tmp_path, zipped({"a.csv": TEXT, "b.csv": TEXT}))
    with pytest.raises(DpmfError, match=r"holds 0 files, not one"):
        read(tmp_path, zipped({".hidden": TEXT}))


def test_large_packed_files_are_counted_too(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(gzip.compress(TEXT))
    assert archives.is_packed(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_bytes(TEXT)
    assert not archives.is_packed(tmp_path / "r.csv")


def test_dates_are_seconds(tmp_path: Path) -> None:
    assert read(tmp_path, DATED).ratings.columns["timestamp"].tolist() == [1.5, 1425925331, 1425859200]
    zoned = DATED.replace(b"18:22:11Z", b"19:22:11+01:00")
    assert read(tmp_path, zoned).ratings.columns["timestamp"].tolist() == [1.5, 1425925331, 1425859200]


def test_a_decimal_comma(tmp_path: Path) -> None:
    written = {"separator": ";", "columns": THREE, "scale": {"minimum": 0.5, "maximum": 5, "step": 0.5}}
    assert read(tmp_path, HALVES, **written, decimal=",").ratings.values.tolist() == [3, 4.5, 0.5]
    quoted = HALVES.replace(b"4,5", b'"4,5"').replace(b"0,5", b'"0,5"').replace(b";", b",")
    found = read(tmp_path, quoted, **{**written, "separator": ","}, decimal=",")
    assert found.ratings.values.tolist() == [3, 4.5, 0.5]


FIXES = {
    "another separator": (
        TEXT.replace(b",", b";"),
        {},
        r'the file looks semicolon-separated: add `separator: ";"`$',
    ),
    "tabs": (TEXT.replace(b",", b"\t"), {}, r'the file looks tab-separated: add `separator: "\\t"`$'),
    "another separator, by number": (
        b"1;2;3\n1;3;4\n",
        {"header": False, "columns": {"user": 0, "item": 1, "rating": 2}},
        r'none is number 1 \(item\); the file looks semicolon-separated: add `separator: ";"`$',
    ),
    "no header": (
        TEXT.partition(b"\n")[2],
        {},
        r'r\.csv:1: no column "customer".*; its first line looks like a rating, not like names: add `header: false` and '
        r"number the columns from 0, as in `columns: \{user: \d, item: \d, rating: \d\}`$",
    ),
    "no header, by number": (
        TEXT.partition(b"\n")[2],
        {"columns": {"user": 3, "item": 2, "rating": 1}},
        r"r\.csv:1: the first line looks like a rating; add `header: false` if it is one, or `header: true`",
    ),
    "a header that is not to be": (
        TEXT,
        {"header": False, "columns": {"user": 3, "item": 2, "rating": 1}},
        r'r\.csv:1: the rating "stars" is not .*; its first line looks like names of columns: remove `header: false`$',
    ),
    "a decimal comma": (
        HALVES,
        {"separator": ";", "columns": THREE},
        r'r\.csv:2: the rating "4,5" is not .*; its numbers look written with decimal commas: add `decimal: ","`$',
    ),
    "a decimal point": (
        HALVES.replace(b",", b"."),
        {"separator": ";", "columns": THREE, "decimal": ","},
        r'r\.csv:2: the rating "4\.5" is not .*; its numbers look written with decimal points: add `decimal: "\."`$',
    ),
    "another scale": (
        TEXT.replace(b",4,", b",0.5,"),
        {},
        r"off the scale from 1 to 5; .* set `scale` to what the site allows \(0\.5 to 5 occur in steps of 0\.5\)$",
    ),
    "another step": (
        TEXT.replace(b",4,", b",3.5,"),
        {},
        r"3\.5 is not one of 1, 2, … 5; .* set `scale` .*\(3 to 5 occur in steps of 0\.5\)$",
    ),
}


@pytest.mark.parametrize("case", FIXES)
def test_what_is_said_of_a_file_that_is_written_otherwise(tmp_path: Path, case: str) -> None:
    data, changed, message = FIXES[case]
    with pytest.raises(DpmfError, match=message):
        read(tmp_path, data, **changed)  # type: ignore[arg-type]


def test_a_header_of_numbers_may_be_said_to_be_one(tmp_path: Path) -> None:
    found = read(tmp_path, b"1,2,3\n1,2,3\n", columns={"user": 0, "item": 1, "rating": 2}, header=True)
    assert len(found.ratings) == 1


def test_merged_rows_are_counted_and_remembered(tmp_path: Path) -> None:
    text = TEXT + b"14,2,b,x\n15,2,b,x\n"
    assert [read(tmp_path, text, duplicates=kind).merged for kind in ("mean", "last", "mean")] == [2, 2, 2]
    assert read(tmp_path, TEXT).merged == 0


ROWS: dict[str, Any] = {
    "when": [11, 12, 13],
    "stars": [4, 5, 3],
    "sku": ["b", "a", "b"],
    "customer": ["x", "x", "w"],
}


@pytest.mark.parametrize("whole", [True, False])
def test_parquet_is_the_same(tmp_path: Path, whole: bool) -> None:
    expected = read(tmp_path, TEXT).identity.checksum
    data = parquet(ROWS, stars="int8" if whole else "float64")
    assert read(tmp_path, data).identity.checksum == expected
    by_number = {"user": 3, "item": 2, "rating": 1, "timestamp": 0}
    assert read(tmp_path, data, columns=by_number).identity.checksum == expected


def test_parquet_of_numbers_and_times(tmp_path: Path) -> None:
    numbers = {"customer": [7, 12, 7], "sku": [2, 2, 1], "stars": [1, 2, 3]}
    times = parquet({**numbers, "when": [1_500_000, 2_000_000, 3_000_000]}, when="timestamp[us]")
    found = read(tmp_path, times)
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == ([7, 12], [1, 2])
    assert found.ratings.columns["timestamp"].tolist() == [3, 1.5, 2]
    texts = read(tmp_path, parquet({**numbers, "when": ["2015-03-09", "7", "8"]}))
    assert texts.ratings.columns["timestamp"].tolist() == [8, 1425859200, 7]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"customer": ["x", None, "w"]}, "r.csv: row 2: the user is empty; correct the file"),
        ({"customer": ["x", " ", "w"]}, "r.csv: row 2: the user is empty"),
        ({"stars": [4, None, 3]}, "r.csv: row 2: the rating is empty"),
        ({"stars": [4, 9, 3]}, "r.csv: row 2: the rating 9 is off the scale from 1 to 5"),
        ({"stars": ["4", "good", "3"]}, "r.csv: cannot be read as Parquet .*good"),
        ({"when": [1.0, float("nan"), 2.0]}, "r.csv: row 2: the timestamp is not finite"),
        ({"when": ["1", "soon", "2"]}, 'the timestamp "soon" is not a number of seconds, nor a date like'),
        ({"sku": ["b", "a", "a"], "customer": ["x", "x", "x"]}, "r.csv: row 3: user 'x' has rated .* row 2"),
    ],
)
def test_faults_of_parquet(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DpmfError, match=message):
        read(tmp_path, parquet({**ROWS, **changed}))


def test_columns_of_parquet(tmp_path: Path) -> None:
    with pytest.raises(
        DpmfError, match=r'no column "stras" \(rating\); did you mean "stars"\?; it has: when, stars, sku'
    ):
        read(tmp_path, parquet(ROWS), columns={**COLUMNS, "rating": "stras"})
    with pytest.raises(DpmfError, match='no column "4"'):
        read(tmp_path, parquet(ROWS), columns={**COLUMNS, "rating": 4})


def test_parquet_that_unpacks_to_far_more_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    rows = 10_000_000
    constant = pyarrow.repeat(pyarrow.scalar(1, "int8"), rows)
    writer.write_table(pyarrow.table(dict.fromkeys(ROWS, constant)), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").stat().st_size < rows / 8
    with pytest.raises(DpmfError, match="unpacks to far more than ratings do; refused"):
        load(spec(), Folders(tmp_path, tmp_path / "cache", tmp_path))


def test_parquet_without_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DpmfError, match=r"install it with: pip install 'dpmf\[parquet\]'"):
        read(tmp_path, b"PAR1....PAR1")

"""A user's own CSV file: what is read, and the messages about what cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.datasets import Dataset, Folders, load, loading, sizes
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.errors import DpmfError

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

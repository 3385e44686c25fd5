"""A user's own file, in any wrapping and notation: the same ratings, a guess of its layout, or a message with the fix."""

import gzip
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Dataset, Sizes, load, sizes
from dpmf_cli.datasets.guess import guess_format
from dpmf_cli.datasets.own_file import scale_of
from dpmf_cli.datasets.spec import CsvSpec
from tests.datasets.building import OWN, Shelf, faults, parquet, sheet, tarred, zipped, zstandard

COLUMNS: dict[str, Any] = {"user": "customer", "item": "sku", "rating": "stars", "timestamp": "when"}
THREE = {"user": 0, "item": 1, "rating": 2}
SPEC = {"name": "shop", "path": "r.csv", "columns": COLUMNS, "scale": {"minimum": 1, "maximum": 5, "step": 1}}


def spec(**changed: Any) -> CsvSpec:
    return CsvSpec.model_validate({"kind": "csv", **SPEC, **changed})


def read(shelf: Shelf, text: bytes, **changed: Any) -> Dataset:
    shelf.put("r.csv", text)
    return load(spec(**changed), shelf.folders)


def test_known_answer(shelf: Shelf) -> None:
    found = read(shelf, OWN)
    assert (found.identity.key, found.identity.title) == ("shop", "shop")
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == (["w", "x"], ["a", "b"])
    ratings = found.ratings
    assert (ratings.users.tolist(), ratings.items.tolist()) == ([0, 1, 1], [1, 0, 1])
    assert ratings.values.tolist() == [3, 5, 4]
    assert ratings.columns["timestamp"].tolist() == [13, 12, 11]


@pytest.mark.parametrize("case", faults("same"), ids=str)
def test_other_ways_to_write_the_same(shelf: Shelf, case: dict[str, Any]) -> None:
    expected = read(shelf, OWN).identity.checksum
    assert read(shelf, case["text"], **case.get("options", {})).identity.checksum == expected


def test_ids_that_look_numeric_stay_what_they_are(shelf: Shelf) -> None:
    found = read(shelf, b"c,s,r\nNaNcy,007,1\nNil,7,2\nnone,7.0,3\n", columns=THREE)
    assert found.user_ids.tolist() == ["NaNcy", "Nil", "none"]
    assert found.item_ids.tolist() == ["007", "7", "7.0"]


@pytest.mark.parametrize("case", faults("own"), ids=lambda case: case["says"])
def test_faults(shelf: Shelf, case: dict[str, Any]) -> None:
    with pytest.raises(DpmfError, match=case["says"]):
        read(shelf, case["text"], **case.get("options", {}))


def test_a_header_of_any_length_is_shown_in_part(shelf: Shelf) -> None:
    shown = r'no column "customer" \(user\); known: 0x{39}, (\d+x+, ){28}29x{38}, …$'
    with pytest.raises(DpmfError, match=shown):
        read(shelf, b",".join(b"%d" % n + b"x" * 99 for n in range(999)))


def test_a_missing_file_and_a_fifo_are_named(shelf: Shelf) -> None:
    with pytest.raises(
        DpmfError, match=r"r.csv: no such file; correct `path` of data set shop, which is relative"
    ):
        load(spec(), shelf.folders)
    os.mkfifo(shelf.data / "r.csv")
    with pytest.raises(DpmfError, match=r"r\.csv: cannot be read \(not a file\); name a file of ratings"):
        guess_format(shelf.data / "r.csv")


def test_options_make_another_source_and_merged_rows_are_counted_and_remembered(shelf: Shelf) -> None:
    text = OWN + b"14,2,b,x\n15,2,b,x\n"
    for kind, value in (("last", 2), ("mean", 8 / 3), ("last", 2)):
        found = read(shelf, text, duplicates=kind, scale={"minimum": 1, "maximum": 5})
        assert found.ratings.values.tolist() == pytest.approx([3, 5, value])
        assert found.merged == 2
    assert read(shelf, OWN).merged == 0


def test_nothing_but_a_broken_line(shelf: Shelf) -> None:
    for rest in (b"1", b"\r", b'"', b"\r\r\n", b",,,,,,"):
        with pytest.raises(DpmfError, match=r"r\.csv"):
            read(shelf, OWN.partition(b"\n")[0] + b"\n" + rest)


DATES = b"when,stars,sku,customer\n2015-03-09,4,b,x\n2015-03-09T18:22:11Z,5,a,x\n1.5,3,b,w\n"
TIMES = [
    (DATES, [1.5, 1425925331, 1425859200]),
    (DATES.replace(b"18:22:11Z", b"19:22:11+01:00"), [1.5, 1425925331, 1425859200]),
    (OWN.replace(b"13,", b"1e300,"), [1e300, 12.0, 11.0]),
    (OWN.replace(b"13,", b"9223372036854774784,"), [9223372036854774784, 12, 11]),
]


@pytest.mark.parametrize(("text", "times"), TIMES)
def test_times_are_seconds_and_beyond_whole_numbers_what_they_are(
    shelf: Shelf, text: bytes, times: list[float]
) -> None:
    assert read(shelf, text).ratings.columns["timestamp"].tolist() == times


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
def test_what_is_packed_is_the_same_and_a_fault_in_it_has_its_line(shelf: Shelf, kind: str) -> None:
    expected = read(shelf, OWN).identity.checksum
    assert read(shelf, PACKED[kind](OWN)).identity.checksum == expected
    assert sizes(spec(), shelf.folders) == Sizes(2, 2, 3, "counted")
    for rating, message in (
        (b"good", r'r\.csv:5: the rating "good" is not a finite number; correct the line'),
        (b"6", r"r\.csv:5: the rating 6 is off the scale"),
    ):
        with pytest.raises(DpmfError, match=message):
            read(shelf, PACKED[kind](OWN + b"14,%s,c,y\n" % rating))


BROKEN = [
    *((PACKED[kind](OWN * 50)[: len(PACKED[kind](OWN * 50)) * 3 // 4], "damaged or cut off|cannot be read") for kind in ("gz", "zst", "zip", "tar.gz")),
    *((PACKED[kind](b"0" * (8 << 20)), "refused") for kind in ("gz", "zst", "zip")),
    (zipped({"a.csv": OWN, "b.csv": OWN}), r"holds 2 files \(a\.csv, b\.csv\), not one; unpack it and name the file of"),
    (zipped({".hidden": OWN}), "holds 0 files, not one"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_packed_and_cut_off_or_huge_or_several_files_is_refused(
    shelf: Shelf, text: bytes, message: str
) -> None:
    with pytest.raises(DpmfError, match=message):
        read(shelf, text)


HALVES = b"customer;sku;stars\nx;a;4,5\nw;b;3\nx;b;0,5\n"


def test_a_decimal_comma(shelf: Shelf) -> None:
    columns = {role: name for role, name in COLUMNS.items() if role != "timestamp"}
    written = {"columns": columns, "decimal": ",", "scale": {"minimum": 0.5, "maximum": 5, "step": 0.5}}
    assert read(shelf, HALVES, separator=";", **written).ratings.values.tolist() == [3, 4.5, 0.5]
    quoted = HALVES.replace(b"4,5", b'"4,5"').replace(b"0,5", b'"0,5"').replace(b";", b",")
    assert read(shelf, quoted, **written).ratings.values.tolist() == [3, 4.5, 0.5]


def test_a_header_of_numbers_may_be_said_to_be_one(shelf: Shelf) -> None:
    assert len(read(shelf, b"1,2,3\n1,2,3\n", columns=THREE, header=True).ratings) == 1


ROWS: dict[str, Any] = {
    "when": [11, 12, 13],
    "stars": [4, 5, 3],
    "sku": ["b", "a", "b"],
    "customer": ["x", "x", "w"],
}


@pytest.mark.parametrize("stars", ["int8", "float64"])
def test_parquet_is_the_same(shelf: Shelf, stars: str) -> None:
    expected = read(shelf, OWN).identity.checksum
    data = parquet(ROWS, stars=stars)
    assert read(shelf, data).identity.checksum == expected
    by_number = {"user": 3, "item": 2, "rating": 1, "timestamp": 0}
    assert read(shelf, data, columns=by_number).identity.checksum == expected


def test_parquet_of_numbers_and_times(shelf: Shelf) -> None:
    numbers = {"customer": [7, 12, 7], "sku": [2, 2, 1], "stars": [1, 2, 3]}
    times = parquet({**numbers, "when": [1_500_000, 2_000_000, 3_000_000]}, when="timestamp[us]")
    found = read(shelf, times)
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == ([7, 12], [1, 2])
    assert found.ratings.columns["timestamp"].tolist() == [3, 1.5, 2]
    single = parquet(
        {**numbers, "when": [1, 2, 3], "e": [0.1, 0.2, 0.3], "tags": [[1], [], None]}, e="float32"
    )
    found = read(shelf, single, columns={**COLUMNS, "epsilon": "e"})
    assert found.ratings.columns["epsilon"].tolist() == np.array([0.3, 0.1, 0.2], np.float32).tolist()
    texts = read(shelf, parquet({**numbers, "when": ["2015-03-09", "7", "8"]}))
    assert texts.ratings.columns["timestamp"].tolist() == [8, 1425859200, 7]


@pytest.mark.parametrize("case", faults("parquet"), ids=lambda case: case["says"])
def test_faults_of_parquet(shelf: Shelf, case: dict[str, Any]) -> None:
    with pytest.raises(DpmfError, match=case["says"]):
        read(
            shelf, parquet({**ROWS, **case.get("cells", {})}), columns={**COLUMNS, **case.get("columns", {})}
        )


def test_parquet_that_unpacks_to_far_more_is_refused(shelf: Shelf) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    rows = 10_000_000
    constant = pyarrow.repeat(pyarrow.scalar(1, "int8"), rows)
    writer.write_table(pyarrow.table(dict.fromkeys(ROWS, constant)), shelf.data / "r.csv")
    assert (shelf.data / "r.csv").stat().st_size < rows / 8
    with pytest.raises(DpmfError, match="unpacks to far more than ratings do; refused"):
        load(spec(), shelf.folders)


def test_parquet_without_its_reader(shelf: Shelf) -> None:
    shelf.patch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DpmfError, match=r"install it with: pip install 'dpmf\[parquet\]'"):
        read(shelf, b"PAR1....PAR1")


RNG = random.Random(3)
PAIRS = sorted({(RNG.randrange(1, 60), RNG.randrange(100, 140)) for _ in range(500)})
DRAWN = [(u, i, RNG.randrange(1, 10) / 2, 978_300_760 + 1000 * n) for n, (u, i) in enumerate(PAIRS)]


@pytest.mark.parametrize("layout", faults("layouts"), ids=lambda layout: layout["of"])
def test_layouts(layout: dict[str, Any], shelf: Shelf) -> None:
    lines = [layout["line"].format(u=u, i=i, r=r, t=t, n=n) for n, (u, i, r, t) in enumerate(DRAWN)]
    place = shelf.put("r.csv", "".join(f"{line}\n" for line in [*layout.get("first", []), *lines]).encode())
    found = guess_format(place)
    assert found.keys == {**layout["keys"], "scale": {"minimum": 0.5, "maximum": 4.5, "step": 0.5}}
    ratings = load(spec(**found.keys), shelf.folders).ratings
    assert sorted(ratings.values.tolist()) == sorted(rating for _, _, rating, _ in DRAWN)
    assert (ratings.n_users, ratings.n_items) == (len({u for u, _ in PAIRS}), len({i for _, i in PAIRS}))


def guessed(shelf: Shelf, text: bytes, **told: Any) -> Any:
    return guess_format(shelf.put("r", text), **told)


def test_words(shelf: Shelf) -> None:
    found = guessed(shelf, zipped({"r.csv": b"who;what;stars;day\nx;a;4,5;2015-03-09\nx;b;3;2015-03-10\n"}))
    assert found.layout.decimal == ","
    assert found.words == (
        "semicolon-separated, a header line, decimal commas",
        'user: column "who", by its content',
        'item: column "what", by its content',
        'rating: column "stars", by its name',
        'timestamp: column "day", by its content',
        "3 to 4.5 occur in steps of 1.5",
    )
    found = guessed(shelf, b"a,b,c\nx,y,z\nx,z,y\n")
    assert (found.columns, found.scale) == ({"user": 0, "item": 1}, None)
    assert "no column looks like the rating" in found.words
    found = guessed(shelf, parquet(ROWS))
    assert (found.columns, found.scale, found.words[0]) == (COLUMNS, (3, 5, 1), "Parquet")


MATRIX = b"\n".join(b"%d" % (user % 100) + b",7.5,99" * 50 for user in range(300))
"""As Jester's sheets: how many items the user rated, then a rating of each, where 99 means none."""


def test_a_column_that_is_told_is_nothing_else_even_by_its_name(shelf: Shelf) -> None:
    found = guessed(shelf, b"user,item,rating\n1,2,5\n2,3,4\n", user="item")
    assert found.columns == {"user": "item", "item": "user", "rating": "rating"}
    assert guessed(shelf, MATRIX, user="0", item="1", rating="2").columns == THREE


def test_comments_are_skipped_however_long_and_a_rating_below_them_is_not(shelf: Shelf) -> None:
    below, without = b"#john smith 3,b,4\n2,c,3\n", {"columns": THREE, "header": False}
    for comment in (
        b"",
        b"\xef\xbb\xbf## of May 3, 2024, all\n",
        b"# ours\n" * 5_000,
        b"\xef\xbb\xbf%% %s\n" % (b"ours, " * 9_000),
    ):
        assert read(shelf, comment + below, **without).user_ids.tolist() == ["#john smith 3", "2"]
    assert guessed(shelf, b"# ours\n" * 5_000 + OWN).words[0].endswith("below 5000 lines of comments")
    alike = b"# by us, you, all\n"  # as many commas as the part of the header within 8 KiB
    assert len(read(shelf, alike + b"#" * (8191 - len(alike + b"when,stars,sku")) + b"\n" + OWN).ratings) == 3
    marked = b"".join(b"#%d,a,3\n" % user for user in range(120_000))  # over the 1 MiB that are looked at
    assert read(shelf, marked + b"1,a,3\n", **without).ratings.n_users == 120_001


HASHES = [
    (b"#user,item,rating\n1,2,3\n", {"user": "#user", "item": "item", "rating": "rating"}),
    (b"#1,a,3\n#2,b,4\n", THREE),
]


@pytest.mark.parametrize(("text", "columns"), HASHES)
def test_a_header_or_an_id_with_a_hash_is_no_comment(
    shelf: Shelf, text: bytes, columns: dict[str, Any]
) -> None:
    found = guessed(shelf, text)
    assert found.columns == columns
    assert len(found.layout.columns[0].cells) == (1 if found.layout.header else 2)


def test_a_column_with_missing_ratings_still_tells_the_header(shelf: Shelf) -> None:
    assert guessed(shelf, b"who,what,how\nx,a,3\ny,b,NaN\nx,b,\n").layout.header


LOOKS = "r: its 101 columns look like a matrix, with a row for each user .*; write a line for each rating"
NO_TABLES = [
    (MATRIX, LOOKS),
    (b"user" + b",joke 7" * 100 + b"\n" + MATRIX, LOOKS),
    (MATRIX.replace(b"99", b""), LOOKS),
    (sheet([[1, 2, 3]]), "r: is a spreadsheet; save the sheet of ratings as CSV"),
    *((case["text"], case["says"]) for case in faults("guess")),
]


@pytest.mark.parametrize(("text", "message"), NO_TABLES, ids=[message for _, message in NO_TABLES])
def test_what_is_no_table(shelf: Shelf, text: bytes, message: str) -> None:
    with pytest.raises(DpmfError, match=message):
        guessed(shelf, text)


def test_a_config_is_told_from_ratings(shelf: Shelf) -> None:
    with pytest.raises(DpmfError, match=r"mine\.yaml: is a config; `dpmf run` and `dpmf explain` take it"):
        guess_format(shelf.put("mine.yaml", b"dataset: ml-100k\nfolds: 5\n"))


def test_a_number_that_is_too_large_is_none(shelf: Shelf) -> None:
    text = b"user,item,rating\n1,1,2\n1,2,4\n2,1,%s\n" % (b"9" * 400)
    assert guessed(shelf, text).scale == (2, 4, 2)


@pytest.mark.parametrize(("values", "scale"), [case["scale"] for case in faults("scales")])
def test_scales(values: list[float], scale: tuple[float, float, float]) -> None:
    assert scale_of(np.array(values)) == pytest.approx(scale)

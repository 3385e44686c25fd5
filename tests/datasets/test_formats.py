"""Known answers for every format in every wrapping, and the place of every kind of fault."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Scale
from dpmf_cli.datasets import publishers
from dpmf_cli.datasets.catalog import ENTRIES, Content, SourcePart
from tests.datasets.building import TEXTS, U_DATA, Shelf, check_tiny, faults, sheet, tarred, zipped

NETFLIX = TEXTS["netflix"]
WRAPPINGS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "zip": zipped,
    "tar": tarred,
    "tar.gz": lambda files: tarred(files, "w:gz"),
    "zip in tar.gz": lambda files: tarred({"b/inner.zip": zipped(files)}, "w:gz"),
    "tar in tar.gz": lambda files: tarred({"b/inner.tar": tarred(files)}, "w:gz"),
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("wrapping", ["tiny.txt", "tiny/deeper/tiny.txt", *WRAPPINGS])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "no last"])
def test_every_format_in_every_wrapping(shelf: Shelf, kind: str, wrapping: str, ends: str) -> None:
    shelf.entry(Content("tiny.txt", kind), nested=("inner.*",))
    sound = TEXTS[kind]
    text = sound.removesuffix(b"\n") if ends == "no last" else sound.replace(b"\n", ends.encode())
    if wrapping in WRAPPINGS:
        shelf.put("archive", WRAPPINGS[wrapping]({"a/other.txt": b"x", "a/tiny.txt": text}))
    else:
        shelf.put(wrapping, text)
    check_tiny(shelf.load("archive" if wrapping in WRAPPINGS else wrapping.partition("/")[0]))


@pytest.mark.parametrize("case", faults("publishers"), ids=lambda case: case["says"])
def test_bad_lines_are_named(shelf: Shelf, case: dict[str, Any]) -> None:
    shelf.entry(Content("u.data", case["format"]))
    shelf.put("a.zip", zipped({"x/u.data": case["text"]}))
    with pytest.raises(DpmfError, match=case["says"]) as error:
        shelf.load("a.zip")
    assert "dpmf datasets fetch tiny" in str(error.value)
    assert not (shelf.cache / "ratings").exists()


def test_byte_order_mark_and_row_order_do_not_matter(shelf: Shelf) -> None:
    lines = U_DATA.splitlines(keepends=True)
    texts = [U_DATA, b"\xef\xbb\xbf" + b"".join(reversed(lines)), b"\xef\xbb\xbf" + TEXTS["ratings.csv"]]
    found = set()
    for text, kind in zip(texts, ("u.data", "u.data", "ratings.csv"), strict=True):
        shelf.entry(Content("u.data", kind))
        shelf.put("u.data", text)
        found.add(shelf.load().identity.checksum)
    assert len(found) == 1


def jester_row(*ratings: float) -> list[float | str]:
    return [float(len(ratings)), *ratings, *[99.0] * (100 - len(ratings))]


def put_sheets(shelf: Shelf, *sheets: bytes) -> None:
    names = {f"j{n}.zip": f"jester-data-{n}.xls" for n in (1, 2)}
    parts = []
    for (place, name), held in zip(names.items(), sheets, strict=True):
        digests = frozenset({f"sha256:{hashlib.sha256(held).hexdigest()}"})
        parts.append(SourcePart((place,), (Content(name, "jester", digests),)))
        shelf.put(place, zipped({name: held}))
    shelf.entry(parts=tuple(parts), counts=(3, 2, 4), scale=Scale(-10, 10))


def test_jester_numbers_users_through_the_sheets(shelf: Shelf) -> None:
    first, second = sheet([jester_row(-7.82, 8.79)]), sheet([jester_row(10), jester_row(-10)])
    put_sheets(shelf, first, second)
    found = shelf.load()
    assert found.user_ids.tolist() == [1, 2, 3]
    assert found.ratings.users.tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(found.ratings.values, [-7.82, 8.79, 10, -10], rtol=1e-6)


def test_no_sheet_is_opened_that_is_not_the_publishers(shelf: Shelf) -> None:
    """The library may end the process: it is not asked, though this sheet is no sheet at all."""
    put_sheets(shelf, sheet([jester_row(5)]), sheet([jester_row(1)]))
    shelf.put("j2.zip", zipped({"jester-data-2.xls": b"not a sheet"}))
    with pytest.raises(
        DpmfError, match=r"jester-data-2.xls: its checksum is .*: it is damaged, or another version"
    ):
        shelf.load()
    contents = [each for entry in ENTRIES.values() for part in entry.parts for each in part.contents]
    assert all(each.digests for each in contents if each.format in publishers.VERIFIED)


def test_netflix_dates_become_seconds(shelf: Shelf) -> None:
    shelf.entry(Content("c.txt", "netflix"))
    shelf.put("c.txt", NETFLIX)
    times = shelf.load("c.txt").ratings.columns["timestamp"]
    days = [np.datetime64(int(time), "s").astype("datetime64[D]").astype(str) for time in times]
    assert days == ["2000-02-29", "2005-12-31", "1970-01-01"]


@pytest.mark.parametrize("block", [1, 7, 16, 40, 1000])
def test_netflix_blocks_may_cut_anywhere(shelf: Shelf, block: int) -> None:
    shelf.patch.setattr(publishers, "_BLOCK", block)
    shelf.entry(Content("mv_*.txt", "netflix"))
    cut = NETFLIX.index(b"4:")
    shelf.put("two/mv_0000030.txt", NETFLIX[:cut])
    shelf.put("two/mv_0000004.txt", NETFLIX[cut:])
    shelf.put("one/mv_all.txt", NETFLIX)
    check_tiny(shelf.load("two"))
    check_tiny(shelf.load("one"))
    shelf.put("bad/mv_1.txt", b"1:\n5,3,2005-01-01\n")
    shelf.put("bad/mv_2.txt", b"2:\n5,3,2005-01-01\n6,3,2005-01-01\n7,3;2005-01-01\n")
    with pytest.raises(DpmfError, match=r'mv_2.txt:4: "7,3;2005-01-01" is not customer,rating,date'):
        shelf.load("bad")


def test_probe_and_judging(shelf: Shelf) -> None:
    lists = (
        ("probe", b"1:\n30878\n2647871\n10:\n5\n", [[1, 1, 10], [30878, 2647871, 5]]),
        ("judging", b"1:\n30878,4,2005-12-26\n10:\n5,1,2004-01-01\n", [[1, 10], [30878, 5], [4, 1]]),
        ("judging", b"1:\n30878,4\n10:\n5,1\n", [[1, 10], [30878, 5], [4, 1]]),
    )
    for which, text, found in lists:
        place = shelf.put("a.tar.gz", tarred({f"grand_prize/{which}.txt": text}, "w:gz"))
        assert [column.tolist() for column in publishers.read_list(place, which)] == found
    with pytest.raises(DpmfError, match=r"holds no probe\.txt"):
        publishers.read_list(place, "probe")

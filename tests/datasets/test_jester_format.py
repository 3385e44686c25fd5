"""Jester's spreadsheets: users across the sheets, faults by row and column, and harmful sheets."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.catalog import Content, SourcePart
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Scale
from tests.datasets.building import MakeEntry, sheet, zipped


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

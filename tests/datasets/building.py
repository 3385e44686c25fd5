"""Tiny archives and files made by hand, three ratings in every format, and the data set `tiny` that has them."""

import io
import sys
import tarfile
import zipfile
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dpmf_cli.core.ratings import Scale
from dpmf_cli.datasets import Dataset, Folders, catalog, load
from dpmf_cli.datasets.catalog import CatalogEntry, Content, Counts, Licence, SourcePart
from dpmf_cli.datasets.spec import CatalogSpec

WHOLE_STARS = Scale(1.0, 5.0, 1.0)

# User 7 gave item 30 a 5 and item 4 a 3; user 100 gave item 30 a 4. Numbers sort as numbers: 7 < 100, 4 < 30.
U_DATA = b"100\t30\t4\t11\n7\t30\t5\t12\n7\t4\t3\t13\n"
TEXTS = {
    "u.data": U_DATA,
    "dat": U_DATA.replace(b"\t", b"::"),
    "ratings.csv": b"userId,movieId,rating,timestamp\n" + U_DATA.replace(b"\t", b","),
    "inter": b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + U_DATA,
    "netflix": b"30:\n100,4,1970-01-01\n7,5,2005-12-31\n4:\n7,3,2000-02-29\n",
}
OWN = b"when,stars,sku,customer\n11,4,b,x\n12,5,a,x\n13,3,b,w\n"
"""A user's own file of three ratings."""


_FAULTS = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text())


def faults(family: str) -> list[dict[str, Any]]:
    """The cases of a family in faults.yaml, with their bytes as `text`."""
    cases = deepcopy(_FAULTS[family])
    for case in cases:
        sound = TEXTS[case["format"]] if "format" in case else OWN
        case["text"] = (
            sound + case.get("add", "").encode("latin-1")
            if case.get("text") is None
            else case["text"].encode("latin-1")
        )
    return list(cases)


def tiny(
    *contents: Content,
    parts: tuple[SourcePart, ...] = (),
    counts: tuple[int, int, int] = (2, 2, 3),
    mean: float = 4.0,
    variance: float = 2 / 3,
    scale: Scale = WHOLE_STARS,
    **rest: Any,
) -> CatalogEntry:
    held = contents or (Content("u.data", "u.data"),)
    names = ("tiny.zip", "tiny.tar.gz", "tiny.tar", "tiny", "u.data")
    return CatalogEntry(
        key="tiny",
        title="Tiny set",
        scale=scale,
        parts=parts or (SourcePart(names, held, **rest),),
        expected=Counts(*counts, mean, variance),
        licence=Licence("free for tests", "https://example.org/licence"),
        citation="nobody",
        homepage="https://example.org/tiny",
    )


@dataclass(frozen=True)
class Shelf:
    """A data folder and a cache. The data set `tiny` has three ratings in `u.data`, or what `entry` gives it."""

    data: Path
    cache: Path
    patch: pytest.MonkeyPatch

    @property
    def folders(self) -> Folders:
        return Folders(self.data, self.cache, self.data)

    def entry(self, *contents: Content, **about: Any) -> CatalogEntry:
        entry = tiny(*contents, **about)
        self.patch.setitem(catalog.ENTRIES, "tiny", entry)
        return entry

    def put(self, name: str, content: bytes) -> Path:
        (self.data / name).parent.mkdir(parents=True, exist_ok=True)
        (self.data / name).write_bytes(content)
        return self.data / name

    def load(self, path: str | None = None) -> Dataset:
        return load(CatalogSpec(name="tiny", path=path), self.folders)


def with_another_value(kept: bytes) -> bytes:
    """A file of ratings in the cache, with another bit in the last number that is not 0."""
    last = len(kept.rstrip(b"\0")) - 1
    return kept[:last] + bytes([kept[last] ^ 1]) + kept[last + 1 :]


def check_tiny(found: Dataset) -> None:
    ratings = found.ratings
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == ([7, 100], [4, 30])
    arrays = ratings.users, ratings.items, ratings.values
    assert [array.tolist() for array in arrays] == [[0, 0, 1], [0, 1, 1], [3, 5, 4]]
    assert [array.dtype for array in arrays] == [np.int32, np.int32, np.float32]


def zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return held.getvalue()


def tarred(files: dict[str, bytes], mode: str = "w") -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return held.getvalue()


def zstandard(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        zstd = pytest.importorskip("backports.zstd")
    return bytes(zstd.compress(data))


def parquet(columns: dict[str, Any], **types: str) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    table = pyarrow.table(
        {name: pyarrow.array(cells, type=types.get(name)) for name, cells in columns.items()}
    )
    held = io.BytesIO()
    writer.write_table(table, held)
    return held.getvalue()


def sheet(rows: list[list[float | str]]) -> bytes:
    """The smallest spreadsheet file (xlsx) that holds `rows`."""

    def cell(value: float | str) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def relation(kind: str, target: str) -> str:
        one = f'<Relationship Id="r1" Type="{office}/{kind}" Target="{target}"/>'
        return f'<Relationships xmlns="{package}/relationships">{one}</Relationships>'

    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">'
        '<sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
    }
    return zipped({name: text.encode() for name, text in parts.items()})

"""Parses MovieLens' and RecBole's text files: four fields a line (user, item, rating and time).

| format | file | separator | first line |
|---|---|---|---|
| u.data | ML-100K's `u.data` | tab | a rating |
| dat | ML-1M's and ML-10M's `ratings.dat` | `::` | a rating |
| ratings.csv | ML-latest's `ratings.csv` | comma | `userId,movieId,rating,timestamp` |
| inter | RecBole's `*.inter` | tab | `user_id:token`, `item_id:token`, `rating:float`, `timestamp:float` |
"""

import io
import math
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.formats.source import Raw, Source

_BOM = b"\xef\xbb\xbf"
_FIELDS = ("user", "item", "rating", "timestamp")


@dataclass(frozen=True)
class _Layout:
    separator: bytes
    header: tuple[bytes, ...] | None = None

    def is_rating(self, number: int, line: bytes) -> bool:
        return bool(line.strip()) and not (self.header and number == 1)


_U_DATA = _Layout(b"\t")
_DAT = _Layout(b"::")
_RATINGS_CSV = _Layout(b",", (b"userId", b"movieId", b"rating", b"timestamp"))
_INTER = _Layout(b"\t", (b"user_id:token", b"item_id:token", b"rating:float", b"timestamp:float"))


def _parse(source: Source, layout: _Layout) -> Raw:
    """Returns users, items and times int64, ratings float64, in file order.

    Raises `DpmfError` with file and line for a line that is not four numbers. The values are checked later.
    """
    label, data = source.read()
    body = data.removeprefix(_BOM)
    if layout.header:
        first, _, body = body.partition(b"\n")
        if tuple(first.rstrip(b"\r").split(layout.separator)) != layout.header:
            expected = layout.separator.join(layout.header).decode()
            raise DpmfError(f'{label}:1: the first line is not "{expected}"; {source.fix}')
    columns = _columns(body, layout)
    if columns is None:
        raise _first_fault(label, data, layout, source.fix)
    users, items, ratings, times = columns
    return Raw(
        users,
        items,
        ratings,
        where=partial(source.place_of, is_rating=layout.is_rating),
        fix=source.fix,
        columns={"timestamp": times},
    )


def _columns(
    body: bytes, layout: _Layout
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]] | None:
    """Returns the four columns, or None if a line is at fault.

    Pandas accepts a line with a field too many; the count of separators finds it.
    """
    import pandas as pd

    separators = body.count(layout.separator)
    if len(layout.separator) > 1:
        if b"\t" in body:
            return None
        body = body.replace(layout.separator, b"\t")
    if b"\0" in body or b'"' in body:
        return None
    separator = "\t" if len(layout.separator) > 1 else layout.separator.decode()
    types = {"user": np.int64, "item": np.int64, "rating": np.float64, "timestamp": np.int64}
    if not body.strip():
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty.astype(np.float64), empty
    try:
        # A number that is too large raises ValueError too.
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.BytesIO(body),
                sep=separator,
                names=list(_FIELDS),
                dtype=types,
                index_col=False,
                na_filter=False,
                engine="c",
                low_memory=False,
            )
    except (ValueError, OverflowError, pd.errors.ParserWarning):
        return None
    if separators != 3 * len(frame):
        return None
    user, item, rating, time = (frame[name].to_numpy() for name in _FIELDS)
    return user, item, rating, time


def _first_fault(label: str, data: bytes, layout: _Layout, fix: str) -> DpmfError:
    """Returns the error for the first line that cannot be read. Slow: for files that are known to have one."""
    template = layout.separator.decode().join(_FIELDS).replace("\t", " <tab> ")
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        if not layout.is_rating(number, line):
            continue
        fields = line.rstrip(b"\r").split(layout.separator)
        where = f"{label}:{number}"
        if len(fields) != len(_FIELDS):
            return DpmfError(f"{where}: {len(fields)} field(s), not the 4 of {template}; {fix}")
        for name, field in zip(_FIELDS, fields, strict=True):
            if not _is_number(field, whole=name != "rating"):
                shown = field[:40].decode(errors="replace")
                kind = "a finite number" if name == "rating" else "a whole number"
                return DpmfError(f'{where}: the {name} "{shown}" is not {kind}; {fix}')
    return DpmfError(f"{label}: cannot be read as {template}; {fix}")


def _is_number(field: bytes, *, whole: bool) -> bool:
    try:
        text = field.decode("ascii")
        if whole:
            return "_" not in text and -(2**63) <= int(text) < 2**63
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


parse_u_data = partial(_parse, layout=_U_DATA)
parse_dat = partial(_parse, layout=_DAT)
parse_ratings_csv = partial(_parse, layout=_RATINGS_CSV)
parse_inter = partial(_parse, layout=_INTER)

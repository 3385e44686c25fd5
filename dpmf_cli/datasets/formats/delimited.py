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
from functools import partial
from typing import Any

import numpy as np

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.formats.source import Raw, Source

_BOM = b"\xef\xbb\xbf"
_TYPES = {"user": np.int64, "item": np.int64, "rating": np.float64, "timestamp": np.int64}


def parse(source: Source, separator: bytes, header: bytes = b"") -> Raw:
    """Returns users, items and times int64, ratings float64, in file order.

    Raises `DpmfError` with file and line for a line that is not four numbers. The values are checked later.
    """

    def is_rating(number: int, line: bytes) -> bool:
        return bool(line.strip()) and not (header and number == 1)

    label, data = source.read()
    body = data.removeprefix(_BOM)
    if header:
        first, _, body = body.partition(b"\n")
        if first.rstrip(b"\r") != header:
            raise DpmfError(f'{label}:1: the first line is not "{header.decode()}"; {source.fix}')
    frame = _frame(body, separator)
    if frame is None:
        lines = enumerate(data.removeprefix(_BOM).split(b"\n"), 1)
        ratings = ((number, line) for number, line in lines if is_rating(number, line))
        template = separator.decode().join(_TYPES).replace("\t", " <tab> ")
        faults = (
            f"{label}:{number}: {fault}"
            for number, line in ratings
            if (fault := _fault(line.rstrip(b"\r").split(separator), template))
        )
        raise DpmfError(f"{next(faults, f'{label}: cannot be read as {template}')}; {source.fix}")
    return Raw(
        frame["user"].to_numpy(),
        frame["item"].to_numpy(),
        frame["rating"].to_numpy(),
        where=partial(source.place_of, is_rating=is_rating),
        fix=source.fix,
        columns={"timestamp": frame["timestamp"].to_numpy()},
    )


def _frame(body: bytes, separator: bytes) -> Any:
    """Returns a data frame of the four columns, or None if a line is at fault."""
    import pandas as pd

    if b"\0" in body or b'"' in body or (len(separator) > 1 and b"\t" in body):
        return None
    try:
        # A number that is too large raises ValueError too, and a field too many warns, or is counted.
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.BytesIO(body.replace(separator, b"\t") if len(separator) > 1 else body),
                sep="\t" if len(separator) > 1 else separator.decode(),
                names=list(_TYPES),
                dtype=_TYPES,
                index_col=False,
                na_filter=False,
                engine="c",
                low_memory=False,
            )
        return frame if body.count(separator) == (len(_TYPES) - 1) * len(frame) else None
    except pd.errors.EmptyDataError:
        return pd.DataFrame({name: [] for name in _TYPES}).astype(_TYPES)
    except (ValueError, OverflowError, pd.errors.ParserWarning):
        return None


def _fault(fields: list[bytes], template: str) -> str | None:
    """Says what is wrong with the fields of a line; None if they are numbers."""
    if len(fields) != len(_TYPES):
        return f"{len(fields)} field(s), not the 4 of {template}"
    for name, field in zip(_TYPES, fields, strict=True):
        try:
            text = field.decode("ascii")
            found = float(text) if name == "rating" else int(text)
            sound = math.isfinite(found) if name == "rating" else -(2**63) <= found < 2**63
        except ValueError:
            sound = False
        if not sound or b"_" in field:
            kind = "a finite number" if name == "rating" else "a whole number"
            return f'the {name} "{field[:40].decode(errors="replace")}" is not {kind}'
    return None

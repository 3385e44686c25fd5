"""A user's own ratings file: columns by name or number, any separator of one character, UTF-8.

Quoted fields may hold separators, but not line ends. Ids are taken as text, so that `007` and `7` stay two;
the canonical form sorts them as numbers where all are plain numbers.
"""

import csv
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.datasets.raw import Raw
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.errors import DpmfError, did_you_mean

_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b")
_IDS = ("user", "item")


def parse(path: Path, spec: CsvSpec) -> Raw:
    """Users and items as positions in their labels, ratings float64, in file order.

    Raises `DpmfError` with file, line and fix for a missing or compressed file, undecodable bytes, missing
    columns, and a line without its fields, with an empty id, or with text for a number.
    """
    width, positions, header_line = layout(path, spec)
    columns = _columns(path, spec, width, positions, header_line)
    if columns is None:
        raise _first_fault(path, spec, positions, width)
    extra: dict[str, NDArray[Any]] = {}
    if "timestamp" in columns:
        extra["timestamp"] = _seconds(columns["timestamp"])
    if "epsilon" in columns:
        extra["epsilon"] = columns["epsilon"]

    def where(row: int) -> str:
        for number, (line, _) in enumerate(_rows(path, spec)):
            if number == row:
                return f"{path}:{line}"
        return str(path)

    raw = Raw(
        columns["user"][0],
        columns["item"][0],
        columns["rating"],
        where=where,
        fix="correct the file, or what the config says of it",
        fix_repeated="correct the file, or set `duplicates` to last or mean",
        columns=extra,
        user_labels=columns["user"][1],
        item_labels=columns["item"][1],
    )
    _check_epsilon(raw)
    return raw


def layout(path: Path, spec: CsvSpec) -> tuple[int, dict[str, int], int]:
    """The number of columns, the position of each role's column, and the header's line (0 without one)."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be read ({error.strerror or error}); `path` of data set {spec.name} is relative "
            "to the config file"
        ) from error
    if start.startswith(_COMPRESSED):
        raise DpmfError(f"{path}: is compressed; unpack it and name the file inside")
    line, first = next(_lines(path, spec), (0, []))
    if not line:
        raise DpmfError(f"{path}: the file is empty")
    if not spec.header:
        positions = {role: int(column) for role, column in spec.columns.by_role.items()}
        for role, position in positions.items():
            if position >= len(first):
                raise DpmfError(
                    f"{path}:{line}: has {len(first)} columns, numbered from 0; none is number {position} "
                    f"({role})"
                )
        return len(first), positions, 0
    positions = {}
    for role, column in spec.columns.by_role.items():
        if isinstance(column, int) and column < len(first):
            positions[role] = column
            continue
        if first.count(str(column)) != 1:
            trouble = "two columns" if str(column) in first else "no column"
            hint = did_you_mean(str(column), first)
            raise DpmfError(
                f'{path}:{line}: {trouble} "{column}" ({role}){hint if trouble == "no column" else ""}; '
                f"it has: {', '.join(first)}"
            )
        positions[role] = first.index(str(column))
    return len(first), positions, line


def _columns(
    path: Path, spec: CsvSpec, width: int, positions: dict[str, int], header_line: int
) -> dict[str, Any] | None:
    """Arrays by role, ids as (codes, labels); None where some line is at fault."""
    import pandas as pd

    types: dict[int, Any] = {
        position: object if role in _IDS else np.float64 for role, position in positions.items()
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                path,
                sep=spec.separator,
                header=None,
                names=list(range(width)),
                usecols=sorted(positions.values()),
                skiprows=header_line,
                dtype=types,
                index_col=False,
                na_filter=False,
                encoding="utf-8",
                engine="c",
                low_memory=False,
            )
    except pd.errors.EmptyDataError:
        return _empty(positions)
    except (ValueError, OverflowError, IndexError, pd.errors.ParserWarning):
        return None  # an IndexError where nothing but broken lines are left
    if not _rectangular(path, spec, width, len(frame), header_line):
        return None
    columns: dict[str, Any] = {}
    for role, position in positions.items():
        series = frame[position]
        if role not in _IDS:
            columns[role] = series.to_numpy(dtype=np.float64)
            if role == "timestamp" and not np.isfinite(columns[role]).all():
                return None
            continue
        codes, labels = _labelled(series.to_numpy(dtype=object))
        if any(not label.strip() or "\n" in label or "\0" in label for label in labels):
            return None
        columns[role] = (codes, labels)
    return columns


def _labelled(ids: NDArray[np.object_]) -> tuple[NDArray[np.int32], list[str]]:
    """(n,) positions in the list of different ids. (pandas' own categories would read "007" as 7.0.)"""
    import pandas as pd

    codes, labels = pd.factorize(ids)
    return codes.astype(np.int32), labels.tolist()


def _rectangular(path: Path, spec: CsvSpec, width: int, n_rows: int, header_line: int) -> bool:
    """Whether every line has as many fields as the first, about which pandas is forgiving.

    Counting separators tells, as long as no quoted field may hold one.
    """
    separator = spec.separator.encode()
    separators, quoted = 0, False
    with path.open("rb") as file:
        for _ in range(header_line):
            file.readline()
        while block := file.read(1 << 24):
            separators += block.count(separator)
            quoted = quoted or b'"' in block
    if quoted:
        return all(len(fields) == width for _, fields in _rows(path, spec))
    return separators == n_rows * (width - 1)


def _empty(positions: dict[str, int]) -> dict[str, Any]:
    none = np.empty(0, dtype=np.int32)
    return {role: (none, []) if role in _IDS else none.astype(np.float64) for role in positions}


def _seconds(times: NDArray[np.float64]) -> NDArray[np.int64] | NDArray[np.float64]:
    """Whole seconds as int64; fractions as they are."""
    whole = np.array_equal(times, np.rint(times)) and (np.abs(times) < 2**63).all()
    return times.astype(np.int64) if whole else times


def _check_epsilon(raw: Raw) -> None:
    epsilon = raw.columns.get("epsilon")
    if epsilon is None:
        return
    good = np.isfinite(epsilon) & (epsilon > 0)  # type: ignore[operator]
    if not good.all():
        row = int(np.argmin(good))
        raise DpmfError(
            f"{raw.where(row)}: epsilon is {epsilon[row]}, not a positive number; correct the file"
        )


def _lines(path: Path, spec: CsvSpec) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of every line that is not blank."""

    def decoded() -> Iterator[str]:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DpmfError(
                        f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8; save the file as "
                        "UTF-8"
                    ) from None

    reader = csv.reader(decoded(), delimiter=spec.separator)
    try:
        for fields in reader:
            if len(fields) > 1 or (fields and fields[0].strip()):
                yield reader.line_num, fields
    except csv.Error as error:
        raise DpmfError(f"{path}:{reader.line_num}: {error}; correct the file") from None


def _rows(path: Path, spec: CsvSpec) -> Iterator[tuple[int, list[str]]]:
    lines = _lines(path, spec)
    if spec.header:
        next(lines, None)
    return lines


def _first_fault(path: Path, spec: CsvSpec, positions: dict[str, int], width: int) -> DpmfError:
    """The first line that cannot be read, found line by line; only ever run once something is wrong."""
    for line, fields in _rows(path, spec):
        where = f"{path}:{line}"
        if len(fields) != width:
            return DpmfError(
                f"{where}: {len(fields)} field(s) where the first line has {width}; correct the line"
            )
        for role, position in positions.items():
            text = fields[position]
            if role in _IDS:
                if not text.strip():
                    return DpmfError(f"{where}: the {role} is empty; correct the line")
                if "\n" in text or "\0" in text:
                    return DpmfError(f"{where}: the {role} holds a line end; correct the line")
                continue
            if not _is_number(text):
                more = " of seconds" if role == "timestamp" else ""
                shown = text[:40]
                return DpmfError(
                    f'{where}: the {role} "{shown}" is not a finite number{more}; correct the line'
                )
    return DpmfError(f"{path}: cannot be read as columns separated by {spec.separator!r}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False

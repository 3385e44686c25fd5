"""Parses a user's own ratings file, text or Parquet, as its spec describes it.

In text, a separator is any one character, the encoding UTF-8, and quoted fields may hold separators, but not line
ends. Ids are read as text, so that `007` and `7` stay two ids; the canonical form sorts ids as numbers if all are
plain numbers.
"""

import csv
import math
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.archives import unpacked
from dpmf_cli.datasets.formats import own_columns
from dpmf_cli.datasets.formats.guess import fix_of
from dpmf_cli.datasets.formats.own_columns import (
    IDS,
    NO_TIME,
    fault_of,
    in_words,
    is_time,
    labelled,
    position,
    scale_of,
    seconds,
)
from dpmf_cli.datasets.formats.source import Raw
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.privacy.accounting import LEAST_EPSILON, MOST_EPSILON


def columns_of(path: Path, spec: CsvSpec) -> dict[str, Any]:
    """Returns by role: ids as (positions in their labels (n,), labels), numbers as (n,) float64, in file order.

    Raises `DpmfError` with file, line and fix for a missing or damaged file, undecodable bytes, missing columns, and
    a line with missing fields, with an empty id, or with text in place of a number.
    """
    width, positions, header_line = layout(path, spec)
    # Times are read as text only if some are not numbers, since that takes longer.
    for times in (np.float64, object)[: 1 + ("timestamp" in positions)]:
        found = _columns(path, spec, width, positions, header_line, times)
        if found is not None:
            return found
    raise _first_fault(path, spec, positions, width)


def place_of(path: Path, spec: CsvSpec, row: int) -> str:
    """Returns `file:line` of a row. Rows count from 0."""
    for number, (line, _) in enumerate(_rows(path, spec)):
        if number == row:
            return f"{path}:{line}"
    return str(path)


def layout(path: Path, spec: CsvSpec) -> tuple[int, dict[str, int], int]:
    """Returns the number of columns, the position of each role's column, and the header's line (0 without a header).

    Raises DpmfError for an empty file, and for columns that it does not have.
    """
    line, first = next(_lines(path, spec), (0, []))
    if not line:
        raise DpmfError(f"{path}: the file is empty")
    if not spec.header:
        positions = {role: int(column) for role, column in spec.columns.by_role.items()}
        for role, at in positions.items():
            if at >= len(first):
                raise DpmfError(
                    f"{path}:{line}: has {len(first)} columns, numbered from 0; none is number {at} "
                    f"({role}){fix_of(path, spec)}"
                )
        return len(first), positions, 0
    positions = {}
    for role, column in spec.columns.by_role.items():
        positions[role] = at = position(f"{path}:{line}", first, role, column, partial(fix_of, path, spec))
        unsaid = at == column and "header" not in spec.model_fields_set
        if role == "rating" and unsaid and _is_number(first[at], spec):
            raise DpmfError(
                f"{path}:{line}: the first line looks like a rating; add `header: false` if it is one, or "
                "`header: true` if it names the columns"
            )
    return len(first), positions, line


def _columns(
    path: Path, spec: CsvSpec, width: int, positions: dict[str, int], header_line: int, times: type
) -> dict[str, Any] | None:
    """Returns arrays by role, ids as (codes, labels); None if a line is at fault."""
    import pandas as pd

    types: dict[int, Any] = {
        at: object if role in IDS else times if role == "timestamp" else np.float64
        for role, at in positions.items()
    }
    try:
        with warnings.catch_warnings(), unpacked(path) as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                stream,
                sep=spec.separator,
                header=None,
                names=list(range(width)),
                usecols=sorted(positions.values()),
                skiprows=header_line,
                dtype=types,
                index_col=False,
                na_filter=False,
                encoding="utf-8",
                decimal=spec.decimal,
                engine="c",
                low_memory=False,
            )
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame({at: [] for at in types}).astype(types)
    except (ValueError, OverflowError, IndexError, pd.errors.ParserWarning):
        return None  # pandas raises IndexError if only broken lines are left
    if not _rectangular(path, spec, width, len(frame), header_line):
        return None
    found: dict[str, Any] = {}
    for role, at in positions.items():
        if types[at] is object:
            found[role] = codes, labels = labelled(frame[at].to_numpy(dtype=object))
            if role == "timestamp" and all(map(is_time, labels)):
                found[role] = np.array([seconds(label) for label in labels], np.float64)[codes]
            elif role == "timestamp" or any(map(fault_of, labels)):
                return None
        else:
            found[role] = frame[at].to_numpy()
            if role == "timestamp" and not np.isfinite(found[role]).all():
                return None
    return found


def _rectangular(path: Path, spec: CsvSpec, width: int, n_rows: int, header_line: int) -> bool:
    """Whether every line has as many fields as the first. Pandas does not check this.

    It is enough to count separators, as long as no quoted field can hold one.
    """
    separator = spec.separator.encode()
    separators, quoted = 0, False
    with unpacked(path) as file:
        for _ in range(header_line):
            file.readline()
        while block := file.read(1 << 24):
            separators += block.count(separator)
            quoted = quoted or b'"' in block
    if quoted:
        return all(len(fields) == width for _, fields in _rows(path, spec))
    return separators == n_rows * (width - 1)


def _lines(path: Path, spec: CsvSpec) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of every line that is not blank.

    Raises DpmfError for a line that is not UTF-8 or not CSV.
    """

    def decoded() -> Iterator[str]:
        with unpacked(path) as file:
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
    """Returns the error for the first line that cannot be read. Slow: for files that are known to have one."""
    for line, fields in _rows(path, spec):
        where = f"{path}:{line}"
        if len(fields) != width:
            return DpmfError(
                f"{where}: {len(fields)} field(s) where the first line has {width}; correct the line"
                f"{fix_of(path, spec)}"
            )
        for role, at in positions.items():
            text = fields[at]
            if role in IDS:
                if fault := fault_of(text):
                    return DpmfError(f"{where}: the {role} {fault}; correct the line")
            elif not (_is_number(text, spec) or (role == "timestamp" and is_time(text))):
                more = f" {NO_TIME}" if role == "timestamp" else ""
                return DpmfError(
                    f'{where}: the {role} "{text[:40]}" is not a finite number{more}; correct the line'
                    f"{fix_of(path, spec)}"
                )
    return DpmfError(f"{path}: cannot be read as columns separated by {spec.separator!r}{fix_of(path, spec)}")


def _is_number(text: str, spec: CsvSpec) -> bool:
    if spec.decimal != "." and "." in text:
        return False
    try:
        return math.isfinite(float(text.replace(spec.decimal, "."))) and "_" not in text
    except ValueError:
        return False


def parse(path: Path, spec: CsvSpec) -> Raw:
    """Returns users and items as positions in their labels, ratings float64, in file order.

    Raises `DpmfError` with file, line (in Parquet: row) and fix for ratings that cannot be read.
    """
    packed = own_columns.is_parquet(path)
    columns = (own_columns.columns if packed else columns_of)(path, spec)
    extra: dict[str, Any] = {role: columns[role] for role in ("timestamp", "epsilon") if role in columns}
    times = extra.get("timestamp", np.empty(0))
    if np.array_equal(times, np.rint(times)) and (np.abs(times) < 2**63).all():
        extra |= {"timestamp": times.astype(np.int64)} if "timestamp" in extra else {}

    def where(row: int) -> str:
        return f"{path}: row {row + 1}" if packed else place_of(path, spec, row)

    epsilon = extra.get("epsilon", np.empty(0))
    good = (epsilon >= LEAST_EPSILON) & (epsilon <= MOST_EPSILON)
    if not good.all():
        row = int(np.argmin(good))
        raise DpmfError(
            f"{where(row)}: epsilon is {epsilon[row]}, not a number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}; "
            "correct the file"
        )
    return Raw(
        columns["user"][0],
        columns["item"][0],
        columns["rating"],
        where=where,
        fix="correct the file, or its description in the config",
        fix_repeated="correct the file, or set `duplicates` to last or mean",
        fix_scale=lambda: (
            f"correct the file, or set `scale` to what the site allows ({in_words(scale_of(columns['rating']))})"
        ),
        columns=extra,
        user_labels=columns["user"][1],
        item_labels=columns["item"][1],
    )

"""Parses a user's own ratings file, text or Parquet, as its spec describes it.

In text, a separator is any one character, the encoding UTF-8, and quoted fields may hold separators, but not line
ends. Ids are read as text, so that `007` and `7` stay two ids.
"""

import csv
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints
from dpmf_cli.core.errors import DpmfError, did_you_mean, extra_missing
from dpmf_cli.core.files import open_file
from dpmf_cli.datasets.archives import most_bytes, unpacked
from dpmf_cli.datasets.canonical import PLAIN_TABLE, Raw
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.privacy.accounting import LEAST_EPSILON, MOST_EPSILON


def parse(path: Path, spec: CsvSpec) -> Raw:
    """Returns users and items as positions in their labels, ratings float64, in file order.

    Raises `DpmfError` with file, line (in Parquet: row) and fix for ratings that cannot be read.
    """
    packed = is_parquet(path)
    columns = (_parquet_columns if packed else _text_columns)(path, spec)
    extra: dict[str, Any] = {role: columns[role] for role in ("timestamp", "epsilon") if role in columns}
    times = extra.get("timestamp", np.empty(0))
    if np.array_equal(times, np.rint(times)) and (np.abs(times) < 2**63).all():
        extra |= {"timestamp": times.astype(np.int64)} if "timestamp" in extra else {}

    def where(row: int) -> str:
        if packed:
            return f"{path}: row {row + 1}"
        lines = (f"{path}:{line}" for line, _ in _rows(path, spec))
        return next(islice(lines, row, None), str(path))

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


def joined(train: Raw, test: Raw) -> Raw:
    """Returns the ratings of two files that `parse` read, in this order, with a column `test`: 0 or 1."""
    first, users, items = len(train.values), train.user_labels or [], train.item_labels or []
    columns = {role: np.append(column, test.columns[role]) for role, column in train.columns.items()}
    return replace(
        train,
        users=np.append(train.users, test.users + len(users)),
        items=np.append(train.items, test.items + len(items)),
        values=np.append(train.values, test.values),
        where=lambda row: train.where(row) if row < first else test.where(row - first),
        fix_scale=None,
        columns={**columns, "test": np.repeat(np.array([0, 1], np.int8), [first, len(test.values)])},
        user_labels=users + (test.user_labels or []),
        item_labels=items + (test.item_labels or []),
    )


_IDS = ("user", "item")
_MOST_NAMES, _LONGEST = 30, 40
"""How many names of a header are shown, and how many characters of each: another kind of file may have any length."""


class UnlikeSpecError(DpmfError):
    """A file that is not as its spec describes it: another description may be the fix."""


def not_one(where: str, column: str | int, role: str, names: Sequence[str]) -> UnlikeSpecError:
    """Returns the error about a column that a header lacks, or has twice."""
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    more = ", …" if len(names) > len(shown) else ""
    trouble, hint = "two columns", ""
    if str(column) not in names:
        trouble, hint = "no column", did_you_mean(str(column), shown)
    known = "" if hint.startswith("; known") else f"; it has: {', '.join(shown)}"
    return UnlikeSpecError(f'{where}: {trouble} "{column}" ({role}){hint}{known}{more}')


def _position(where: str, names: Sequence[str], role: str, column: str | int) -> int:
    """Returns the position of a column with that name or number. Raises `DpmfError` if there is not one."""
    if isinstance(column, int) and column < len(names):
        return column
    if names.count(str(column)) != 1:
        raise not_one(where, column, role, names)
    return names.index(str(column))


def _labelled(ids: NDArray[np.object_]) -> tuple[Ints, list[str]]:
    import pandas as pd

    codes, labels = pd.factorize(ids)  # pandas' own categories would read "007" as 7.0
    return codes.astype(np.int32), labels.tolist()


def _fault_of(label: str) -> str | None:
    """Says in words why a text is not an id; None if it is one."""
    if not label.strip():
        return "is empty"
    return "holds a line end" if "\n" in label or "\0" in label else None


def _seconds(text: str) -> float:
    """Returns seconds since 1970 UTC, from a number of them or a date of ISO 8601 (UTC if it has no zone)."""
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    moment = datetime.fromisoformat(text.strip())
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as error:  # a zone that leads before the year 1
        raise ValueError(str(error)) from None


def is_time(text: str) -> bool:
    """Whether a text is a finite number of seconds, or a date."""
    try:
        return math.isfinite(_seconds(text))
    except ValueError:
        return False


_NO_TIME = "of seconds, nor a date like 2015-03-09 18:22:11"
_MOST_STEPS = 100
_PRECISION = 10_000


def scale_of(values: Floats) -> tuple[float, float, float]:
    """Returns (minimum, maximum, step) of ratings (n,), n ≥ 1; step 0 if there is no regular step, or over 100."""
    different = np.unique(values[np.isfinite(values)].astype(np.float64))
    if not len(different):
        return math.nan, math.nan, 0.0
    low, high = float(different[0]), float(different[-1])
    if not high - low < 2**40:
        return low, high, 0.0
    steps = np.rint((different - low) * _PRECISION)
    step = float(np.gcd.reduce(steps.astype(np.int64))) / _PRECISION
    regular = step > 0 and (high - low) / step <= _MOST_STEPS
    exact = np.abs(different - low - steps / _PRECISION).max() < 1e-6 * max(1.0, high - low)
    return low, high, step if regular and exact else 0.0


def in_words(scale: tuple[float, float, float]) -> str:
    """Says in words which ratings occur."""
    low, high, step = scale
    return f"{low:g} to {high:g} occur{f' in steps of {step:g}' if step else ''}"


def _text_columns(path: Path, spec: CsvSpec) -> dict[str, Any]:
    """Returns by role: ids as (positions in their labels (n,), labels), numbers as (n,) float64, in file order."""
    width, positions, header_line = layout(path, spec)
    # Times are read as text only if some are not numbers, since that takes longer.
    for times in (np.float64, object)[: 1 + ("timestamp" in positions)]:
        found = _columns(path, spec, width, positions, header_line, times)
        if found is not None:
            return found
    raise _first_fault(path, spec, positions, width)


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
                raise UnlikeSpecError(
                    f"{path}:{line}: has {len(first)} columns, numbered from 0; none is number {at} ({role})"
                )
        return len(first), positions, 0
    positions = {}
    for role, column in spec.columns.by_role.items():
        positions[role] = at = _position(f"{path}:{line}", first, role, column)
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

    by_role: dict[str, Any] = {**dict.fromkeys(_IDS, object), "timestamp": times}
    types = {at: by_role.get(role, np.float64) for role, at in positions.items()}
    form: dict[str, Any] = {"sep": spec.separator, "decimal": spec.decimal, "engine": "c", **PLAIN_TABLE}
    form |= {"names": list(range(width)), "usecols": sorted(types), "dtype": types}
    try:
        with warnings.catch_warnings(), unpacked(path) as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(stream, skiprows=header_line, **form)
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame({at: [] for at in types}).astype(types)
    except (ValueError, OverflowError, IndexError, pd.errors.ParserWarning):
        return None  # pandas raises IndexError if only broken lines are left
    # Pandas does not check that every line has as many fields as the first. It is enough to count separators, as long
    # as no quoted field can hold one.
    separator, separators, quoted = spec.separator.encode(), 0, False
    with unpacked(path) as file:
        for _ in range(header_line):
            file.readline()
        while block := file.read(1 << 24):
            separators += block.count(separator)
            quoted = quoted or b'"' in block
    if quoted and any(len(fields) != width for _, fields in _rows(path, spec)):
        return None
    if not quoted and separators != len(frame) * (width - 1):
        return None
    found: dict[str, Any] = {}
    for role, at in positions.items():
        if types[at] is object:
            found[role] = codes, labels = _labelled(frame[at].to_numpy(dtype=object))
            if role == "timestamp" and all(map(is_time, labels)):
                found[role] = np.array([_seconds(label) for label in labels], np.float64)[codes]
            elif role == "timestamp" or any(map(_fault_of, labels)):
                return None
        else:
            found[role] = frame[at].to_numpy()
            if role == "timestamp" and not np.isfinite(found[role]).all():
                return None
    return found


def _lines(path: Path, spec: CsvSpec) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of each line that is not blank. Raises DpmfError for what is not UTF-8 CSV."""

    def decoded() -> Iterator[str]:
        with unpacked(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    fault = f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8"
                    raise DpmfError(f"{path}:{number}: {fault}") from None

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
            return UnlikeSpecError(
                f"{where}: {len(fields)} field(s) where the first line has {width}; correct the line"
            )
        for role, at in positions.items():
            text = fields[at]
            if role in _IDS:
                if fault := _fault_of(text):
                    return DpmfError(f"{where}: the {role} {fault}; correct the line")
            elif not (_is_number(text, spec) or (role == "timestamp" and is_time(text))):
                more = f" {_NO_TIME}" if role == "timestamp" else ""
                return UnlikeSpecError(
                    f'{where}: the {role} "{text[:40]}" is not a finite number{more}; correct the line'
                )
    return UnlikeSpecError(f"{path}: cannot be read as columns separated by {spec.separator!r}")


def _is_number(text: str, spec: CsvSpec) -> bool:
    if spec.decimal != "." and "." in text:
        return False
    try:
        return math.isfinite(float(text.replace(spec.decimal, "."))) and "_" not in text
    except ValueError:
        return False


_MAGIC = b"PAR1"
_MOST_ROWS_PER_BYTE = 8
"""In an honest file a row takes a bit at least; millions of equal rows can take a few bytes."""


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet; False if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _parquet_columns(path: Path, spec: CsvSpec) -> dict[str, Any]:
    """Returns the same of a Parquet file."""
    names, chosen = [str(name) for name in _opened(path).schema_arrow.names], {}
    for role, column in spec.columns.by_role.items():
        chosen[role] = name = names[_position(str(path), names, role, column)]
        if names.count(name) != 1:  # a column given by its number, which is read by its name
            raise not_one(str(path), name, role, names)
    file = _opened(path, list(chosen.values()))
    with _reading(path):
        table = file.read(columns=list(chosen.values()), use_threads=False)
        return {role: _cells(table[name], path, role) for role, name in chosen.items()}


def numbers(path: Path, name: str) -> Doubles:
    """Returns (n,) the finite numbers in a column."""
    file = _opened(path)
    with _reading(path):
        column = file.read(columns=[name], use_threads=False)[name].drop_null()
        found: Doubles = _cells(column, path, "rating")
    return found[np.isfinite(found)]


def head(path: Path, rows: int) -> list[tuple[str, list[str]]]:
    """Returns the name of each column, and its first cells as text."""
    file = _opened(path)
    names = [str(name) for name in file.schema_arrow.names]
    with _reading(path):
        batch = next(file.iter_batches(batch_size=rows, use_threads=False), None)
        cells = [column.to_pylist() for column in batch.columns] if batch else [[]] * len(names)
    shown = [["" if cell is None else str(cell) for cell in column] for column in cells]
    return list(zip(names, shown, strict=True))


def _opened(path: Path, texts: list[str] | None = None) -> Any:
    """Opens a pyarrow ParquetFile that keeps the columns `texts` by their distinct texts."""
    try:
        from pyarrow import parquet
    except ImportError:
        needs = "is Parquet, which needs pyarrow (or save the ratings as CSV)"
        raise extra_missing("parquet", f"{path}: {needs}") from None
    with _reading(path):
        file = parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)
    size, head = path.stat().st_size, file.metadata
    unpacked_size = sum(head.row_group(number).total_byte_size for number in range(head.num_row_groups))
    if head.num_rows > _MOST_ROWS_PER_BYTE * size or unpacked_size > most_bytes(size):
        raise DpmfError(f"{path}: unpacks to far more than ratings do; refused")
    return file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise DpmfError(f"{path}: cannot be read as Parquet ({str(error)[:200]}); get it again") from error


def _cells(column: Any, path: Path, role: str) -> Any:
    """Returns ids as (positions (n,) in the list of distinct ids, that list), numbers (n,), times in seconds."""
    import pyarrow as pa

    def refuse(wrong: Flags, fault: str) -> None:
        if wrong.any():
            raise DpmfError(f"{path}: row {np.argmax(wrong) + 1}: the {role} {fault}; correct the file")

    if column.null_count:
        refuse(column.is_null().to_numpy(), "is empty")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if role in _IDS or (role == "timestamp" and text):
        encoded = column.combine_chunks().dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        texts = [each.decode() if isinstance(each, bytes) else str(each) for each in distinct]
        codes, labels = _labelled(np.array([*texts, ""], dtype=object)[encoded.indices.to_numpy()])
        for code, label in enumerate(labels):
            if fault := _fault_of(label):
                refuse(codes == code, fault)
            if role == "timestamp" and not is_time(label):
                refuse(codes == code, f'"{label[:40]}" is not a number {_NO_TIME}')
        if role in _IDS:
            return codes, labels
        return np.array([_seconds(label) for label in labels], np.float64)[codes]
    if pa.types.is_temporal(kind):
        found = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
    else:
        found = column.cast(pa.float64()).to_numpy()
    if role == "timestamp":
        refuse(~np.isfinite(found), "is not finite")
    return np.asarray(found, dtype=np.float64)

"""What the columns of a user's own table hold (ids, times, ratings on a scale), and which is which."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError, did_you_mean, without_extra
from dpmf_cli.core.files import open_file
from dpmf_cli.datasets.archives import most_bytes
from dpmf_cli.datasets.spec import CsvSpec

IDS = ("user", "item")
_MOST_NAMES, _LONGEST = 30, 40
"""How many names of a header are shown, and how many characters of each: another kind of file may have any length."""


def not_one(where: str, column: str | int, role: str, names: Sequence[str], fix: str = "") -> DpmfError:
    """Returns the error about a column that a header lacks, or has twice; the message ends with `fix`."""
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    more = ", …" if len(names) > len(shown) else ""
    trouble, hint = "two columns", ""
    if str(column) not in names:
        trouble, hint = "no column", did_you_mean(str(column), shown)
    known = "" if hint.startswith("; known") else f"; it has: {', '.join(shown)}"
    return DpmfError(f'{where}: {trouble} "{column}" ({role}){hint}{known}{more}{fix}')


def position(
    where: str, names: Sequence[str], role: str, column: str | int, fix: Callable[[], str] = str
) -> int:
    """Returns the position of a column with that name or number. Raises `DpmfError` if there is not one."""
    if isinstance(column, int) and column < len(names):
        return column
    if names.count(str(column)) != 1:
        raise not_one(where, column, role, names, fix())
    return names.index(str(column))


def labelled(ids: NDArray[np.object_]) -> tuple[NDArray[np.int32], list[str]]:
    """Returns (n,) positions in the list of distinct ids, and that list.

    (pandas' own categories would read "007" as 7.0.)
    """
    import pandas as pd

    codes, labels = pd.factorize(ids)
    return codes.astype(np.int32), labels.tolist()


def fault_of(label: str) -> str | None:
    """Says in words why a text is not an id; None if it is one."""
    if not label.strip():
        return "is empty"
    return "holds a line end" if "\n" in label or "\0" in label else None


def seconds(text: str) -> float:
    """Returns seconds since 1970-01-01 UTC, from a number of seconds or a date of ISO 8601 (UTC if it has no zone).

    Raises ValueError for any other text.
    """
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
        return math.isfinite(seconds(text))
    except ValueError:
        return False


NO_TIME = "of seconds, nor a date like 2015-03-09 18:22:11"
_MOST_STEPS = 100
_PRECISION = 10_000


def scale_of(values: NDArray[np.floating]) -> tuple[float, float, float]:
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


_NAMES = {
    "user": "userid user uid customerid customer reviewerid reviewer memberid member accountid account clientid "
    "client visitorid visitor personid person username",
    "item": "itemid item iid movieid movie productid product parentasin asin sku bookid book isbn filmid film "
    "trackid track songid song artistid artist businessid business gameid game animeid anime recipeid recipe jokeid "
    "joke placeid title",
    "rating": "rating ratings stars star score overall userrating bookrating reviewrating starrating value rate vote "
    "points grade",
    "timestamp": "timestamp unixreviewtime time datetime date when reviewdate reviewtime ratedat createdat created "
    "submittedon",
}
"""Names of columns by role, in letters and digits only; the likelier names come first."""

_FEW_ROWS = 30
"""With fewer rows, the number of different values says nothing."""

_MOSTLY = 0.9


@dataclass(frozen=True)
class Column:
    """A column of a file's beginning: its name ("" if it has none), its cells, and the cells that are numbers."""

    name: str
    cells: Sequence[str]
    numbers: Sequence[float]

    @property
    def different(self) -> int:
        return len(set(self.cells))

    @property
    def is_numeric(self) -> bool:
        return len(self.numbers) == len(self.cells) > 0

    @property
    def is_mostly_numeric(self) -> bool:
        """Whether nearly all cells are numbers. So a broken line is found in the column of ratings, and does not make
        another column the rating."""
        return len(self.numbers) >= _MOSTLY * len(self.cells) > 0

    @property
    def is_time(self) -> bool:
        """Whether the cells are dates, or seconds or milliseconds since 1970, in the last decades."""
        if self.is_mostly_numeric:
            return all(1e8 < number < 1e11 or 1e11 < number < 1e14 for number in self.numbers)
        return bool(self.cells) and all(map(is_time, self.cells))

    @property
    def is_count(self) -> bool:
        """Whether the cells are the numbers of the rows, which some programs write into a file."""
        first = self.numbers[0] if self.is_numeric else 0
        return len(self.numbers) > 1 and list(self.numbers) == [first + row for row in range(len(self.cells))]


def roles_of(columns: Sequence[Column], told: Mapping[str, int] | None = None) -> dict[str, tuple[int, str]]:
    """Returns by role the position of its column, and how it was found; leaves out a role that no column can have.

    told   positions by role that are known, and not guessed
    """
    told = told or {}
    found = {role: (at, "as told") for role, at in told.items()}
    free = [column if at not in told.values() else None for at, column in enumerate(columns)]
    named = ((role, _named(free, role)) for role in _NAMES if role not in told)
    found |= {role: (at, "by its name") for role, at in named if at is not None}
    for role in ("timestamp", "rating", "user", "item"):
        taken = {at for at, _ in found.values()}
        left = {at: column for at, column in enumerate(columns) if at not in taken}
        if role not in found and (at := _likely(role, left, columns)) is not None:
            found[role] = at, "by its content"
    return {role: found[role] for role in _NAMES if role in found}


def _named(columns: Sequence[Column | None], role: str) -> int | None:
    names = [re.sub("[^a-z0-9]", "", column.name.lower()) if column else "" for column in columns]
    return next((names.index(word) for word in _NAMES[role].split() if word in names), None)


def _likely(role: str, columns: dict[int, Column], among: Sequence[Column]) -> int | None:
    match role:
        case "timestamp":
            candidates = [at for at, column in columns.items() if column.is_time]
        case "rating":
            # Few rows repeat without the rating; ids are whole numbers; it has few values; it is often third.
            numeric = {
                at: each for at, each in columns.items() if each.is_mostly_numeric and not each.is_time
            }
            order = {
                at: (
                    _repeated(among, at),
                    len(columns) == 3 and all(number.is_integer() for number in each.numbers),
                    each.different if len(each.cells) >= _FEW_ROWS else 0,
                    at != 2,
                )
                for at, each in numeric.items()
            }
            candidates = sorted(order, key=lambda at: order[at])
        case _:
            candidates = [at for at, each in columns.items() if any(each.cells)]
            candidates.sort(key=lambda at: columns[at].is_count and len(columns[at].cells) >= _FEW_ROWS)
    return candidates[0] if candidates else None


def _repeated(columns: Sequence[Column], without: int) -> int:
    """Counts the rows that repeat another if column `without`, times and row numbers are left out. They are few if
    that column is the rating."""
    telling = [
        each.cells
        for at, each in enumerate(columns)
        if at != without and not each.is_time and not each.is_count
    ]
    return len(columns[without].cells) - len(set(zip(*telling, strict=True)))


_MAGIC = b"PAR1"
_MOST_ROWS_PER_BYTE = 8
"""In an honest file a row takes a bit at least; millions of equal rows can take a few bytes."""

Result = TypeVar("Result")


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet; False if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def columns(path: Path, spec: CsvSpec) -> dict[str, Any]:
    """Returns by role: ids as (positions in their labels (n,), labels), numbers as (n,) float64, in file order.

    Raises `DpmfError` with the fix for a damaged file, missing columns, an empty id, and text in place of a number.
    """
    names = [str(name) for name in _opened(path).schema_arrow.names]
    chosen = {
        role: names[position(str(path), names, role, column)] for role, column in spec.columns.by_role.items()
    }
    for role, name in chosen.items():
        if names.count(name) != 1:  # a column given by its number, which is read by its name
            raise not_one(str(path), name, role, names)
    file = _opened(path, list(chosen.values()))
    table = _read(path, lambda: file.read(columns=list(chosen.values()), use_threads=False))
    return {role: _read(path, partial(_cells, table[name], path, role)) for role, name in chosen.items()}


def numbers(path: Path, name: str) -> NDArray[np.float64]:
    """Returns (n,) the finite numbers in a column."""
    file = _opened(path)
    column = _read(path, lambda: file.read(columns=[name], use_threads=False)[name].drop_null())
    found: NDArray[np.float64] = _read(path, lambda: _cells(column, path, "rating"))
    return found[np.isfinite(found)]


def head(path: Path, rows: int) -> tuple[list[str], list[list[str]]]:
    """Returns the names of all columns, and the first rows as text."""
    file = _opened(path)
    batch = _read(path, lambda: next(file.iter_batches(batch_size=rows, use_threads=False), None))
    cells = [] if batch is None else _read(path, lambda: [column.to_pylist() for column in batch.columns])
    shown = [["" if cell is None else str(cell) for cell in column] for column in cells]
    return [str(name) for name in file.schema_arrow.names], [list(row) for row in zip(*shown, strict=True)]


def _opened(path: Path, texts: list[str] | None = None) -> Any:
    """Opens a pyarrow ParquetFile that keeps the columns `texts` by their distinct texts.

    Raises DpmfError without pyarrow, and for a file that is damaged or unpacks to far more than ratings do.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        trouble = f"{path}: is Parquet, which needs pyarrow (or save the ratings as CSV)"
        raise without_extra(trouble, "parquet") from None
    file = _read(path, lambda: parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False))
    size, head = path.stat().st_size, file.metadata
    groups = [head.row_group(number) for number in range(head.num_row_groups)]
    if head.num_rows > _MOST_ROWS_PER_BYTE * size or sum(
        group.total_byte_size for group in groups
    ) > most_bytes(size):
        raise DpmfError(f"{path}: unpacks to far more than ratings do; refused")
    return file


def _read(path: Path, read: Callable[[], Result]) -> Result:
    import pyarrow

    try:
        return read()
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise DpmfError(f"{path}: cannot be read as Parquet ({str(error)[:200]}); get it again") from error


def _cells(column: Any, path: Path, role: str) -> Any:
    """Returns ids as (positions (n,) in the list of distinct ids, that list), numbers (n,), times in seconds."""
    import pyarrow as pa

    def refuse(wrong: NDArray[np.bool_], fault: str) -> None:
        if wrong.any():
            raise DpmfError(f"{path}: row {np.argmax(wrong) + 1}: the {role} {fault}; correct the file")

    if column.null_count:
        refuse(column.is_null().to_numpy(), "is empty")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if role in IDS or (role == "timestamp" and text):
        encoded = column.combine_chunks().dictionary_encode()
        texts = [
            each.decode() if isinstance(each, bytes) else str(each) for each in encoded.dictionary.to_pylist()
        ]
        codes, labels = labelled(np.array([*texts, ""], dtype=object)[encoded.indices.to_numpy()])
        for code, label in enumerate(labels):
            if fault := fault_of(label):
                refuse(codes == code, fault)
            if role == "timestamp" and not is_time(label):
                refuse(codes == code, f'"{label[:40]}" is not a number {NO_TIME}')
        if role in IDS:
            return codes, labels
        return np.array([seconds(label) for label in labels], np.float64)[codes]
    if pa.types.is_temporal(kind):
        found = column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() / 1e6
    else:
        found = column.cast(pa.float64()).to_numpy()
    if role == "timestamp":
        refuse(~np.isfinite(found), "is not finite")
    return np.asarray(found, dtype=np.float64)

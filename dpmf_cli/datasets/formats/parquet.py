"""Reads a user's own ratings from Parquet, by column names or numbers. Needs pyarrow, from the extra `parquet`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError, without_extra
from dpmf_cli.core.files import open_file
from dpmf_cli.datasets.archives import most_bytes
from dpmf_cli.datasets.formats.own_columns import fault_of, labelled, not_one, seconds
from dpmf_cli.datasets.spec import CsvSpec

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
    chosen = {role: _name(path, names, role, column) for role, column in spec.columns.by_role.items()}
    file = _opened(path, list(chosen.values()))
    table = _read(path, lambda: file.read(columns=list(chosen.values()), use_threads=False))
    return {
        role: _read(path, lambda: (_ids if role in ("user", "item") else _numbers)(table[name], path, role))  # noqa: B023
        for role, name in chosen.items()
    }


def numbers(path: Path, name: str) -> NDArray[np.float64]:
    """Returns (n,) the finite numbers in a column."""
    file = _opened(path)
    column = _read(path, lambda: file.read(columns=[name], use_threads=False)[name].drop_null())
    found = _read(path, lambda: _numbers(column, path, "rating"))
    return found[np.isfinite(found)]


def place(path: Path, spec: CsvSpec, row: int) -> str:
    """Returns `file: row N` of a row. `row` counts from 0, N counts from 1."""
    return f"{path}: row {row + 1}"


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


def _name(path: Path, names: list[str], role: str, column: str | int) -> str:
    name = names[column] if isinstance(column, int) and column < len(names) else str(column)
    if names.count(name) != 1:
        raise not_one(str(path), name, role, names)
    return name


def _ids(column: Any, path: Path, role: str) -> tuple[NDArray[np.int32], list[str]]:
    """Returns (n,) positions in the list of distinct ids, and that list."""
    _refuse_nulls(column, path, role)
    encoded = column.combine_chunks().dictionary_encode()
    texts = [
        each.decode() if isinstance(each, bytes) else str(each) for each in encoded.dictionary.to_pylist()
    ]
    codes, labels = labelled(np.array([*texts, ""], dtype=object)[encoded.indices.to_numpy()])
    for code, label in enumerate(labels):
        if fault := fault_of(label):
            row = int(np.argmax(codes == code))
            raise DpmfError(f"{path}: row {row + 1}: the {role} {fault}; correct the file")
    return codes, labels


def _numbers(column: Any, path: Path, role: str) -> NDArray[np.float64]:
    """Returns (n,) the numbers in a column, times as seconds since 1970."""
    import pyarrow as pa

    _refuse_nulls(column, path, role)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
        numbers = column.to_numpy() / 1e6
    elif role == "timestamp" and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        codes, texts = _ids(column, path, role)
        numbers = np.array([_seconds(text, path) for text in texts])[codes]
    else:
        numbers = column.cast(pa.float64()).to_numpy()
    if role == "timestamp" and not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DpmfError(f"{path}: row {row + 1}: the timestamp is not finite; correct the file")
    return np.asarray(numbers, dtype=np.float64)


def _seconds(text: str, path: Path) -> float:
    try:
        return seconds(text)
    except ValueError:
        raise DpmfError(
            f'{path}: the timestamp "{text[:40]}" is not a number of seconds, nor a date like 2015-03-09 18:22:11; '
            "correct the file"
        ) from None


def _refuse_nulls(column: Any, path: Path, role: str) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DpmfError(f"{path}: row {row + 1}: the {role} is empty; correct the file")

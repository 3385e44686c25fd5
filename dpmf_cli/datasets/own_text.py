"""A user's own file as text with a line for each rating.

JSON (a list of objects, or an object a line) and Parquet are written as CSV on the way. Comments at the top become
blank lines, so that all others keep their numbers.
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

from dpmf_cli.core.errors import DpmfError, extra_missing
from dpmf_cli.datasets.archives import most_bytes, unpacked

Form = Literal["text", "JSON", "Parquet"]

_PARQUET = b"PAR1"
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*([\[{])\s*["{\[\]]')
_COMMENT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:#|%|//)+(\s.*\d)?")
_SEPARATORS = (b"\t", b";", b"|", b",", b":", b" ")
_HEAD = 1 << 13
_MOST_COMMENTS = 1 << 20
"""In how many bytes a line that is no comment is looked for."""
_MOST_ROWS_PER_BYTE = 8
"""In an honest Parquet file a row takes a bit at least; millions of equal rows can take a few bytes."""
_ROWS = 1000
"""How many objects are looked at to know the columns, and written at once."""


def form_of(path: Path) -> Form:
    """What a file holds. Raises `DpmfError` like `unpacked`."""
    with unpacked(path) as stream:
        head = _peeked(stream)
    if head.startswith(_PARQUET):
        return "Parquet"
    return "JSON" if _JSON.match(head) else "text"


def comments(path: Path) -> int:
    """How many lines at the top of a text are comments, or blank."""
    with unpacked(path) as stream:
        return _past_comments(stream)[0] if _COMMENT.match(_peeked(stream)) else 0


@contextmanager
def as_text(path: Path) -> Iterator[IO[bytes]]:
    """Yields the lines of a file: of JSON and Parquet as CSV, with a header line.

    Raises `DpmfError` like `unpacked`, and, here or while it is read, for JSON of another form and damaged Parquet.
    """
    with unpacked(path) as stream:
        head = _peeked(stream)
        if head.startswith(_PARQUET):
            yield io.BufferedReader(_Blocks(_of_parquet(path)))
            return
        if head.startswith(b"%%MatrixMarket"):
            raise DpmfError(f"{path}: is Matrix Market; write a line user,item,rating for each rating")
        if _JSON.match(head):
            yield io.BufferedReader(_Blocks(_as_csv(path, stream)))
        elif _COMMENT.match(head):
            skipped, below = _past_comments(stream)
            rest = iter(lambda: stream.read(_HEAD), b"")
            yield io.BufferedReader(_Blocks(chain([b"\n" * skipped + below], rest)))
        else:
            yield stream


def _peeked(stream: Any) -> Any:
    return stream.peek(_HEAD)[:_HEAD]


def _past_comments(stream: IO[bytes]) -> tuple[int, bytes]:
    """How many lines at the top of a text are comments or blank, and those of the lines read that are not.

    It reads down to the first line that is neither blank nor begins like a comment.
    """
    lines: list[bytes] = []
    left, below = _MOST_COMMENTS, b""
    while not below and (line := stream.readline(left)):
        lines.append(line)
        left -= len(line)
        below = line if line.strip() and not _COMMENT.match(line) else b""
    if not (below and left):  # with nothing left, the last line may be cut
        return 0, b"".join(lines)
    skipped = next(at for at, line in enumerate(lines) if line.strip() and not _is_comment(line, below))
    return skipped, b"".join(lines[skipped:])


def _is_comment(line: bytes, below: bytes) -> bool:
    """Whether a line is a comment: above `1,2,3`, `#user,item,rating` is a header, and `#7,a,5` a rating, but
    `# of May, 7, 2024` is a comment."""
    alike = any(line.count(each) == below.count(each) >= 2 for each in _SEPARATORS)
    found = _COMMENT.match(line)
    return bool(found and (found[1] or not alike))


class _Blocks(io.RawIOBase):
    """A stream of blocks of bytes, none of them empty."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        block = self._left or next(self._blocks, b"")
        count = min(len(block), len(buffer))
        buffer[:count], self._left = block[:count], block[count:]
        return count


def _as_csv(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """Yields CSV in blocks, with a column for each key of the first objects. What an object lacks is empty, as are
    lists and objects in it."""
    objects = _objects(path, stream)
    first = list(islice(objects, _ROWS))
    if not any(first):
        raise DpmfError(f"{path}: is JSON, but there are no ratings in it; {_FIX}")
    if len(first) == 1 and all(isinstance(each, dict | list) for each in first[0].values()):
        raise DpmfError(f"{path}: is JSON, but one object of all ratings; {_FIX}")
    keys = list(dict.fromkeys(chain.from_iterable(first)))
    objects = chain(first, objects)
    rows: list[list[Any]] = [keys]
    while rows:
        yield _lines_of(rows)
        found = ([each.get(key) for key in keys] for each in islice(objects, _ROWS))
        rows = [[None if isinstance(value, dict | list) else value for value in row] for row in found]


def _lines_of(rows: list[list[Any]]) -> bytes:
    """Rows as CSV, with nothing in the place of None."""
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerows(rows)
    return held.getvalue().encode(errors="backslashreplace")


def _objects(path: Path, stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    found = _JSON.match(_peeked(stream))
    texts = [stream.read()] if found and found[1] == b"[" else stream
    for number, text in enumerate(texts, 1):
        try:
            rows = json.loads(text.decode("utf-8-sig")) if text.strip() else []
        except (ValueError, RecursionError) as error:
            fault = f"{path}:{number}: is JSON, but neither a list nor an object a line ({error})"
            raise DpmfError(f"{fault}; {_FIX}") from None
        for row in rows if isinstance(rows, list) else [rows]:
            if not isinstance(row, dict):
                raise DpmfError(f"{path}:{number}: is JSON, but not of objects; {_FIX}")
            yield row


_FIX = 'write a list of objects, or one a line, as pandas.DataFrame.to_json(orient="records") does'


def _of_parquet(path: Path) -> Iterator[bytes]:
    """Yields CSV in blocks, with times in seconds, and nothing in a column of lists or other nested values."""
    try:
        import pyarrow as pa
        from pyarrow.csv import WriteOptions, write_csv
        from pyarrow.parquet import ParquetFile
    except ImportError:
        needs = "is Parquet, which needs pyarrow (or save the ratings as CSV)"
        raise extra_missing("parquet", f"{path}: {needs}") from None
    try:
        file = ParquetFile(path, pre_buffer=False)
        size, head = path.stat().st_size, file.metadata
        unpacked_size = sum(head.row_group(number).total_byte_size for number in range(head.num_row_groups))
        if head.num_rows > _MOST_ROWS_PER_BYTE * size or unpacked_size > most_bytes(size):
            raise DpmfError(f"{path}: unpacks to far more than ratings do; refused")
        names = [str(name) for name in file.schema_arrow.names]
        yield _lines_of([names])
        for batch in file.iter_batches(use_threads=False):
            held = pa.BufferOutputStream()
            plain = pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], names)
            write_csv(plain, held, WriteOptions(include_header=False))
            yield held.getvalue().to_pybytes()
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise DpmfError(f"{path}: cannot be read as Parquet ({str(error)[:200]}); get it again") from error


def _plain(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow.compute import divide

    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        ticks = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return divide(ticks.cast(pa.float64(), safe=False), 1e6)
    if pa.types.is_floating(column.type):
        return column.cast(pa.float64())  # 4.1 in single precision is another number
    return pa.nulls(len(column)) if pa.types.is_nested(column.type) else column

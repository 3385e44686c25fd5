"""Parses the Netflix Prize files: a line `movie:`, then its ratings, each as `customer,rating,date`.

A file of `training_set/mv_*.txt` holds one movie, one of `combined_data_[1-4].txt` many; the parser reads both. Two
lists fix a test set: `probe.txt` has only customers, and `grand_prize/judging.txt` has the ratings that were held
back. All files are parsed in blocks of about 32 MB, so that 100 million ratings fit in memory.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import archives
from dpmf_cli.datasets.archives import Member, Wanted
from dpmf_cli.datasets.formats.source import Raw, Source

_BLOCK = 32 << 20
_RATING = ("customer", "rating", "year", "month", "day")
_LINES = {
    1: re.compile(rb"\d{1,9}"),
    2: re.compile(rb"\d{1,9},-?\d+"),
    5: re.compile(rb"\d{1,9},-?\d+,\d{4}-\d{2}-\d{2}"),
}
_SHOWN = {1: "customer", 2: "customer,rating", 5: "customer,rating,date"}
_FIX = "get the file again"


def parse(source: Source) -> Raw:
    """Returns customers and movies int32, ratings float32, times int32 (seconds since 1970, midnight UTC)."""
    blocks: list[tuple[NDArray[Any], ...]] = []
    for movies, customers, ratings, *date in _blocks(source.members, 5, source.fix):
        # Copies, since a view would keep its complete block: six columns where four are needed.
        blocks.append((customers.copy(), movies.copy(), ratings.astype(np.int8), _seconds(*date)))
    customers, movies, ratings, times = _joined(blocks, 4)

    def is_rating(_: int, line: bytes) -> bool:
        return bool(line.strip()) and b":" not in line

    return Raw(
        customers,
        movies,
        ratings.astype(np.float32),
        where=lambda row: source.place_of(row, is_rating),
        fix=source.fix,
        columns={"timestamp": times},
    )


def list_wanted(path: Path, which: str) -> Wanted:
    """Returns what to look for at `path` (a folder, an archive or the bare file) to find the list of a test set."""
    bare = path.is_file() and path.suffix == ".txt"
    return Wanted((path.name if bare else f"{which}.txt",), ("*.tar", "*.tar.gz"))


def read_list(path: Path, which: str) -> list[NDArray[np.int32]]:
    """Reads movies, customers and, of `judging.txt`, ratings, (n,) each; `path` may be an archive with the list.

    Raises DpmfError if the list is missing or empty.
    """
    members, n_fields = partial(archives.members, path, list_wanted(path, which)), 1
    if which == "judging":
        first = next((member.stream.readlines(200) for member in members()), [])
        n_fields = 5 if len(first) > 1 and first[1].count(b",") > 1 else 2
    columns = _joined(list(_blocks(members, n_fields, _FIX)), n_fields + 1)
    if not len(columns[0]):
        raise DpmfError(f"{path}: holds no {which}.txt, or an empty one; {_FIX}")
    return columns[:3]


def _joined(blocks: Sequence[NDArray[Any] | Sequence[NDArray[Any]]], n_columns: int) -> list[NDArray[Any]]:
    """Joins blocks of columns into columns (n,)."""
    if not blocks:
        return [np.empty(0, dtype=np.int32) for _ in range(n_columns)]
    return [np.concatenate([block[i] for block in blocks]) for i in range(n_columns)]


def _seconds(
    years: NDArray[np.int32], months: NDArray[np.int32], days: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Returns (n,) int32 seconds since 1970-01-01 of calendar days, by a table of months."""
    table = np.arange("1970-01", "2038-01", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
    month = np.clip((years - 1970) * 12 + months - 1, 0, len(table) - 1)
    result: NDArray[np.int32] = (table[month] + days - 1) * np.int32(86_400)
    return result


def _blocks(members: Callable[[], Iterator[Member]], n_fields: int, fix: str) -> Iterator[NDArray[np.int32]]:
    """Yields blocks (1 + n_fields, rows) int32: the movie, then the fields of its lines.

    Raises DpmfError for the first line at fault.
    """
    for text in _texts(members()):
        block = _block(text, n_fields)
        if block is None:
            raise _first_fault(members(), n_fields, fix)
        if block.shape[1]:
            yield block


def _texts(members: Iterable[Member]) -> Iterator[bytes]:
    """Yields texts of complete lines that begin with a movie's line. Joins small files and cuts large ones."""
    pending: list[bytes] = []
    size = 0
    for member in members:
        movie = rest = b""
        while chunk := member.stream.read(_BLOCK):
            chunk = rest + chunk
            if b"\r" in chunk:
                chunk = chunk.replace(b"\r\n", b"\n")
            cut = chunk.rfind(b"\n") + 1
            whole, rest = chunk[:cut], chunk[cut:]
            # After a cut inside a movie, the movie's line is repeated.
            pending.append((b"" if b":" in whole.partition(b"\n")[0] or not whole else movie) + whole)
            if (colon := whole.rfind(b":")) >= 0:
                movie = whole[whole.rfind(b"\n", 0, colon) + 1 : colon + 1] + b"\n"
            size += len(whole)
            if size >= _BLOCK:
                yield b"".join(pending)
                pending, size = [], 0
        if rest := rest.rstrip(b"\r"):
            pending.append((b"" if rest.endswith(b":") else movie) + rest + b"\n")
    if pending:
        yield b"".join(pending)


def _block(text: bytes, n_fields: int) -> NDArray[np.int32] | None:
    """Returns (1 + n_fields, rows) of a text, or None if a line of it is at fault."""
    import pandas as pd

    movies: list[int] = []
    counts: list[int] = []
    pieces: list[bytes] = []
    end = 0
    while True:
        colon = text.find(b":", end)
        start = text.rfind(b"\n", 0, colon) + 1 if colon >= 0 else len(text)
        if start < end or (not movies and start):
            return None
        if movies:
            pieces.append(text[end:start])
            counts.append(pieces[-1].count(b"\n"))
        if colon < 0:
            break
        name = text[start:colon]
        if not (name.isdigit() and len(name) < 10 and text[colon + 1 : colon + 2] == b"\n"):
            return None
        movies.append(int(name))
        end = colon + 2
    body = b"".join(pieces)
    rows = sum(counts)
    if not rows:
        return np.empty((n_fields + 1, 0), np.int32)
    dashes, commas = body.count(b"-"), body.count(b",")
    if n_fields == 5:
        body = body.replace(b"-", b",")
    if (commas, dashes) != ({1: 0, 2: rows, 5: 2 * rows}[n_fields], 2 * rows if n_fields == 5 else dashes):
        return None
    try:
        with np.errstate(invalid="ignore"):  # a number that is too large raises ValueError too
            frame = pd.read_csv(
                io.BytesIO(body),
                names=list(_RATING[:n_fields]),
                dtype=np.int64,
                index_col=False,
                na_filter=False,
                engine="c",
                low_memory=False,
            )
    except (ValueError, OverflowError):
        return None
    values = frame.to_numpy().T
    if len(frame) != rows or np.abs(values).max() > 999_999_999:
        return None
    block = np.empty((n_fields + 1, rows), dtype=np.int32)
    block[0] = np.repeat(np.array(movies, dtype=np.int32), counts)
    block[1:] = values
    if n_fields == 5:
        years, months, days = block[3:]
        bad = (years < 1970) | (years > 2037) | (months < 1) | (months > 12) | (days < 1) | (days > 31)
        return None if bad.any() else block
    return block


def _first_fault(members: Iterator[Member], n_fields: int, fix: str) -> DpmfError:
    """Returns the error for the first line at fault. Slow: for files that are known to have one."""
    label = ""
    for member in members:
        label, seen = member.label, False
        for number, line in enumerate(member.stream, 1):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            shown = line[:40].decode(errors="replace")
            if re.fullmatch(rb"\d{1,9}:", line):
                seen = True
            elif not seen:
                return DpmfError(f'{label}:{number}: "{shown}" stands before the first line "movie:"; {fix}')
            elif not _LINES[n_fields].fullmatch(line) or (n_fields == 5 and not _is_day(line[-10:])):
                return DpmfError(f'{label}:{number}: "{shown}" is not {_SHOWN[n_fields]}; {fix}')
    return DpmfError(f"{label}: cannot be read as lines of {_SHOWN[n_fields]}; {fix}")


def _is_day(text: bytes) -> bool:
    year, month, day = (int(part) for part in text.split(b"-"))
    return 1970 <= year <= 2037 and 1 <= month <= 12 and 1 <= day <= 31

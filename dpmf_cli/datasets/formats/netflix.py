"""Parses the Netflix Prize files: a line `movie:`, then its ratings, each as `customer,rating,date`.

A file of `training_set/mv_*.txt` holds one movie, one of `combined_data_[1-4].txt` many; the parser reads both. Two
lists fix a test set: `probe.txt` has only customers, and `grand_prize/judging.txt` has the ratings that were held
back. All files are parsed in blocks of about 32 MB, so that 100 million ratings fit in memory.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
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
    for movies, customers, ratings, *date in _blocks(source.members(), 5, source.fix):
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


def read_probe(path: Path) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Reads (movies, customers) of `probe.txt`, (n,) each; `path` may be an archive that holds the file."""
    movies, customers = _list_file(path, "probe.txt", 1)
    return movies, customers


def read_judging(path: Path) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Reads (movies, customers, ratings) of `judging.txt`, (n,) each; `path` may be an archive that holds it."""
    found = archives.members(path, list_wanted(path, "judging.txt"))
    first = next((member.stream.readlines(200) for member in found), [b"", b""])
    n_fields = 5 if len(first) > 1 and first[1].count(b",") > 1 else 2
    movies, customers, ratings, *_ = _list_file(path, "judging.txt", n_fields)
    return movies, customers, ratings.astype(np.float32)


def list_wanted(path: Path, name: str) -> Wanted:
    """Returns what to look for at `path` (a folder, an archive or the bare file) to find the list of that name."""
    return Wanted((path.name if path.is_file() and path.suffix == ".txt" else name,), ("*.tar", "*.tar.gz"))


def _list_file(path: Path, name: str, n_fields: int) -> list[NDArray[np.int32]]:
    """Reads a list beside the training set: its movies (n,), and each of its fields (n,).

    Raises DpmfError if the list is missing or empty.
    """
    found = archives.members(path, list_wanted(path, name))
    columns = _joined(list(_blocks(found, n_fields, _FIX)), n_fields + 1)
    if not len(columns[0]):
        raise DpmfError(f"{path}: holds no {name}, or an empty one; {_FIX}")
    return columns


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


def _blocks(members: Iterable[Member], n_fields: int, fix: str) -> Iterator[NDArray[np.int32]]:
    """Yields blocks (1 + n_fields, rows) int32: the movie, then the fields of its lines.

    Raises DpmfError for the first line at fault.
    """
    for text, labels in _texts(members):
        block = _block(text, n_fields)
        if block is None:
            raise _first_fault(text, labels, n_fields, fix)
        if block.shape[1]:
            yield block


def _texts(members: Iterable[Member]) -> Iterator[tuple[bytes, list[tuple[int, str, int]]]]:
    """Yields texts of complete lines that begin with a movie's line. Joins small files and cuts large ones.

    With each text comes a list of (offset in the text, file, number of the file's line at that offset).
    """
    pending: list[bytes] = []
    labels: list[tuple[int, str, int]] = []
    size = 0
    for member in members:
        number, movie, rest = 1, b"", b""
        while chunk := member.stream.read(_BLOCK):
            chunk = rest + chunk
            if b"\r" in chunk:
                chunk = chunk.replace(b"\r\n", b"\n")
            cut = chunk.rfind(b"\n") + 1
            whole, rest = chunk[:cut], chunk[cut:]
            if not whole:
                continue
            # After a cut inside a movie, repeat the movie's line; it does not count as a line of the file.
            repeated = movie if movie and b":" not in whole.partition(b"\n")[0] else b""
            labels.append((size, member.label, number - repeated.count(b"\n")))
            pending.append(repeated + whole)
            size += len(pending[-1])
            number += whole.count(b"\n")
            colon = whole.rfind(b":")
            if colon >= 0:
                movie = whole[whole.rfind(b"\n", 0, colon) + 1 : colon + 1] + b"\n"
            if size >= _BLOCK:
                yield b"".join(pending), labels
                pending, labels, size = [], [], 0
        if rest := rest.rstrip(b"\r"):
            labels.append((size, member.label, number - (1 if movie else 0)))
            pending.append((b"" if rest.endswith(b":") else movie) + rest + b"\n")
            size += len(pending[-1])
    if pending:
        yield b"".join(pending), labels


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
    return None if n_fields == 5 and _impossible_date(block) else block


def _impossible_date(block: NDArray[np.int32]) -> bool:
    years, months, days = block[3:]
    bad = (years < 1970) | (years > 2037) | (months < 1) | (months > 12) | (days < 1) | (days > 31)
    return bool(bad.any())


def _first_fault(text: bytes, labels: list[tuple[int, str, int]], n_fields: int, fix: str) -> DpmfError:
    """Returns the error for the first line at fault. Slow: for texts that are known to have one."""
    for part, (offset, label, number) in enumerate(labels):
        stop = labels[part + 1][0] if part + 1 < len(labels) else len(text)
        seen = False
        for at, line in enumerate(text[offset:stop].removesuffix(b"\n").split(b"\n"), number):
            shown = line[:40].decode(errors="replace")
            if re.fullmatch(rb"\d{1,9}:", line):
                seen = True
            elif not seen:
                return DpmfError(f'{label}:{at}: "{shown}" stands before the first line "movie:"; {fix}')
            elif not _LINES[n_fields].fullmatch(line) or (n_fields == 5 and not _is_day(line[-10:])):
                return DpmfError(f'{label}:{at}: "{shown}" is not {_SHOWN[n_fields]}; {fix}')
    return DpmfError(f"{labels[0][1]}: cannot be read as lines of {_SHOWN[n_fields]}; {fix}")


def _is_day(text: bytes) -> bool:
    year, month, day = (int(part) for part in text.split(b"-"))
    return 1970 <= year <= 2037 and 1 <= month <= 12 and 1 <= day <= 31

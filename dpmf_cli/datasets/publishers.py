"""The publishers' file formats: one parser for each, chosen by the format that a catalog entry names.

| format | files | form |
|---|---|---|
| u.data | ML-100K's `u.data` | four fields a line (user, item, rating and time), between tabs |
| dat | ML-1M's and ML-10M's `ratings.dat` | the same, between `::` |
| ratings.csv | ML-latest's `ratings.csv` | the same, between commas, after a header line |
| inter | RecBole's `*.inter` | the same, between tabs, after a header line |
| jester | Jester's spreadsheets | a user a row: the number of jokes rated, then 100 ratings, 99 for "not rated" |
| netflix | the Netflix Prize's | a line `movie:`, then its ratings, each as `customer,rating,date` |

A file of Netflix's `training_set/mv_*.txt` holds one movie, one of `combined_data_[1-4].txt` many. Two lists fix a
test set: `probe.txt` has only customers, and `grand_prize/judging.txt` has the ratings that were held back.
"""

import csv
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Ints, Longs, Singles
from dpmf_cli.core.errors import DpmfError, extra_missing
from dpmf_cli.core.files import sha256
from dpmf_cli.datasets.archives import Source, Wanted
from dpmf_cli.datasets.canonical import PLAIN_TABLE, Raw
from dpmf_cli.datasets.catalog import Content

_BOM = b"\xef\xbb\xbf"
_TYPES = {"user": np.int64, "item": np.int64, "rating": np.float64, "timestamp": np.int64}


def parse_lines(source: Source, separator: bytes, header: bytes = b"") -> Raw:
    """Users, items and times int64, ratings float64, in file order.

    Raises `DpmfError` with file and line for a line that is not four numbers. The values are checked later.
    """

    def is_rating(number: int, line: bytes) -> bool:
        return bool(line.strip()) and not (header and number == 1)

    label, data = source.read()
    data = data.removeprefix(_BOM)
    first, _, below = data.partition(b"\n")
    if header and first.rstrip(b"\r") != header:
        raise DpmfError(f'{label}:1: the first line is not "{header.decode()}"; {source.fix}')
    frame = _frame(below if header else data, separator)
    if frame is None:
        template = separator.decode().join(_TYPES).replace("\t", " <tab> ")
        faults = (
            f"{label}:{number}: {fault}"
            for number, line in enumerate(data.split(b"\n"), 1)
            if is_rating(number, line) and (fault := _fault(line.rstrip(b"\r").split(separator), template))
        )
        raise DpmfError(f"{next(faults, f'{label}: cannot be read as {template}')}; {source.fix}")
    users, items, ratings, times = (frame[name].to_numpy() for name in _TYPES)
    where = partial(source.place_of, is_rating=is_rating)
    return Raw(users, items, ratings, where, source.fix, {"timestamp": times})


def _frame(body: bytes, separator: bytes) -> Any:
    """A data frame of the four columns, or None if a line is at fault."""
    import pandas as pd

    if b"\0" in body or b'"' in body or (len(separator) > 1 and b"\t" in body):
        return None
    one = separator if len(separator) == 1 else b"\t"
    file = io.BytesIO(body if one == separator else body.replace(separator, one))
    try:
        # A number that is too large raises ValueError too, and a field too many warns, or is counted.
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(file, sep=one.decode(), names=list(_TYPES), dtype=_TYPES, **PLAIN_TABLE)
        return frame if body.count(separator) == (len(_TYPES) - 1) * len(frame) else None
    except pd.errors.EmptyDataError:
        return pd.DataFrame({name: [] for name in _TYPES}).astype(_TYPES)
    except (ValueError, OverflowError, pd.errors.ParserWarning):
        return None


def _fault(fields: list[bytes], template: str) -> str | None:
    """What is wrong with the fields of a line; None if they are numbers."""
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


_NOT_RATED = 99.0


def parse_jester(source: Source) -> Raw:
    """Users numbered from 1 through all sheets (in order of name), and items 1 to 100.

    The checksum of each sheet must have been compared, because the library that opens one may end this process, or
    take any memory, for another sheet than the publisher's.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        needs = "holds spreadsheets, which need python-calamine"
        raise extra_missing("excel", f"{source.paths[0]}: {needs}") from None

    found = sorted((member.name, member.stream.read()) for member in source.members())
    sheets = (CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_index(0) for _, data in found)
    table = np.concatenate([np.array(list(sheet.iter_rows()), np.float64) for sheet in sheets])
    rows, jokes = np.nonzero(table[:, 1:] != _NOT_RATED)
    values = table[:, 1:][rows, jokes]
    return Raw(rows + 1, jokes + 1, values, where=lambda _: str(source.paths[0]), fix=source.fix)


_BLOCK = 32 << 20
_MOST = 999_999_999
"""The largest number that a movie or a customer may have, and a rating."""
_DAY = rb"(19[7-9]\d|20[0-2]\d|203[0-7])-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_LINES = {1: rb"\d{1,9}", 2: rb"\d{1,9},-?\d+", 5: rb"\d{1,9},-?\d+," + _DAY}
_SHOWN = {1: "customer", 2: "customer,rating", 5: "customer,rating,date"}


def parse_netflix(source: Source) -> Raw:
    """Customers and movies int32, ratings float32, times int32 (seconds since 1970, midnight UTC)."""
    months = np.arange("1970-01", "2038-01", dtype="datetime64[M]").astype("datetime64[D]").astype(np.int32)
    blocks: list[tuple[NDArray[Any], ...]] = [(np.empty(0, np.int8),) * 4]
    for movies, customers, ratings, year, month, day in _blocks(source, 5):
        times = (months[(year - 1970) * 12 + month - 1] + day - 1) * np.int32(86_400)
        # Copies, since a view would keep its complete block: six columns where four are needed.
        blocks.append((customers.copy(), movies.copy(), ratings.astype(np.int8), times))
    customers, movies, ratings, times = map(np.concatenate, zip(*blocks, strict=True))
    where = partial(source.place_of, is_rating=lambda _, line: bool(line.strip()) and b":" not in line)
    return Raw(customers, movies, ratings.astype(np.float32), where, source.fix, {"timestamp": times})


def list_wanted(path: Path, which: str) -> Wanted:
    """What to look for at `path` (a folder, an archive or the bare file) to find the list of a test set."""
    bare = path.is_file() and path.suffix == ".txt"
    return Wanted((path.name if bare else f"{which}.txt",), ("*.tar", "*.tar.gz"))


def read_list(path: Path, which: str) -> Ints:
    """Movies, customers and, of `judging.txt`, ratings, (n,) each; `path` may be an archive with the list. Raises
    DpmfError if the list is missing or empty."""
    source, n_fields = Source((path,), list_wanted(path, which), "get the file again"), 1
    if which == "judging":
        first = next((member.stream.readlines(200) for member in source.members()), [])
        n_fields = 5 if len(first) > 1 and first[1].count(b",") > 1 else 2
    columns = np.concatenate([np.empty((n_fields + 1, 0), np.int32), *_blocks(source, n_fields)], axis=1)[:3]
    if not columns.size:
        raise DpmfError(f"{path}: holds no {which}.txt, or an empty one; {source.fix}")
    return columns


def _blocks(source: Source, n_fields: int) -> Iterator[Ints]:
    """Yields blocks (1 + n_fields, rows) int32 of about 32 MB of text: the movie, then the fields of its lines."""
    for member in source.members():
        movie = 0  # none yet
        while text := member.stream.read(_BLOCK) + member.stream.readline():
            block = _block(text.replace(b"\r\n", b"\n").removesuffix(b"\r"), n_fields, movie)
            if block is None:
                raise _first_fault(source, n_fields)
            movie, rows = block
            if rows.shape[1]:
                yield rows


def _block(text: bytes, n_fields: int, movie: int) -> tuple[int, Ints] | None:
    """The last movie of a text and (1 + n_fields, rows) of its lines, which begin as lines of `movie`.

    None if a line is at fault. A line `movie:` is read as a rating by customer movie·10⁹ + 1, more than any customer.
    """
    import pandas as pd

    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    movies, dashes = text.count(b":\n") + text.endswith(b":"), text.count(b"-")
    commas = {1: 0, 2: 1, 5: 2}[n_fields] * (lines - movies)
    if text.count(b",") != commas or (n_fields == 5 and dashes != 2 * (lines - movies)):
        return None
    form: dict[str, Any] = {"names": range(n_fields), "dtype": np.int64, **PLAIN_TABLE}
    body = text.replace(b"-", b",") if n_fields == 5 else text
    body = body.replace(b":", b"000000001" + b",0" * (n_fields - 1))
    try:
        with np.errstate(invalid="ignore"):  # a number that is too large raises ValueError too
            values = pd.read_csv(io.BytesIO(body), **form).to_numpy().T
    except (ValueError, OverflowError):
        return None
    is_movie = values[0] > _MOST
    found, marks = np.divmod(values[0, is_movie], _MOST + 1)
    rows = np.concatenate([np.append(movie, found)[np.cumsum(is_movie)][None], values])[:, ~is_movie]
    sound = (values.shape[1], len(found)) == (lines, movies) and (marks == 1).all() and rows[0].all()
    if not sound or values[1:, is_movie].any() or np.abs(rows).max(initial=0) > _MOST:
        return None
    if n_fields == 5:
        years, months, days = rows[3:]
        bad = (years < 1970) | (years > 2037) | (months < 1) | (months > 12) | (days < 1) | (days > 31)
        if bad.any():
            return None
    return int(np.append(movie, found)[-1]), rows.astype(np.int32)


def _first_fault(source: Source, n_fields: int) -> DpmfError:
    """The error for the first line at fault. Slow: for files that are known to have one."""
    label = ""
    for member in source.members():
        label, seen = member.label, False
        for number, line in enumerate(member.stream, 1):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            shown = line[:40].decode(errors="replace")
            if re.fullmatch(rb"(?!0+:)\d{1,9}:", line):
                seen = True
            elif not (seen and re.fullmatch(_LINES[n_fields], line)):
                fault = f"is not {_SHOWN[n_fields]}" if seen else 'stands before the first line "movie:"'
                return DpmfError(f'{label}:{number}: "{shown}" {fault}; {source.fix}')
    return DpmfError(f"{label}: cannot be read as lines of {_SHOWN[n_fields]}; {source.fix}")


PARSERS: dict[str, Callable[[Source], Raw]] = {
    "u.data": partial(parse_lines, separator=b"\t"),
    "dat": partial(parse_lines, separator=b"::"),
    "ratings.csv": partial(parse_lines, separator=b",", header=b"userId,movieId,rating,timestamp"),
    "inter": partial(
        parse_lines, separator=b"\t", header=b"user_id:token\titem_id:token\trating:float\ttimestamp:float"
    ),
    "jester": parse_jester,
    "netflix": parse_netflix,
}
VERIFIED = ("jester",)
"""Formats of which no file is opened whose checksum is not the publisher's."""

FEATURES_VERSION = 1
"""Raise it when `read_features` returns something else for the same file."""
_GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *(
        "Fantasy",
        "Film-Noir",
        "Horror",
        "Musical",
        "Mystery",
        "Romance",
        "Sci-Fi",
        "Thriller",
        "War",
        "Western",
    ),
)
"""In the order of the flags in `u.item`."""


def _of_flags(line: str) -> list[str]:
    number, title, _, _, _, *flags = line.split("|")
    genres = (genre for genre, flag in zip(_GENRES, flags, strict=True) if flag == "1")
    return [number, title, "|".join(genres)]


ITEM_LINES: dict[str, Callable[[str], list[str]]] = {
    "u.item": _of_flags,
    "movies.dat": lambda line: line.split("::"),
    "movies.csv": lambda line: next(csv.reader([line])),
}
"""Makes of a line of a MovieLens list of films: id, title with the year in brackets, genres with | between them."""


def read_features(source: Source, film_list: Content) -> tuple[Longs, dict[str, Singles]]:
    """Ascending ids of items (n,), and what a publisher's list of films says of them, (n,) each: 1 for each
    genre of a film, and the `year` (that of a film without one is the mean). Raises DpmfError if
    the list is not beside the ratings, or is not the publisher's.
    """
    wanted = replace(source.wanted, patterns=(film_list.pattern,))
    label, data = replace(source, wanted=wanted).read()
    if f"sha256:{sha256(data)}" not in film_list.digests:
        raise DpmfError(f"{label}: it is damaged, or another version; {source.fix}")
    text = data.decode("utf-8" if film_list.format == "movies.csv" else "latin-1").splitlines()
    films = [ITEM_LINES[film_list.format](line) for line in text if line[:1].isdigit()]
    films.sort(key=lambda film: int(film[0]))
    found = [re.search(r"\((\d{4})\)\s*$", title) for _, title, _ in films]
    years = np.array([float(year[1]) if year else np.nan for year in found])
    of_each = [set(genres.split("|")) for _, _, genres in films]
    columns = {
        genre: np.array([genre in genres for genres in of_each], np.float32)
        for genre in sorted(set().union(*of_each) - {"", "(no genres listed)"})
    }
    columns["year"] = np.where(np.isnan(years), np.nanmean(years), years).astype(np.float32)
    return np.array([int(film[0]) for film in films]), columns

"""The parser of a user's own ratings file, text, JSON or Parquet, as its spec describes it.

In text, a separator is any one character, the encoding UTF-8, and quoted fields may hold separators, but not line
ends. Ids are read as text, so that `007` and `7` stay two ids; only the words of `MISSING` are none.
"""

import csv
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints, Longs
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.datasets.canonical import PLAIN_TABLE, Raw
from dpmf_cli.datasets.own_text import as_text, form_of
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.privacy.accounting import LEAST_EPSILON, MOST_EPSILON


def parse(path: Path, spec: CsvSpec) -> Raw:
    """Users and items as positions in their labels, ratings float64, in file order, without the rows that
    the spec leaves out.

    Raises `DpmfError` with file, line (in JSON and Parquet: row) and fix for ratings that cannot be read.
    """
    if form_of(path) != "text":
        spec = spec.model_copy(update={"separator": ",", "header": True, "decimal": "."})
    columns = _text_columns(path, spec)
    lacks = {role: column[0] < 0 if role in _IDS else np.isnan(column) for role, column in columns.items()}
    missing: Flags = np.logical_or.reduce(list(lacks.values()))
    zero = ~missing & (columns["rating"] == 0) & spec.zero_is_missing
    kept = np.flatnonzero(~(missing | zero))

    def place(row: int) -> str:
        return next(islice((where for where, _ in _rows(path, spec)), row, None), str(path))

    def where(row: int) -> str:
        return place(int(kept[row]) if row < len(kept) else row)

    def occurring() -> str:
        low, high, step = scale_of(rated)
        return in_words(
            (low, high, step if len(np.unique(rated)) > 2 else 0.0)
        )  # two are no evidence of a step

    if missing.any() and not spec.drop_missing:
        row = int(np.argmax(missing))
        role = next(role for role, each in lacks.items() if each[row])
        fix = f"correct the file, or leave out all such rows ({missing.sum():,}) by `drop_missing: true`"
        raise DpmfError(f"{place(row)}: the {role} is missing; {fix}")
    extra = {role: column[kept] for role, column in columns.items() if role not in _IDS}
    rated = extra.pop("rating")
    times = extra.get("timestamp", np.empty(0))
    if np.array_equal(times, np.rint(times)) and (np.abs(times) < 2**63).all():
        extra |= {"timestamp": times.astype(np.int64)} if "timestamp" in extra else {}
    epsilon = extra.get("epsilon", np.empty(0))
    good = (epsilon >= LEAST_EPSILON) & (epsilon <= MOST_EPSILON)
    if not good.all():
        row = int(np.argmin(good))
        raise DpmfError(
            f"{where(row)}: epsilon is {epsilon[row]}, not a number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}; "
            "correct the file"
        )
    users, user_labels = _used(columns["user"], kept)
    items, item_labels = _used(columns["item"], kept)
    no_rating = "" if rated.all() else ", or `zero_is_missing: true` if 0 means that there is no rating"
    return Raw(
        users,
        items,
        rated,
        where=where,
        fix="correct the file, or its description in the config",
        fix_repeated="correct the file, or set `duplicates` to last or mean",
        fix_scale=lambda: (
            f"correct the file, or set `scale` to what the site allows ({occurring()}){no_rating}"
        ),
        columns=extra,
        user_labels=user_labels,
        item_labels=item_labels,
        left_out=Counter(drop_missing=int(missing.sum()), zero_is_missing=int(zero.sum())),
    )


def joined(train: Raw, test: Raw) -> Raw:
    """The ratings of two files that `parse` read, in this order, with a column `test`: 0 or 1."""
    first, users, items = len(train.values), train.user_labels or [], train.item_labels or []
    columns = {role: np.append(column, test.columns[role]) for role, column in train.columns.items()}
    return replace(
        train,
        users=np.append(train.users, test.users + len(users)),
        items=np.append(train.items, test.items + len(items)),
        values=np.append(train.values, test.values),
        where=lambda row: train.where(row) if row < first else test.where(row - first),
        fix_scale=None,
        left_out=train.left_out + test.left_out,
        columns={**columns, "test": np.repeat(np.array([0, 1], np.int8), [first, len(test.values)])},
        user_labels=users + (test.user_labels or []),
        item_labels=items + (test.item_labels or []),
    )


VERSION = 3
"""Raise it when the same file may give other ratings."""
_IDS = ("user", "item")
MISSING = ("", "NaN", "nan", "NA", "N/A", "NULL", "null", "None", "\\N")
"""What programs write for a number, an id or a time that is missing."""
_MOST_NAMES, _LONGEST = 30, 40
"""How many names of a header are shown, and how many characters of each: another kind of file may have any length."""


class UnlikeSpecError(DpmfError):
    """A file that is not as its spec describes it: another description may be the fix."""


def not_one(where: str, column: str | int, role: str, names: Sequence[str]) -> UnlikeSpecError:
    """The error about a column that a header lacks, or has twice."""
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    more = ", …" if len(names) > len(shown) else ""
    trouble, hint = "two columns", ""
    if str(column) not in names:
        trouble, hint = "no column", did_you_mean(str(column), shown)
    known = "" if hint.startswith("; known") else f"; it has: {', '.join(shown)}"
    return UnlikeSpecError(f'{where}: {trouble} "{column}" ({role}){hint}{known}{more}')


def _position(where: str, names: Sequence[str], role: str, column: str | int) -> int:
    """The position of a column with that name or number. Raises `DpmfError` if there is not one."""
    if isinstance(column, int) and column < len(names):
        return column
    if names.count(str(column)) != 1:
        raise not_one(where, column, role, names)
    return names.index(str(column))


def _labelled(ids: NDArray[np.object_]) -> tuple[Ints, list[str]]:
    """Positions in the labels (n,), −1 for what is missing or blank, and these labels."""
    import pandas as pd

    codes, found = pd.factorize(ids)  # pandas' own categories would read "007" as 7.0
    labels = found.tolist()
    blank = np.array([*(not label.strip() for label in labels), True])
    return np.where(blank[codes], -1, codes).astype(np.int32), labels


def _used(ids: tuple[Ints, list[str]], kept: Longs) -> tuple[Ints, list[str]]:
    """The positions in their labels of the rows that are kept, and these labels without any that none has."""
    codes, labels = ids[0][kept], ids[1]
    used = np.bincount(codes, minlength=len(labels)) > 0
    return (np.cumsum(used) - 1)[codes].astype(np.int32), list(compress(labels, used))


def _is_broken(label: str) -> bool:
    """Whether a text cannot be an id, since it holds a line end or a NUL."""
    return "\n" in label or "\0" in label


def _seconds(text: str) -> float:
    """Seconds since 1970 UTC, from a number of them or a date of ISO 8601 (UTC if it has no zone)."""
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
    """(minimum, maximum, step) of ratings (n,), n ≥ 1; step 0 if there is no regular step, or over 100."""
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
    """In words, which ratings occur."""
    low, high, step = scale
    return f"{low:g} to {high:g} occur{f' in steps of {step:g}' if step else ''}"


def _text_columns(path: Path, spec: CsvSpec) -> dict[str, Any]:
    """By role: ids as (positions in their labels (n,), labels), numbers as (n,) float64, in file order."""
    width, positions, header_line = layout(path, spec)
    # Times are read as text only if some are not numbers, since that takes longer.
    for times in (np.float64, object)[: 1 + ("timestamp" in positions)]:
        found = _columns(path, spec, width, positions, header_line, times)
        if found is not None:
            return found
    raise _first_fault(path, spec, positions, width)


def layout(path: Path, spec: CsvSpec) -> tuple[int, dict[str, int], int]:
    """The number of columns, the position of each role's column, and the header's line (0 without a header).

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
    positions, where = {}, f"{path}:{line}" if form_of(path) == "text" else str(path)
    for role, column in spec.columns.by_role.items():
        positions[role] = at = _position(where, first, role, column)
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
    """Arrays by role, ids as (codes, labels); None if a line is at fault."""
    import pandas as pd

    by_role: dict[str, Any] = {**dict.fromkeys(_IDS, object), "timestamp": times}
    types = {at: by_role.get(role, np.float64) for role, at in positions.items()}
    form: dict[str, Any] = {"sep": spec.separator, "decimal": spec.decimal, "engine": "c", **PLAIN_TABLE}
    form |= {"names": list(range(width)), "usecols": sorted(types), "dtype": types}
    form |= {"na_filter": True, "keep_default_na": False, "na_values": MISSING}
    try:
        with warnings.catch_warnings(), as_text(path) as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(stream, skiprows=header_line, **form)
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame({at: [] for at in types}).astype(types)
    except (ValueError, OverflowError, IndexError, pd.errors.ParserWarning):
        return None  # pandas raises IndexError if only broken lines are left
    if form_of(path) == "text" and _is_ragged(path, spec, width, header_line, len(frame)):
        return None
    found: dict[str, Any] = {}
    for role, at in positions.items():
        if types[at] is object:
            found[role] = codes, labels = _labelled(frame[at].to_numpy(dtype=object))
            if any(map(_is_broken, labels)):
                return None
            if role == "timestamp":
                if not all(map(is_time, filter(str.strip, labels))):
                    return None
                found[role] = _times(codes, labels)
        else:
            found[role] = frame[at].to_numpy()
            if role == "timestamp" and np.isinf(found[role]).any():
                return None
    return found


def _is_ragged(path: Path, spec: CsvSpec, width: int, header_line: int, rows: int) -> bool:
    """Whether a line has not as many fields as the first, which pandas does not check. Counting separators is enough,
    as long as no quoted field can hold one."""
    separator, separators = spec.separator.encode(), 0
    with as_text(path) as file:
        for _ in range(header_line):
            file.readline()
        while block := file.read(1 << 24):
            separators += block.count(separator)
            if b'"' in block:
                return any(len(fields) != width for _, fields in _rows(path, spec))
    return separators != rows * (width - 1)


def _times(codes: Ints, labels: list[str]) -> Doubles:
    """(n,) seconds since 1970, NaN where the code is −1."""
    return np.array([*(_seconds(each) if each.strip() else np.nan for each in labels), np.nan])[codes]


def _lines(path: Path, spec: CsvSpec) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of each line that is not blank. Raises DpmfError for what is not UTF-8 CSV."""

    def decoded() -> Iterator[str]:
        with as_text(path) as file:
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


def _rows(path: Path, spec: CsvSpec) -> Iterator[tuple[str, list[str]]]:
    """Yields the place of each rating, and its fields."""
    lines, is_text = _lines(path, spec), form_of(path) == "text"
    if spec.header:
        next(lines, None)
    for row, (line, fields) in enumerate(lines, 1):
        yield f"{path}:{line}" if is_text else f"{path}: row {row}", fields


def _first_fault(path: Path, spec: CsvSpec, positions: dict[str, int], width: int) -> DpmfError:
    """The error for the first line that cannot be read. Slow: for files that are known to have one."""
    for where, fields in _rows(path, spec):
        if len(fields) != width:
            return UnlikeSpecError(
                f"{where}: {len(fields)} field(s) where the first line has {width}; correct the line"
            )
        for role, at in positions.items():
            text = fields[at]
            if role in _IDS:
                if _is_broken(text):
                    return DpmfError(f"{where}: the {role} holds a line end or a NUL; correct the line")
            elif not (text in MISSING or _is_number(text, spec) or (role == "timestamp" and is_time(text))):
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

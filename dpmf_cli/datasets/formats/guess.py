"""What a file of ratings looks like: for messages that name the fix, and for who has no config yet."""

import csv
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.datasets.formats import parquet
from dpmf_cli.datasets.formats.roles import Column, roles_of
from dpmf_cli.datasets.formats.unpacked import unpacked
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.errors import DpmfError

_SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", ":": "colon", " ": "space"}
_ROWS, _BYTES = 1000, 1 << 18
_AGREEING = 0.9
"""Part of the lines that a separator cuts into as many fields."""
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+(,\d+)?\s*")
_MOST_STEPS = 100
_PRECISION = 10_000


@dataclass(frozen=True)
class Layout:
    """How the beginning of a file looks: `columns` have their names where there is a `header`."""

    separator: str
    header: bool
    decimal: str
    columns: tuple[Column, ...]

    @property
    def roles(self) -> dict[str, str | int]:
        """Which column is what, by its name, or by its number without a header; what cannot be told is left out."""
        return {
            role: self.columns[at].name if self.header else at
            for role, (at, _) in roles_of(self.columns).items()
        }


@dataclass(frozen=True)
class Guess:
    """What a config may say of a file.

    columns   by role (user, item, rating, timestamp) a name, or a number where there is no header; not what cannot be
              told
    scale     (minimum, maximum, step) of what occurs, step 0 for many different values; None without a column of
              ratings. The site may allow more, and what it allows must be public: ask
    words     what was guessed and from what, a statement each
    """

    separator: str
    header: bool
    decimal: str
    columns: dict[str, str | int]
    scale: tuple[float, float, float] | None
    words: tuple[str, ...]

    @property
    def keys(self) -> dict[str, Any]:
        """The same as keys of `dataset:`, without those that are so by default."""
        plain = {"separator": ",", "header": True, "decimal": "."}
        given = {key: getattr(self, key) for key, usual in plain.items() if getattr(self, key) != usual}
        scale = dict(zip(("minimum", "maximum", "step"), self.scale, strict=True)) if self.scale else {}
        return {"columns": self.columns, **given, "scale": scale}


def guess_format(path: Path) -> Guess:
    """Looks at the beginning of a file for its layout, and at all of its ratings for the scale.

    Raises `DpmfError` for a file that cannot be read, is empty, or whose lines fall into no three columns.
    """
    layout = layout_of(path)
    columns, scale = layout.roles, None
    if "rating" in columns:
        values = _ratings(path, layout, roles_of(layout.columns)["rating"][0])
        scale = scale_of(values) if len(values) else None
    return Guess(
        layout.separator, layout.header, layout.decimal, columns, scale, tuple(_words(path, layout, scale))
    )


def layout_of(path: Path) -> Layout:
    """Raises `DpmfError` as `guess_format`."""
    if parquet.is_parquet(path):
        names, rows = parquet.head(path, _ROWS)
        return Layout(",", True, ".", _columns(names, rows, "."))
    with unpacked(path) as stream:
        head = stream.read(_BYTES)
    lines = head.decode("utf-8-sig", errors="replace").replace("\0", " ").splitlines()
    lines = [line for line in (lines[:-1] if len(head) == _BYTES else lines) if line.strip()][: _ROWS + 1]
    if not lines:
        raise DpmfError(f"{path}: the file is empty")
    separator, (first, *rest) = _separated(path, lines)
    comma = any(
        all(map(_COMMA_NUMBER.fullmatch, cells)) and "," in "".join(cells)
        for cells in zip(*rest, strict=True)
    )
    decimal = "," if comma else "."
    header = _is_header(first, _columns([""] * len(first), rest, decimal), decimal)
    return Layout(
        separator,
        header,
        decimal,
        _columns(first if header else [""] * len(first), rest if header else [first, *rest], decimal),
    )


def fix_of(path: Path, spec: CsvSpec) -> str:
    """What to write into a config instead, as the end of a message; "" where the file looks as the config says."""
    try:
        found = layout_of(path)
    except DpmfError:
        return ""
    fixes = []
    if found.separator != spec.separator:
        fixes.append(
            f"the file looks {_SEPARATORS[found.separator]}-separated: add `separator: {json.dumps(found.separator)}`"
        )
    if found.header and not spec.header:
        fixes.append("its first line looks like names of columns: remove `header: false`")
    if spec.header and not found.header:
        columns = ", ".join(f"{role}: {at}" for role, at in found.roles.items())
        fixes.append(
            "its first line looks like a rating, not like names: add `header: false` and number the columns from 0, "
            f"as in `columns: {{{columns}}}`"
        )
    if found.decimal != spec.decimal:
        words = {",": "decimal commas", ".": "decimal points"}[found.decimal]
        fixes.append(f'its numbers look written with {words}: add `decimal: "{found.decimal}"`')
    return "".join(f"; {fix}" for fix in fixes)


def scale_of(values: NDArray[np.floating]) -> tuple[float, float, float]:
    """(minimum, maximum, step) of ratings (n,), n ≥ 1; a step of 0 where more than a hundred would lie between."""
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
    """The ratings that occur, in words."""
    low, high, step = scale
    return f"{low:g} to {high:g} occur{f' in steps of {step:g}' if step else ''}"


def _separated(path: Path, lines: list[str]) -> tuple[str, list[list[str]]]:
    """The first separator that cuts most lines into the same number of fields, three at least; and these lines."""
    for separator in _SEPARATORS:
        try:
            rows = list(csv.reader(lines, delimiter=separator))
        except csv.Error:
            continue
        (width, count), *_ = Counter(map(len, rows)).most_common(1)
        if width >= 3 and count >= _AGREEING * len(rows):
            return separator, [row for row in rows if len(row) == width]
    kinds = ", ".join(_SEPARATORS.values())
    raise DpmfError(
        f"{path}: its lines fall into no three columns by any of {kinds}; write the ratings as CSV"
    )


def _columns(names: list[str], rows: list[list[str]], decimal: str) -> tuple[Column, ...]:
    cells = list(zip(*rows, strict=True)) or [()] * len(names)
    return tuple(Column(name, each, _numbers(each, decimal)) for name, each in zip(names, cells, strict=True))


def _numbers(cells: tuple[str, ...], decimal: str) -> list[float]:
    """Those of the cells that are finite numbers."""
    found = []
    for cell in cells:
        try:
            found.append(float(cell.replace(decimal, ".")))
        except ValueError:
            continue
    return [each for each in found if math.isfinite(each)]


def _is_header(first: list[str], rest: tuple[Column, ...], decimal: str) -> bool:
    """Whether the first line is no number, or no date, where all others are; of a single line, whether it is text."""
    alone = _columns([""] * len(first), [first], decimal)
    if not any(column.cells for column in rest):
        return not any(column.is_numeric for column in alone)
    return any(
        (below.is_numeric and not above.is_numeric) or (below.is_time and not above.is_time)
        for above, below in zip(alone, rest, strict=True)
    )


def _ratings(path: Path, layout: Layout, at: int) -> NDArray[np.float64]:
    """(n,) every finite number in a column."""
    if parquet.is_parquet(path):
        return parquet.numbers(path, layout.columns[at].name)
    import pandas as pd

    with unpacked(path) as stream:
        try:
            frame = pd.read_csv(
                stream,
                sep=layout.separator,
                header=None,
                names=list(range(len(layout.columns))),
                usecols=[at],
                skiprows=int(layout.header),
                decimal=layout.decimal,
                on_bad_lines="skip",
                encoding_errors="replace",
                index_col=False,
                low_memory=False,
            )
            found: NDArray[np.float64] = pd.to_numeric(frame[at], errors="coerce").to_numpy(np.float64)
        except (ValueError, OverflowError):  # of pandas; the other of a number that is too large
            return np.array(layout.columns[at].numbers)
    return found[np.isfinite(found)]


def _words(path: Path, layout: Layout, scale: tuple[float, float, float] | None) -> list[str]:
    if parquet.is_parquet(path):
        said = ["Parquet"]
    else:
        header = "a header line" if layout.header else "no header line"
        comma = ", decimal commas" if layout.decimal == "," else ""
        said = [f"{_SEPARATORS[layout.separator]}-separated, {header}{comma}"]
    found = roles_of(layout.columns)
    for role in ("user", "item", "rating", "timestamp"):
        if role not in found:
            said += [] if role == "timestamp" else [f"no column looks like the {role}"]
            continue
        at, named = found[role]
        name = f'"{layout.columns[at].name}"' if layout.header else f"number {at}, counted from 0"
        said.append(f"{role}: column {name}, by {'its name' if named else 'what is in it'}")
    if scale:
        said.append(f"{in_words(scale)}; the scale is what the site allows, which may be wider")
    return said

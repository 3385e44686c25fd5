"""Reads files that a person brings to a released model: pairs to predict, or users' own ratings."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import read_file
from dpmf_cli.releasing.recommender import OwnRatings

_SEPARATORS = ",;\t|"
"""Possible separators of fields; a file has the one that its header has most often."""


def read_pairs(path: Path, names: Mapping[str, str]) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """Reads (n,) users and (n,) items from a CSV file. Raises DpmfError with the line and the fix."""
    users, items = _read(path, ("user", "item"), names)
    return np.array(users, np.str_), np.array(items, np.str_)


def read_own(path: Path, names: Mapping[str, str]) -> OwnRatings:
    """Reads ratings from a CSV file. Raises DpmfError with the line and the fix."""
    users, items, texts = _read(path, ("user", "item", "rating"), names)
    values = []
    for line, text in enumerate(texts, 2):
        try:
            value = float(text.replace(",", "."))  # a decimal comma
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DpmfError(
                f'{path}:{line}: the rating "{text[:40]}" is not a finite number; correct the line'
            )
        values.append(value)
    return OwnRatings(np.array(users, np.str_), np.array(items, np.str_), np.array(values, np.float64))


def _read(path: Path, roles: tuple[str, ...], names: Mapping[str, str]) -> list[list[str]]:
    """Reads the columns of these roles, found by the data set's names for them, or by the names of the roles."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror or error}; give a CSV file") from None
    except UnicodeDecodeError:
        raise DpmfError(f"{path}: is not UTF-8; save the file as UTF-8") from None
    separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
    try:
        lines = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    except csv.Error as error:
        raise DpmfError(f"{path}: {error}; correct the file") from None
    header = lines[0] if lines else []
    found = [_place(path, header, role, names.get(role, role)) for role in roles]
    for number, row in enumerate(lines[1:], 2):
        if len(row) != len(header):
            raise DpmfError(
                f"{path}:{number}: {len(row)} field(s) where the header has {len(header)}; correct the line"
            )
    return [[row[place] for row in lines[1:]] for place in found]


def _place(path: Path, header: list[str], role: str, name: str) -> int:
    for each in (name, role):
        if header.count(each) == 1:
            return header.index(each)
    raise DpmfError(
        f'{path}:1: no column "{name}" ({role}); it has: {", ".join(header) or "nothing"}. Write a header '
        "line with the names"
    )

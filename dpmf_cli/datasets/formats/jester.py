"""Parses Jester's spreadsheets. A row is a user: the number of jokes rated, then 100 ratings, 99 for "not rated".

Users are numbered through all three sheets, from the first row of the first to the last row of the last. The sheets
are read by python-calamine, which takes 1 s a sheet where xlrd takes 5, in a process of its own (sheet_reader.py).
"""

import subprocess

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.children import python
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.formats import sheet_reader
from dpmf_cli.datasets.formats.source import Raw, Source

_JOKES = 100
_NOT_RATED = 99.0
_READER = "import runpy; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
_READER_BYTES = 192 << 20
_READER_SECONDS = 300
"""Limits for the reader of one sheet: memory, beside ten times the sheet's bytes, and processor time. The publisher's
sheets take six times their bytes, and 4 s."""


def parse(source: Source) -> Raw:
    """Returns users numbered from 1 through all sheets (in order of name), and items 1 to 100.

    Raises `DpmfError` for a sheet that cannot be opened, a row that is not 101 numbers, and a row whose
    first cell is not the number of its ratings (the sheet's own check).
    """
    found = [(member.name, member.label, member.stream.read()) for member in source.members()]
    sheets = [(label, _cells(label, data, source.fix)) for _, label, data in sorted(found)]
    if not sheets:
        raise DpmfError(f"{source.paths[0]}: holds no {' or '.join(source.wanted.patterns)}; {source.fix}")
    starts = np.cumsum([0] + [len(cells) for _, cells in sheets])
    table = np.concatenate([cells for _, cells in sheets])
    rows, jokes = np.nonzero(table[:, 1:] != _NOT_RATED)

    def place(row: int, cell: str = "") -> str:
        sheet = int(np.searchsorted(starts, row, side="right")) - 1
        return f"{sheets[sheet][0]}: row {row - starts[sheet] + 1}{cell}"

    def where(rating: int) -> str:
        if rating >= len(rows):
            return sheets[0][0]
        return place(int(rows[rating]), f", column {int(jokes[rating]) + 2}")

    counted = np.bincount(rows, minlength=len(table))
    wrong = np.flatnonzero(counted != table[:, 0])
    if len(wrong):
        row = int(wrong[0])
        raise DpmfError(
            f"{place(row)}: the first cell says {table[row, 0]:g} ratings, the row has {counted[row]}; "
            f"{source.fix}"
        )
    values = table[:, 1:][rows, jokes]
    return Raw(rows + 1, jokes + 1, values, where=where, fix=source.fix)


def _cells(label: str, data: bytes, fix: str) -> NDArray[np.float64]:
    """Returns (n_users, 101) the cells of one sheet, read by a process whose memory and time are limited."""
    limits = (10 * len(data) + _READER_BYTES, _READER_SECONDS, _JOKES + 1)
    command = python(_READER, sheet_reader.__file__, *limits)
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode == sheet_reader.REFUSED:
        raise DpmfError(f"{label}: {done.stdout.decode()}; {fix}")
    if done.returncode:
        raise DpmfError(f"{label}: cannot be opened as a spreadsheet (its reader gave up); {fix}")
    return np.frombuffer(done.stdout).reshape(-1, _JOKES + 1)

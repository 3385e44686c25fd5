"""The formats of tables: for people `table`, `md` and `latex`, for programs `csv` and `json`.

`table` is for a terminal or a pipe, `latex` uses booktabs. In `csv` and `json` numbers are not rounded, absent ones
are empty or null, and an infinite ε is the string "inf". Lines end in \\n.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.report.tables.layout import TextTable, latex, markdown, terminal
from dpmf_cli.terminal import csv_text

Format = Literal["table", "csv", "md", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

DRAWINGS = {"table": terminal, "md": markdown, "latex": latex}


def render(text: TextTable, fields: Sequence[str], records: Iterable[Mapping[str, Any]], form: str) -> str:
    """Draws a table from `text` for people, or from `records` with `fields` for programs.

    Raises `DpmfError` for an unknown format.
    """
    if form in DRAWINGS:
        return DRAWINGS[form](text)
    if form == "json":
        plain = [{key: strict(value) for key, value in record.items()} for record in records]
        return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "csv":
        return csv_text([fields, *([record[field] for field in fields] for record in records)])
    raise DpmfError(f'unknown table format "{form}"{did_you_mean(form, FORMATS)}')


def strict(value: Any) -> Any:
    """Returns ±inf as a string, since JSON has no infinity, and any other value unchanged."""
    return repr(value) if isinstance(value, float) and math.isinf(value) else value

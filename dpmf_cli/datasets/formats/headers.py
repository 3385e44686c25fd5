"""The names of a file's columns, and what is said of one that is not among them."""

from collections.abc import Sequence

from dpmf_cli.errors import DpmfError, did_you_mean

_MOST_NAMES, _LONGEST = 30, 40
"""Shown of a header, which in a file of something else may have any length."""


def not_one(where: str, column: str | int, role: str, names: Sequence[str], fix: str = "") -> DpmfError:
    """The error about a column that a header has not, or has twice; `fix` ends it."""
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    more = ", …" if len(names) > len(shown) else ""
    trouble, hint = "two columns", ""
    if str(column) not in names:
        trouble, hint = "no column", did_you_mean(str(column), shown)
    known = "" if hint.startswith("; known") else f"; it has: {', '.join(shown)}"
    return DpmfError(f'{where}: {trouble} "{column}" ({role}){hint}{known}{more}{fix}')

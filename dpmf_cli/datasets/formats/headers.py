"""The error about a column that a file's header lacks, or has twice."""

from collections.abc import Sequence

from dpmf_cli.errors import DpmfError, did_you_mean

_MOST_NAMES, _LONGEST = 30, 40
"""How many names of a header are shown, and how many characters of each: another kind of file may have any length."""


def not_one(where: str, column: str | int, role: str, names: Sequence[str], fix: str = "") -> DpmfError:
    """Returns the error about a column that a header lacks, or has twice; the message ends with `fix`."""
    shown = [name[:_LONGEST] for name in names[:_MOST_NAMES]]
    more = ", …" if len(names) > len(shown) else ""
    trouble, hint = "two columns", ""
    if str(column) not in names:
        trouble, hint = "no column", did_you_mean(str(column), shown)
    known = "" if hint.startswith("; known") else f"; it has: {', '.join(shown)}"
    return DpmfError(f'{where}: {trouble} "{column}" ({role}){hint}{known}{more}{fix}')

"""The one exception that a user is meant to read.

Everything that can go wrong because of what a user gave or has (a config, a file, a folder, a full disk)
raises `DpmfError` with a message of three parts: where, what, and the fix. The command line prints it and
exits with code 2; anything else that escapes is a bug and shows its traceback.
"""

import difflib
from collections.abc import Iterable


class DpmfError(Exception):
    """A user-facing error: the message says where, what and the fix."""


def extra_missing(extra: str, what: str) -> DpmfError:
    """Returns the error for a missing package that an extra of dpmf brings; `what` says what needs it."""
    return DpmfError(f"{what}; install it with: pip install 'dpmf[{extra}]'")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` for the nearest known word, or the list of known words where none is near."""
    known = list(known)
    lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if near:
        return f'; did you mean "{lower[near[0]]}"?'
    return f"; known: {', '.join(known)}" if known else ""

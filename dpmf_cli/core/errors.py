"""The one exception that a user is meant to read.

Everything that can go wrong because of what a user gave or has (a config, a file, a folder, a full disk)
raises `DpmfError` with a message of three parts: where, what, and the fix. The command line prints it and
exits with code 2; anything else that escapes is a bug and shows its traceback.
"""

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


class DpmfError(Exception):
    """A user-facing error: the message says where, what and the fix."""


def extra_missing(extra: str, what: str) -> DpmfError:
    """The error for a missing package that an extra of dpmf brings; `what` says what needs it."""
    return DpmfError(f"{what}; install it with: pip install 'dpmf[{extra}]'")


def did_you_mean(word: str, known: Iterable[str], titles: Mapping[str, str] | None = None) -> str:
    """`; did you mean "x"?` for the `nearest` known word, or the list of known words where none is near."""
    known = list(known)
    if near := nearest(word, known, titles):
        return f'; did you mean "{near}"?'
    return f"; known: {', '.join(known)}" if known else ""


def nearest(
    word: str, known: Iterable[str], titles: Mapping[str, str] | None = None, *, near: float = 0.6
) -> str | None:
    """The known word that was probably meant, None if there is none: one for which `words.yaml` has it,
    else the most similar one, of which capitals and hyphens make no difference.

    titles  known words by titles, which may have been written instead
    near    the least similarity (`difflib`), 1 for equal words
    """
    plain = {_plain(title): each for title, each in (titles or {}).items()}
    plain |= {_plain(each): each for each in known}
    asked = _plain(word)
    meant = [own for own, others in words("others").items() if asked in others and own in plain]
    found = meant or difflib.get_close_matches(asked, plain, n=1, cutoff=near)
    return plain[found[0]] if found else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")


@cache
def words(table: str) -> dict[str, Any]:
    """A table of `words.yaml`: `others`, `expected` or `written`."""
    import yaml

    found = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
    return dict(found[table])

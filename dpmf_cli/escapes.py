"""What a person reads shows every character it has: the one way of text into terminals, CSV files and pages.

Names and cells come from files of anybody's. A character that acts on the reader's screen instead of being seen there
(a terminal's escapes, marks that turn the direction of writing, spaces without width) is written as `\\u001b`.
"""

import csv
import io
import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any, TextIO, cast

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of what is not seen: controls, formats, lone surrogates, ends of lines and of paragraphs."""

_FORMULA = tuple("=+-@＝＋－＠")
"""How a cell begins that a spreadsheet may take for a formula (OWASP, CSV Injection)."""


def printable(text: str, keep: str = "") -> str:
    """`text` with what cannot be seen escaped as JSON does it, but for the characters in `keep`."""

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep or unicodedata.category(character) not in _HIDDEN:
            return character
        units = character.encode("utf-16-be", "surrogatepass").hex()
        return re.sub("....", r"\\u\g<0>", units)

    return re.sub("[^ -~]", shown, text)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV, lines ending in \\n. Numbers as they are; text printable, and never a formula."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(map(_cell, row) for row in rows)
    return stream.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Guarded:
    """A stream of text that writes what is printable of it, in lines, and has no `buffer` for bytes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(printable(text, keep="\n"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # where click would write past this, if the encoding is ASCII
            raise AttributeError(name)
        return getattr(self.stream, name)


def guard() -> None:
    """From now on stdout and stderr show what is written to them: messages, tables, warnings, tracebacks."""
    sys.stdout, sys.stderr = (cast(TextIO, _Guarded(unguarded(each))) for each in (sys.stdout, sys.stderr))


def unguarded(stream: TextIO) -> TextIO:
    """The stream itself, for a bar of progress, which moves the cursor."""
    return stream.stream if isinstance(stream, _Guarded) else stream

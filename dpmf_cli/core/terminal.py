"""Text for people: messages, progress, numbers, and text in which every character is visible.

Text for terminals, CSV files and pages goes through `printable`. Names and fields come from files that anybody may
have written, in which some characters act on the reader's screen instead of being seen there: a terminal's escapes,
marks that turn the direction of writing, spaces without width. These are written as escapes like `\u001b`.

Messages go to stderr; so does progress, as a bar weighted by cost, or as lines if stderr is no terminal.
"""

import csv
import io
import math
import os
import re
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TextIO, cast

from dpmf_cli.core.errors import DpmfError

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of invisible characters: controls, formats, lone surrogates, ends of lines and paragraphs."""

_FORMULA = tuple("=+-@＝＋－＠")
"""First characters of a cell that a spreadsheet may take for a formula (OWASP, CSV Injection)."""


def printable(text: str, keep: str = "") -> str:
    """`text` with its invisible characters escaped as in JSON, except those in `keep`."""

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep or unicodedata.category(character) not in _HIDDEN:
            return character
        units = character.encode("utf-16-be", "surrogatepass").hex()
        return re.sub("....", r"\\u\g<0>", units)

    return re.sub("[^ -~]", shown, text)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV, lines ending in \\n. Numbers stay as they are; text is printable, and never a formula."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(map(_cell, row) for row in rows)
    return stream.getvalue()


def exact(value: float) -> str:
    """A number as text, without loss of digits; "" for NaN."""
    return "" if math.isnan(value) else repr(float(value))


def significant(value: float, figures: int = 3) -> str:
    """A finite number to `figures` significant figures: 0.180, 2.00, 12.5, 1230; very small: 1.20e-05."""
    rounded = float(f"{value:.{figures - 1}e}")
    if rounded == 0:
        return "0"
    exponent = int(f"{rounded:e}".rpartition("e")[2])
    if not -4 <= exponent <= 6:
        return f"{value:.{figures - 1}e}"
    return f"{rounded:.{max(0, figures - 1 - exponent)}f}"


def signed(value: float, digits: int) -> str:
    """A difference with its sign and `digits` decimals, with a typographic minus: +0.0012, −1.5."""
    return f"{value:+.{digits}f}".replace("-", "−")


def duration(seconds: float) -> str:
    """A duration in words: `0 s`, `45 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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
    """A text stream that escapes invisible characters, except line ends, and has no `buffer` for bytes.

    Raises DpmfError if the stream cannot be written, and BrokenPipeError if its reader has left.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream, self._name = stream, name

    def write(self, text: str) -> int:
        shown = printable(text, keep="\n")
        if shown:  # click tests a stream with an empty text, and swallows errors
            with self._writable():
                self.stream.write(shown)
        return len(text)

    def flush(self) -> None:
        with self._writable():
            self.stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Python flushes the stream once more at exit, and would print a traceback.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                raise
            why = f"{self._name} cannot be written ({error.strerror or error})"
            raise DpmfError(f"{why}; free space there, or send it elsewhere") from error

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click would write there, past this class, if the encoding is ASCII
            raise AttributeError(name)
        return getattr(self.stream, name)


def guard() -> None:
    """Makes stdout and stderr escape invisible characters from now on: in messages, tables, warnings, tracebacks."""
    sys.stdout = cast(TextIO, _Guarded(unguarded(sys.stdout), "standard output"))
    sys.stderr = cast(TextIO, _Guarded(unguarded(sys.stderr), "standard error"))


def unguarded(stream: TextIO) -> TextIO:
    """The underlying stream, for a progress bar, which moves the cursor."""
    return stream.stream if isinstance(stream, _Guarded) else stream


SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_REFRESHES = 0.1
LEAST_PART = 0.1
"""Fraction of the work after which the remaining time is estimated. Until then, starting and compiling count."""


def say(message: str) -> None:
    """Prints a line for the person at the terminal. Results go to stdout, everything else here."""
    print(message, file=sys.stderr, flush=True)


class Progress:
    """Counts finished tasks of `total_cost` estimated seconds. A context manager; quiet if there is no work."""

    def __init__(self, title: str, tasks: int, total_cost: float) -> None:
        self._title, self._tasks, self._total = title, tasks, total_cost
        self._finished, self._cost = 0, 0.0
        self._begin = self._spoken = time.monotonic()
        self._bar = None
        if tasks and (sys.stderr.isatty() or "ipykernel" in sys.modules):  # a notebook shows a bar, too
            from tqdm import tqdm

            # Without tqdm's own times and pauses: they follow the wall clock, and stop if it is set back.
            form, file = "{desc} {percentage:3.0f}% |{bar}|{postfix}", unguarded(sys.stderr)
            self._bar = tqdm(total=total_cost, desc=printable(title), file=file, bar_format=form)

    def finished(self, algorithm: str, cost: float) -> None:
        self._finished += 1
        self._cost += cost
        now = time.monotonic()
        elapsed = now - self._begin
        part = self._cost / self._total if self._total else 1.0
        left = f"{elapsed * max(1 / part - 1, 0):.0f} s" if part >= LEAST_PART else ""
        ended = self._finished == self._tasks
        if self._bar is not None:
            if now - self._spoken >= SECONDS_BETWEEN_REFRESHES or ended:
                self._spoken = now
                self._bar.n = min(self._cost, self._total)
                state = f"{elapsed:.0f} s<{left or '?'}, {self._finished}/{self._tasks} tasks, {algorithm}"
                self._bar.set_postfix_str(printable(state))
        elif now - self._spoken >= SECONDS_BETWEEN_LINES or ended:
            self._spoken = now
            counts = f"{self._finished}/{self._tasks} tasks, {100 * part:.0f} %, {elapsed:.0f} s elapsed"
            say(f"{self._title}: {counts}, {f'about {left} left, ' if left else ''}last {algorithm}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

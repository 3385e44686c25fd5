"""Writes to stderr: messages, and progress as a bar weighted by cost, or as lines if stderr is no terminal."""

import sys
import time
from types import TracebackType
from typing import Self

from dpmf_cli.escapes import printable, unguarded

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_REFRESHES = 0.1
LEAST_PART = 0.1
"""Fraction of the work after which the remaining time is estimated. Until then, most time goes into starting and
compiling."""


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
        if tasks and sys.stderr.isatty():
            from tqdm import tqdm

            # Without tqdm's own times and pauses: they follow the wall clock, and stop if it is set back.
            self._bar = tqdm(
                total=total_cost,
                desc=printable(title),
                file=unguarded(sys.stderr),
                bar_format="{desc} {percentage:3.0f}% |{bar}|{postfix}",
            )

    def finished(self, algorithm: str, cost: float) -> None:
        """Counts one more finished task of this algorithm."""
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
            say(
                f"{self._title}: {self._finished}/{self._tasks} tasks, {100 * part:.0f} %, "
                f"{elapsed:.0f} s elapsed, {f'about {left} left, ' if left else ''}last {algorithm}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

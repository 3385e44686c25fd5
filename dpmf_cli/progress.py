"""Progress on stderr: one bar weighted by estimated cost, or plain lines where stderr is not a terminal."""

import sys
import time
from types import TracebackType
from typing import Self

SECONDS_BETWEEN_LINES = 10.0
LEAST_PART = 0.1
"""Of the work, before a rest is foretold from it: until then the time is that of starting and of compiling."""


class Progress:
    """Counts finished tasks of `total_cost` estimated seconds. A context manager; quiet if there is no work."""

    def __init__(self, title: str, tasks: int, total_cost: float) -> None:
        self._title, self._tasks, self._total = title, tasks, total_cost
        self._finished, self._cost = 0, 0.0
        self._begin = self._spoken = time.monotonic()
        self._bar = None
        if tasks and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total_cost,
                desc=title,
                file=sys.stderr,
                bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}<{remaining}{postfix}",
            )

    def finished(self, algorithm: str, cost: float) -> None:
        """One more task of this algorithm is done."""
        self._finished += 1
        self._cost += cost
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._finished}/{self._tasks} tasks, {algorithm}", refresh=False)
            self._bar.update(cost)
            return
        now = time.monotonic()
        if now - self._spoken >= SECONDS_BETWEEN_LINES or self._finished == self._tasks:
            self._spoken = now
            elapsed = now - self._begin
            part = self._cost / self._total if self._total else 1.0
            left = f"about {elapsed * max(1 / part - 1, 0):.0f} s left, " if part >= LEAST_PART else ""
            print(
                f"{self._title}: {self._finished}/{self._tasks} tasks, {100 * part:.0f} %, "
                f"{elapsed:.0f} s elapsed, {left}last {algorithm}",
                file=sys.stderr,
                flush=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

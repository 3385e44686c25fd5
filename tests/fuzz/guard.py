"""What no input may cause: another error than the one allowed, a long run, or memory out of proportion."""

import resource
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpmf_cli.core.errors import DpmfError

SECONDS = 10
"""Seconds of processor time for one input: a thousand times what an input takes."""
CONSTANT = 64 << 20
"""Bytes that a loader may take, in addition to ten times the file, for its blocks and buffers."""
LIMIT = 512 << 20
"""Bytes of address space that no input may exceed. Memory is counted for every tenth input; this limit holds
for all."""


class Hang(BaseException):
    """An input took too long."""


@dataclass
class Counts:
    """inputs: their number; refused: those with the one allowed error; peak: the most memory over what was
    allowed for the input."""

    inputs: int = 0
    refused: int = 0
    peak: float = 0.0

    def named(self) -> dict[str, int]:
        """A row of a table. Inputs that did anything else have raised, and are not counted."""
        accepted = self.inputs - self.refused
        return {"tried": self.inputs, "accepted": accepted, "refused": self.refused, "wrong": 0}


def _hang(*_: object) -> None:
    raise Hang


@contextmanager
def guarded() -> Iterator[None]:
    """Limits memory, and sets the clock for `check`."""
    before = signal.signal(signal.SIGPROF, _hang)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LIMIT, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check(load: Callable[[], object], size: int, counts: Counts) -> None:
    """Loads one input of `size` bytes under guard. Any other error is raised unchanged."""
    counted = counts.inputs % 10 == 0
    if counted:
        tracemalloc.start()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    counts.inputs += 1
    try:
        load()
    except DpmfError as error:
        counts.refused += 1
        message = str(error)
        assert message
        assert len(message) < 20_000, message[:500]
        message.encode()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if counted:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        used = peak / (10 * size + CONSTANT)
        counts.peak = max(counts.peak, used)
        assert used <= 1, f"{peak} bytes of memory for a file of {size}"

"""Ctrl-C and the signals by which a machine ends its processes: a message, not a traceback, and nothing lost."""

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """The process is to end, by a signal other than Ctrl-C; what cleans up after that does so after this."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def resumable(command: Callable[P, R]) -> Callable[P, R]:
    """A command that, where Ctrl-C, SIGTERM or SIGHUP ends it, says how to go on; the exit code is 128 + signal."""

    @functools.wraps(command)
    def wrapped(*arguments: P.args, **options: P.kwargs) -> R:
        # `nohup` ignores SIGHUP, and so does a command that it starts.
        ours = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
        try:
            for number in ours:
                signal.signal(number, _end)
            return command(*arguments, **options)
        except KeyboardInterrupt as interrupt:
            by = interrupt.number if isinstance(interrupt, Ended) else int(signal.SIGINT)
            print(
                "\ninterrupted: finished tasks are kept; run the same command again to go on", file=sys.stderr
            )
            sys.exit(128 + by)
        finally:
            for number in ours:
                signal.signal(number, signal.SIG_DFL)

    return wrapped


def _end(number: int, frame: object) -> NoReturn:
    raise Ended(number)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Holds Ctrl-C back while processes are started: they inherit that, and never see one, not even as they start."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    resource_tracker.ensure_running()  # ignores Ctrl-C, but not SIGHUP; and lets Ctrl-C through again here
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""Ctrl-C and the signals by which a machine ends its processes: a message, not a traceback, and nothing lost."""

import functools
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_HANDLED: dict[int, Callable[[int, FrameType | None], object] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""The signals that end a command, and what handles them where nobody has changed that."""


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
        ours = [number for number, usual in _HANDLED.items() if signal.getsignal(number) is usual]
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
                signal.signal(number, _HANDLED[number])

    return wrapped


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the command; while numba compiles or loads a kernel, when it has.

    LLVM calls back into Python meanwhile. An exception in such a callback is ignored, and the process crashes.
    """
    ended = KeyboardInterrupt() if number == signal.SIGINT else Ended(number)
    compiler = sys.modules.get("numba.core.compiler_lock")
    if compiler is None or not compiler.global_compiler_lock.is_locked():
        raise ended
    _raise_after_compiling(ended)


def _raise_after_compiling(ended: KeyboardInterrupt) -> None:
    from numba.core import event
    from numba.core.compiler_lock import global_compiler_lock

    class AfterCompiling(event.Listener):
        """Raises when this thread has given the compiler's lock back."""

        def on_start(self, _: object) -> None: ...

        def on_end(self, _: object) -> None:
            if not global_compiler_lock.is_locked():
                event.unregister("numba:compiler_lock", self)
                raise ended

    event.register("numba:compiler_lock", AfterCompiling())


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

"""Handles Ctrl-C and the signals that end processes: at any moment they lead to one line and an exit code.

A command works in a child of the process that was started. The parent only waits, for the child or for a signal. On a
signal it kills the child. Nothing is unwound, because every kept file appears completely or not at all (`files.py`).

Python's own way is an exception in the main thread. It waits for the running kernel, is lost in a callback of LLVM or
in a destructor, and crashes some of these. A thread that waits for signals is no better: it needs the interpreter's
lock, which a decomposition by LAPACK holds for seconds.
"""

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from threading import Thread
from typing import NoReturn

USUAL = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""The signals that end a command, with their default handlers."""

INTERRUPTED = "interrupted: what was finished is kept; run the same command again to go on"
KILLED = (
    "dpmf: ended by {name} (out of memory, by hand, or a crash); what was finished is kept: run the same command "
    "again, with a smaller -j if memory was short"
)
SECONDS_TO_START = 1.0
"""Longest time that a signal waits while a process is being started. If its parent were killed meanwhile, the process
would print a traceback."""

_PR_SET_PDEATHSIG = 1
"""Option of Linux's prctl: sets the signal that this process gets when its parent ends."""

_PR_SET_CHILD_SUBREAPER = 36
"""Option of Linux's prctl: descendants of this process that lose their parent become its children."""

_idle: tuple[int, int] | None = None
"""A pipe that holds one byte, except while this process starts another."""


def supervised(work: Callable[[], None]) -> NoReturn:
    """Runs `work` in a child process, and exits with its code, or with 128 + signal if a signal comes first.

    An ignored signal stays ignored, as `nohup` expects. Must be called before anything else, by the only thread.
    """
    global _idle
    ours = [number for number, usual in USUAL.items() if signal.getsignal(number) is usual]
    signal.pthread_sigmask(signal.SIG_BLOCK, [*ours, signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler, some systems drop it
    read, write = _idle = os.pipe()
    os.write(write, b".")
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    supervisor, child = os.getpid(), os.fork()
    if child:
        _supervise(child, ours, read)
    for number in ours:
        signal.signal(number, signal.SIG_IGN)  # processes that this one starts inherit this
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [*ours, signal.SIGCHLD])
    end_with(supervisor)
    work()
    sys.exit(0)


@contextmanager
def starting_a_process() -> Iterator[None]:
    """Makes signals wait until a process has started."""
    if _idle is None:
        yield
        return
    token = os.read(_idle[0], 1)
    try:
        yield
    finally:
        os.write(_idle[1], token)


def end_with(parent: int) -> None:
    """Makes this process end when its parent, the process with id `parent`, has ended."""
    if not _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        Thread(target=_end_after, args=(parent,), daemon=True).start()
    elif os.getppid() != parent:
        os._exit(1)


def work_for(parent: int, function: bytes, *arguments: object) -> None:
    """The entry point of a started process. It ends with its parent, even while it still imports `function`."""
    end_with(parent)
    pickle.loads(function)(*arguments)


def _prctl(option: int, value: int) -> bool:
    """Calls Linux's prctl, and returns whether it succeeded; False on other systems."""
    if sys.platform == "linux":
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value) == 0)
    return False


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _supervise(child: int, ours: list[signal.Signals], idle: int) -> NoReturn:
    while True:
        number = signal.sigwait([*ours, signal.SIGCHLD])
        if number != signal.SIGCHLD:
            _wait_for_starts(idle)
            _kill_all(child)
            _say(INTERRUPTED)
            os._exit(128 + number)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                _say(KILLED.format(name=signal.Signals(-code).name))
            os._exit(code if code >= 0 else 128 - code)


def _kill_all(child: int) -> None:
    """Kills the child, and those of its descendants that become our children. Returns when all have ended."""
    ours = Path(f"/proc/self/task/{os.getpid()}/children")
    os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
            for process in ours.read_text().split() if ours.exists() else ():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)


def _wait_for_starts(idle: int) -> None:
    """Waits while the child starts a process, and prevents it from starting another.

    Waits at most `SECONDS_TO_START`, and no longer than until a second signal.
    """
    deadline = time.monotonic() + SECONDS_TO_START
    while not select([idle], [], [], 0.01)[0]:
        if signal.sigpending() or time.monotonic() > deadline:
            return
    os.read(idle, 1)


def _say(line: str) -> None:
    begin = "\n" if os.isatty(2) else ""  # ends the line that shows ^C or a progress bar
    with suppress(OSError):
        if select([], [2], [], 0.5)[1]:  # else nobody reads standard error
            os.write(2, f"{begin}{line}\n".encode())

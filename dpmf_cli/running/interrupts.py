"""Ctrl-C and the signals by which a machine ends its processes: one line and an exit code, at any moment.

A command works in a child of the process that was started. That process only waits, for the child or for a signal;
on a signal it kills the child. Nothing is unwound: all that is kept appears whole or not at all (`files.py`).

Python's own way, an exception in the main thread, waits for the kernel that runs, is lost in a callback of LLVM or in
a destructor, and crashes some of them. A thread that waits for signals needs the interpreter's lock, which a
decomposition by LAPACK holds for seconds.
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
"""The signals that end a command, and what handles them where nobody has changed that."""

INTERRUPTED = "interrupted: what was finished is kept; run the same command again to go on"
KILLED = (
    "dpmf: ended by {name} (out of memory, by hand, or a crash); what was finished is kept: run the same command "
    "again, with a smaller -j if memory was short"
)
SECONDS_TO_START = 1.0
"""How long a signal waits for a process that is being started: without its parent, it would print a traceback."""

_PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: the signal that a process gets when its parent ends."""

_PR_SET_CHILD_SUBREAPER = 36
"""What has lost its parent, below this process, becomes its child."""

_idle: tuple[int, int] | None = None
"""A pipe with one byte in it, but while this process starts another."""


def supervised(work: Callable[[], None]) -> NoReturn:
    """Has `work` done by a child process, and exits with its code; or with 128 + signal where a signal comes first.

    A signal that is ignored stays ignored, as `nohup` has it. Called before anything else, by the only thread.
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
        signal.signal(number, signal.SIG_IGN)  # in the processes that this one starts, too
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [*ours, signal.SIGCHLD])
    end_with(supervisor)
    work()
    sys.exit(0)


@contextmanager
def starting_a_process() -> Iterator[None]:
    """Has a signal wait until a process has started."""
    if _idle is None:
        yield
        return
    token = os.read(_idle[0], 1)
    try:
        yield
    finally:
        os.write(_idle[1], token)


def end_with(parent: int) -> None:
    """Has this process killed when its parent, the process of that number, has ended."""
    if not _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        Thread(target=_end_after, args=(parent,), daemon=True).start()
    elif os.getppid() != parent:
        os._exit(1)


def work_for(parent: int, function: bytes, *arguments: object) -> None:
    """What a process begins with that is started: it ends with its parent, even while it imports what it is to do."""
    end_with(parent)
    pickle.loads(function)(*arguments)


def _prctl(option: int, value: int) -> bool:
    """Whether this is Linux, which then does so."""
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
    """Kills the child, and what it leaves behind where that becomes ours; returns when all of these have ended."""
    ours = Path(f"/proc/self/task/{os.getpid()}/children")
    os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
            for process in ours.read_text().split() if ours.exists() else ():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)


def _wait_for_starts(idle: int) -> None:
    """Waits while the child starts a process, and keeps it from another; not for long, nor past a second signal."""
    deadline = time.monotonic() + SECONDS_TO_START
    while not select([idle], [], [], 0.01)[0]:
        if signal.sigpending() or time.monotonic() > deadline:
            return
    os.read(idle, 1)


def _say(line: str) -> None:
    begin = "\n" if os.isatty(2) else ""  # after ^C, or a bar
    with suppress(OSError):
        if select([], [2], [], 0.5)[1]:  # else nobody reads what is said
            os.write(2, f"{begin}{line}\n".encode())

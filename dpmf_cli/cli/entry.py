"""The console script: Ctrl-C and the signals that end processes lead, at any moment, to one line and an exit code.

It settles that before it imports anything that takes time. A command works in a child of the process that was
started, which waits for the child or for a signal, and kills the child on a signal. Nothing is unwound, because every
kept file appears completely or not at all (`files.py`). docs/design.md says why Python's own ways are no better.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from select import select
from typing import NoReturn

from dpmf_cli.core.children import end_with, prctl

USUAL = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
}
"""The signals that end a command, with their default handlers."""

INTERRUPTED = "interrupted: what was finished is kept; run the same command again to go on"
KILLED = (
    "dpmf: ended by {name} (out of memory, by hand, or a crash); what was finished is kept: run the same command "
    "again, with a smaller -j if memory was short"
)
_PR_SET_CHILD_SUBREAPER = 36
"""Option of Linux's prctl: descendants of this process that lose their parent become its children."""


def supervised(work: Callable[[], None]) -> NoReturn:
    """Runs `work` in a child process, and exits with its code, or with 128 + signal if a signal comes first.

    An ignored signal stays ignored, as `nohup` expects. Must be called before anything else, by the only thread.
    """
    _open_closed_streams()
    ours = [number for number, usual in USUAL.items() if signal.getsignal(number) is usual]
    signal.pthread_sigmask(signal.SIG_BLOCK, [*ours, signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler, some systems drop it
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    supervisor, child = os.getpid(), os.fork()
    if child:
        _supervise(child, ours)
    for number in ours:
        signal.signal(number, signal.SIG_IGN)  # processes that this one starts inherit this
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [*ours, signal.SIGCHLD])
    end_with(supervisor)
    work()
    sys.exit(0)


def _open_closed_streams() -> None:
    """Opens /dev/null for each standard stream that is closed, as after `2>&-`. Otherwise the next file that is
    opened becomes that stream, and messages are written into it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number, this one
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115


def _supervise(child: int, ours: list[signal.Signals]) -> NoReturn:
    adopted = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        number = signal.sigwait([*ours, signal.SIGCHLD])
        if number != signal.SIGCHLD:
            os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):  # until all have ended: its descendants become our children
                while True:
                    os.waitpid(-1, 0)
                    for process in adopted.read_text().split() if adopted.exists() else ():
                        with suppress(ProcessLookupError):
                            os.kill(int(process), signal.SIGKILL)
            _say(INTERRUPTED)
            os._exit(128 + number)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                _say(KILLED.format(name=signal.Signals(-code).name))
            os._exit(code if code >= 0 else 128 - code)


def _say(line: str) -> None:
    begin = "\n" if os.isatty(2) else ""  # ends the line that shows ^C or a progress bar
    with suppress(OSError):
        if select([], [2], [], 0.5)[1]:  # else standard error is not read
            os.write(2, f"{begin}{line}\n".encode())


def main() -> NoReturn:
    """Runs `dpmf` in a child process that any signal ends at once."""

    def work() -> None:
        from dpmf_cli.cli.main import main as command

        command()

    supervised(work)

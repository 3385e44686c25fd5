"""Starts another Python: with the modules of this process, and nothing out of the working directory.

`python -c`, by which `multiprocessing` starts processes too, looks for every module in the working directory first.
That folder may be somebody else's, with a file `pickle.py` beside a config.
"""

import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread

started = False
"""Whether this process was started by `python`."""

_PR_SET_PDEATHSIG = 1
"""Option of Linux's prctl: sets the signal that this process gets when its parent ends."""

_ROOT = Path(__file__).parents[2]


def python(program: str, *arguments: object) -> list[str]:
    """A command that runs the lines `program` in a Python that ends when this process ends.

    It finds what this process finds: also dpmf where it is not installed, and what $PYTHONPATH names, which is the
    user's own choice. The arguments are its `sys.argv[1:]`.
    """
    places = [place for place in (*sys.path, str(_ROOT)) if place]  # '' is the working directory
    begin = f"import sys; sys.path[:] = {places!r}\nfrom dpmf_cli.core import children; children.begin({os.getpid()})"
    return [sys.executable, "-P", "-c", f"{begin}\n{program}", *map(str, arguments)]


def begin(parent: int) -> None:
    """What a Python that dpmf starts does first, before its program imports anything."""
    global started
    started = True
    end_with(parent)


def end_with(parent: int) -> None:
    """Makes this process end when its parent, the process with the id `parent`, has ended."""
    if not prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
        Thread(target=_end_after, args=(parent,), daemon=True).start()
    elif os.getppid() != parent:
        os._exit(1)


def prctl(option: int, value: int) -> bool:
    """Calls Linux's prctl, and returns whether it succeeded; False on other systems."""
    if sys.platform == "linux":
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value) == 0)
    return False


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

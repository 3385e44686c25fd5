"""The worker processes of a run, and whether any is left."""

import contextlib
import os
import time
from pathlib import Path


def workers(command: int) -> list[int]:
    """The living worker processes of a run."""
    return [
        worker
        for run in children(command)
        for worker in children(run)
        if b"processes import work" in _command_line(worker)
    ]


def children(parent: int) -> list[int]:
    with contextlib.suppress(OSError):
        return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))
    return []


def _command_line(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def session_ended(session: int, *, within: float = 30) -> bool:
    """Whether all processes of a session end by themselves."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False

"""A limit on address space below what libraries take: OpenBLAS would try for ever, others end with a traceback."""

import os
import resource

from dpmf_cli.errors import DpmfError
from dpmf_cli.running.machine import available_cores

LIBRARIES, OF_A_THREAD = 512 << 20, 80 << 20
"""Bytes of address space of all imports with one thread of OpenBLAS (497 MB, measured), and of each further thread:
buffers and stacks of the two OpenBLAS that NumPy and SciPy bring (82 MB)."""


def check() -> None:
    """Raises DpmfError where this process may not have so much address space."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    asked = os.environ.get("OPENBLAS_NUM_THREADS", "")
    threads = int(asked) if asked.isdecimal() else available_cores()
    needed = LIBRARIES + (threads - 1) * OF_A_THREAD
    if resource.RLIM_INFINITY != limit < needed:
        raise DpmfError(
            f"address space is limited to {limit >> 20} MiB (ulimit -v), and libraries take {needed >> 20} MiB of it "
            f"with {threads} threads; raise the limit, or set OPENBLAS_NUM_THREADS=1 ({LIBRARIES >> 20} MiB)"
        )

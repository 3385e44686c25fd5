"""Refuses limits on address space and open files that are too low.

With less address space, OpenBLAS would retry for ever, and other libraries would end with a traceback. With fewer
open files, a file that cannot be opened would look damaged.
"""

import os
import resource

from dpmf_cli.errors import DpmfError
from dpmf_cli.running.machine import available_cores

LIBRARIES, OF_A_THREAD = 512 << 20, 80 << 20
"""Bytes of address space: for all imports with one OpenBLAS thread (497 MB, measured), and for each further thread
(82 MB: buffers and stacks of the two copies of OpenBLAS, one in NumPy and one in SciPy)."""

FILES = 64
"""Open files that a command may need, with some to spare: a small run needed more than 10, and at most 16."""


def check() -> None:
    """Raises DpmfError if this process may open fewer files than commands need, or use less address space."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != files < FILES:
        raise DpmfError(
            f"open files are limited to {files} (ulimit -n), but dpmf needs {FILES}; raise the limit"
        )
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    asked = os.environ.get("OPENBLAS_NUM_THREADS", "")
    threads = int(asked) if asked.isdecimal() else available_cores()
    needed = LIBRARIES + (threads - 1) * OF_A_THREAD
    if resource.RLIM_INFINITY != limit < needed:
        raise DpmfError(
            f"address space is limited to {limit >> 20} MiB (ulimit -v), but the libraries need {needed >> 20} MiB "
            f"with {threads} threads; raise the limit, or set OPENBLAS_NUM_THREADS=1 ({LIBRARIES >> 20} MiB)"
        )

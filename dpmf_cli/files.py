"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

UMASK = os.umask(0o077)
os.umask(UMASK)
"""The process's umask, which can only be read by setting it: a temporary file starts without any of it."""


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file beside its place, flushes it to the disk and renames it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o666 & ~UMASK)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise

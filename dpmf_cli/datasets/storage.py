"""Writes files and folders that are either complete or absent.

A folder is written beside its place under another name, flushed to the disk and renamed. If two processes write the
same folder at once, both succeed: the second finds the first's folder and drops its own.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import (
    flush_folder,
    make_folder,
    remove,
    rename,
    sweep,
    temporary_folder,
    unused_name,
    write_whole,
)

_ATTEMPTS = 20
_PAUSE = 0.01
"""Seconds between two attempts: other processes may be replacing the same folder."""


def write_text(path: Path, text: str) -> None:
    """Writes a small file atomically. Raises `DpmfError` if the disk is full or the folder read-only."""
    with _errors_named(path.parent):
        write_whole(path, text.encode(), 0o644)


def publish(folder: Path, write: Callable[[Path], None], sound: Callable[[Path], bool]) -> None:
    """Makes `folder` with the files that `write` puts into it. Leaves a sound folder that is there; replaces others.

    `write` gets an empty folder to fill with `new_file`; `sound` tells whether a folder is complete.
    Raises `DpmfError` if the folder cannot be written.
    """
    place = folder.parent
    with _errors_named(place):
        make_folder(place, 0o755)
        sweep(place)
        with temporary_folder(place) as fresh:
            write(fresh)
            flush_folder(fresh)
            for _ in range(_ATTEMPTS):
                if sound(folder):
                    break
                _replace(folder, fresh)
                time.sleep(_PAUSE)
            else:
                raise OSError("it changes all the time")


def _replace(folder: Path, fresh: Path) -> None:
    """Tries once to move a broken `folder` out of the way and to give `fresh` its name.

    Another process may be faster at either step; the caller then tries again.
    """
    broken = unused_name(folder.parent)
    with contextlib.suppress(FileNotFoundError):
        rename(folder, broken)
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        try:
            rename(fresh, folder)
        except OSError:
            # The error of renaming onto a filled folder is "not empty" on some systems, "exists" on others.
            if not folder.exists():
                raise
    remove(broken)


@contextlib.contextmanager
def _errors_named(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DpmfError(
            f"{place}: cannot be written ({error.strerror or error}); free some space there, or name another "
            "folder in $DPMF_CACHE"
        ) from error

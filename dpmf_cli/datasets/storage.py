"""Files and folders that appear whole or not at all.

A folder is written beside its place under another name, flushed to the disk and renamed. Two processes that
write the same one at once both succeed; the second finds the first's and drops its own.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dpmf_cli.errors import DpmfError

_STALE_SECONDS = 24 * 3600


def write_text(path: Path, text: str) -> None:
    """Writes a small file atomically; raises `DpmfError` where the disk is full or the folder read-only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _cannot_write(path.parent, error) from error


def publish(folder: Path, write: Callable[[Path], None], sound: Callable[[Path], bool]) -> None:
    """Makes `folder` with what `write` puts into it, unless a sound one is there; replaces an unsound one.

    `write` gets an empty folder to fill; `sound` tells whether a folder is complete.
    Raises `DpmfError` where it cannot be written.
    """
    place = folder.parent
    try:
        place.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        fresh = Path(tempfile.mkdtemp(dir=place, prefix=".writing-"))
        try:
            write(fresh)
            for path in fresh.iterdir():
                _flush(path)
            _flush(fresh)
            while not sound(folder):
                _replace(folder, fresh)
            _flush(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise _cannot_write(place, error) from error


def _replace(folder: Path, fresh: Path) -> None:
    """One attempt to give `fresh` the name `folder`; a broken `folder` is moved out of the way first."""
    broken = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".broken-"))
    try:
        if folder.exists():
            os.rename(folder, broken / "folder")
        os.rename(fresh, folder)
    except OSError:
        # Another process may have been faster, either in moving the broken one or in writing a new one.
        if fresh.exists() and not folder.exists():
            raise
    finally:
        shutil.rmtree(broken, ignore_errors=True)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(place: Path) -> None:
    """Removes what processes that were killed have left behind, once it is a day old."""
    for pattern in (".writing-*", ".broken-*"):
        for path in place.glob(pattern):
            try:
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
                    path.unlink(missing_ok=True)
            except OSError:
                continue


def _cannot_write(place: Path, error: OSError) -> DpmfError:
    return DpmfError(
        f"{place}: cannot be written ({error.strerror or error}); free some space or name another folder "
        f"in $DPMF_CACHE"
    )

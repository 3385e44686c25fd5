"""Files that appear whole or not at all, whatever happens to the process that writes them.

What is being written has a temporary name and is locked. A process that is killed leaves its temporary behind, but
not its lock: that, and no clock, tells what can be swept away.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

UMASK = os.umask(0o077)
os.umask(UMASK)
"""The process's umask, which can only be read by setting it: a temporary file starts without any of it."""

WRITING = ".writing-"
"""How the name of everything begins that is being written."""


def cache_folder() -> Path:
    """Where what can be made again is kept: $DPMF_CACHE, else the system's folder for caches."""
    named = os.environ.get("DPMF_CACHE")
    if named:
        return Path(named)
    import pooch

    return Path(pooch.os_cache("dpmf"))


def write_whole(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Writes a file beside its place, flushes it to the disk and renames it. Raises OSError.

    mode  who may do what with it, less the process's umask
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(lambda: _temporary_file(path)) as (temporary, descriptor):
        os.fchmod(descriptor, mode & ~UMASK)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(descriptor)
        os.replace(temporary, path)


@contextlib.contextmanager
def temporary_folder(place: Path) -> Iterator[Path]:
    """A folder in `place`, from which a file can be renamed into it, or which can be; gone afterwards."""
    with _locked(lambda: _temporary_folder(place)) as (folder, _):
        yield folder


def sweep(place: Path) -> None:
    """Removes what killed processes were writing in that folder. What others are writing is locked and stays."""
    for path in place.glob(f"{WRITING}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
            finally:
                os.close(descriptor)


def remove(path: Path) -> None:
    """Removes a file, or a folder and all in it, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _temporary_file(path: Path) -> tuple[Path, int]:
    descriptor, name = tempfile.mkstemp(prefix=f"{WRITING}{path.name}.", dir=path.parent)
    return Path(name), descriptor


def _temporary_folder(place: Path) -> tuple[Path, int]:
    folder = unused_name(place)
    folder.mkdir()
    return folder, os.open(folder, os.O_RDONLY)


def unused_name(place: Path) -> Path:
    return place / f"{WRITING}{os.getpid()}-{secrets.token_hex(6)}"


@contextlib.contextmanager
def _locked(make: Callable[[], tuple[Path, int]]) -> Iterator[tuple[Path, int]]:
    """What `make` makes, locked; removed in the end, if it still has that name."""
    while True:
        try:
            path, descriptor = make()
        except FileNotFoundError as error:
            if error.filename is not None and Path(error.filename).parent.exists():
                continue  # another process has swept it away before it was open
            raise
        try:
            with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_there(path, descriptor):
                continue  # swept away before it was locked
            yield path, descriptor
            return
        finally:
            with contextlib.suppress(OSError):
                if _is_there(path, descriptor):
                    remove(path)
            os.close(descriptor)


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False

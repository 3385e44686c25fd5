"""Files that appear complete or not at all, even if the writing process is killed or the power fails.

A file that is being written has a temporary name and is locked. Because a killed process leaves its temporary file
behind, but not its lock, a missing lock, and no clock, tells which temporary files can be removed. A file's bytes are
on the disk before the file has its name, and the name before the function returns. Results and caches are written so.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from dpmf_cli.core.errors import DpmfError

PACKAGE = Path(__file__).parents[1]
"""The folder of dpmf's own files."""

WRITING = ".writing-"
"""How the name of every file or folder begins while it is being written."""

_UNFLUSHED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
"""Errors of file systems that cannot flush a folder, or that let a process write into a folder but not open it."""


def read_file(path: Path, most: int = -1) -> bytes:
    """The bytes of a file, or the first `most` of them. Raises OSError as `open_file` does."""
    with open_file(path) as file:
        return file.read(most)


def open_file(path: Path) -> BinaryIO:
    """A file, open for reading. Raises OSError, also for a FIFO or a device, which may never give anything."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file", str(path))
    return open(descriptor, "rb")


NOT_PRIVATE = "it is a link, belongs to another user, or lets others write to it"


def is_private(path: Path, kind: int = stat.S_IFDIR) -> bool:
    """Whether a folder (or a file, by `kind`) belongs to this user or to root, and no one else may write to it.

    What does not exist is private. Raises OSError.
    """
    try:
        return is_ours(path.lstat(), kind)
    except FileNotFoundError:
        return True


def is_ours(status: os.stat_result, kind: int) -> bool:
    """The same for the status of a file or folder."""
    open_to_others = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_IFMT(status.st_mode) == kind and status.st_uid in (os.getuid(), 0) and not open_to_others


def cache_folder() -> Path:
    """The folder of files that can be made again: $DPMF_CACHE, else the system's folder for caches."""
    return _folder_of_user("DPMF_CACHE", "user_cache_path", "caches")


def state_folder() -> Path:
    """The folder of files that cannot be made again: $DPMF_STATE, else the system's folder for state."""
    return _folder_of_user("DPMF_STATE", "user_state_path", "state")


def _folder_of_user(variable: str, path: str, what: str) -> Path:
    """The folder that an environment variable names, else the one of platformdirs' function `path`."""
    if named := os.environ.get(variable):
        return Path(named)
    import platformdirs

    try:
        return Path(getattr(platformdirs, path)("dpmf"))
    except RuntimeError as error:
        fix = f"set $HOME, or name a folder in ${variable}"
        raise DpmfError(f"no folder for {what}: {error}; {fix}") from None


def write_whole(path: Path, data: bytes | Iterable[bytes | memoryview], mode: int = 0o666) -> None:
    """Writes a file under a temporary name in its folder, flushes it to the disk and renames it. Raises OSError.

    data  the file's bytes, or their parts in turn
    mode  the file's permissions, less the process's umask; a folder made for it lets others write only if they may
          write to the file
    """
    make_folder(path.parent, 0o755 | mode & 0o022)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with _locked(path.parent, lambda new: os.open(new, flags, mode)) as (temporary, descriptor):
        with open(descriptor, "wb", closefd=False) as file:
            file.writelines([data] if isinstance(data, bytes) else data)
        os.fsync(descriptor)
        rename(temporary, path)


@contextlib.contextmanager
def writing(place: Path, fix: str) -> Iterator[None]:
    """A context in which an OSError becomes a DpmfError that says what cannot be written, and the fix."""
    try:
        yield
    except OSError as error:
        raise DpmfError(f"{place}: cannot be written ({error.strerror or error}); {fix}") from error


def rename(source: Path, target: Path) -> None:
    """Renames a file or folder, and replaces what has that name. On the disk when this returns. Raises OSError."""
    os.replace(source, target)
    for folder in {source.parent, target.parent}:
        flush_folder(folder)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Makes a folder and its parents, unless they exist. They are on the disk when this returns. Raises OSError.

    mode  their permissions, less the process's umask
    """
    try:
        os.mkdir(folder, mode)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_folder(folder.parent, mode)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, mode)
        flush_folder(folder.parent)
    except OSError as error:
        if folder.is_dir():
            return
        if folder.is_symlink():
            error.strerror = f"{folder} is a link to {os.readlink(folder)}, where nothing is"
        raise
    else:
        flush_folder(folder.parent)


def flush(path: Path) -> None:
    """Flushes a file or folder to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Flushes the names in a folder to the disk, if its file system can. Raises OSError."""
    try:
        flush(folder)
    except OSError as error:
        if error.errno not in _UNFLUSHED:
            raise


@contextlib.contextmanager
def temporary_folder(place: Path) -> Iterator[Path]:
    """A folder in `place`, from which it or a file in it can be renamed into `place`, and which is removed
    afterwards."""

    def make(folder: Path) -> int:
        os.mkdir(folder, 0o755)
        return os.open(folder, os.O_RDONLY)

    with _locked(place, make) as (folder, _):
        yield folder


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits until no other process holds the lock of that name, and holds it. Raises OSError."""
    descriptor = open_for_locks(path)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def open_for_locks(path: Path, mode: int = 0o666) -> int:
    """The descriptor of a file that is opened for locks on its bytes, and stays empty. Raises OSError."""
    make_folder(path.parent, 0o755 | mode & 0o022)
    return os.open(path, os.O_RDWR | os.O_CREAT, mode)


def lock_name(descriptor: int, name: bytes, operation: int) -> bool:
    """Locks or unlocks, without waiting, the byte of a file that stands for a name; the lock ends with this process.

    False if another process holds it; where a file system has no locks, none does.
    """
    try:
        fcntl.lockf(descriptor, operation, 1, int.from_bytes(hashlib.sha256(name).digest()[:7]))
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass
    return True


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sweep(place: Path) -> None:
    """Removes the temporary files of killed processes in a folder; those of running processes are locked and stay."""
    for path in place.glob(f"{WRITING}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
            finally:
                os.close(descriptor)


def remove(path: Path) -> None:
    """Removes a file, or a folder and all in it, if it exists and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def unused_name(place: Path) -> Path:
    return place / f"{WRITING}{os.getpid()}-{secrets.token_hex(6)}"


@contextlib.contextmanager
def _locked(place: Path, make: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    """Locks a file or folder in `place` that `make` makes and opens. Removes it in the end, if it still is there."""
    while True:
        path = unused_name(place)
        try:
            descriptor = make(path)
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

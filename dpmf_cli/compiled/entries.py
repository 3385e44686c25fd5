"""Files of machine code, each with the checksum of all that is in it and the key of what it was made of.

    magic line                       the format
    SHA-256 of what follows, hex     compared before anything else is read
    the key                          JSON, one line
    the payload                      to the end

A payload is unpickled, which may run any code. So it is taken from files alone that this user wrote, in a folder that
no one else can write to, and only after the checksum and the key were compared.
"""

import contextlib
import functools
import hashlib
import multiprocessing
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dpmf_cli.files import cache_folder, remove, sweep, write_whole
from dpmf_cli.terminal import say

MAGIC = b"dpmf kernel 1\n"
SUFFIX = ".kernel"
KEPT = 4
"""Entries of one kernel and signature: of other sources, versions or processors. The newest are kept."""

NOT_PRIVATE = (
    "it is a link, another user's, or others may write to it; `chmod 700` it, or name another folder in "
    "$DPMF_KERNELS"
)


class Damaged(Exception):
    """An entry is not what was written."""


def place() -> Path:
    """Where this user's entries are, whether there are any or not: $DPMF_KERNELS, else in the folder for caches."""
    named = os.environ.get("DPMF_KERNELS")
    return Path(named) if named else cache_folder() / f"kernels-{os.getuid()}"


def folder() -> Path | None:
    """Where entries are read and written; None, which is said once, where that cannot be or is not private."""
    return _private(place())


@functools.cache
def _private(path: Path) -> Path | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if not is_private():
            _say(f"{path}: compiled kernels are not kept there: {NOT_PRIVATE}")
            return None
    except OSError as error:
        _not_kept(path, error)
        return None
    return path


def is_private() -> bool:
    """Whether this user alone may write to the folder of entries, or there is none."""
    try:
        return _is_ours(place().lstat(), stat.S_IFDIR)
    except FileNotFoundError:
        return True


def _is_ours(status: os.stat_result, kind: int) -> bool:
    """Whether a file or folder is this user's, and no one else may write to it."""
    others = stat.S_IWGRP | stat.S_IWOTH
    return (
        stat.S_IFMT(status.st_mode) == kind
        and status.st_uid == os.getuid()
        and not stat.S_IMODE(status.st_mode) & others
    )


def file_of(kernel: str, signature: str, key: bytes) -> str:
    """The name of an entry. All of one kernel and signature begin alike."""
    return f"{kernel}-{_digest(signature.encode())[:16]}-{_digest(key)[:32]}{SUFFIX}"


def read(path: Path, key: bytes) -> bytes | None:
    """The payload of an entry; None where there is none. A damaged one is removed, which is said."""
    try:
        found, payload = content(path)
        if found != key:
            raise Damaged("its key is another's")
    except FileNotFoundError:
        return None
    except (Damaged, OSError) as error:
        discard(path, str(error))
        return None
    return payload


def discard(path: Path, why: str) -> None:
    """Removes an entry that is of no use, and says so."""
    say(f"{path}: damaged ({why}); the kernel is compiled anew")
    remove(path)


def content(path: Path) -> tuple[bytes, bytes]:
    """The key and the payload of an entry. Raises Damaged, or OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not _is_ours(os.fstat(descriptor), stat.S_IFREG):
            raise Damaged("others may write to it")
        whole = file.read()
    head = len(MAGIC) + hashlib.sha256().digest_size * 2 + 1
    if whole[:head] != MAGIC + _digest(whole[head:]).encode() + b"\n":
        raise Damaged("its content does not fit its checksum")
    key, _, payload = whole[head:].partition(b"\n")
    return key, payload


def write(path: Path, key: bytes, payload: bytes) -> None:
    """Keeps an entry, and of those of its kernel and signature the newest. Where that cannot be, it is said once."""
    body = key + b"\n" + payload
    try:
        sweep(path.parent)
        write_whole(path, MAGIC + _digest(body).encode() + b"\n" + body, mode=0o600)
    except OSError as error:
        _not_kept(path.parent, error)
        return
    for old in _by_age(path)[KEPT:]:
        remove(old)


def _by_age(path: Path) -> list[Path]:
    """The entries of that one's kernel and signature, the newest first."""
    alike = path.name.rpartition("-")[0]
    times = {}
    for each in path.parent.glob(f"{alike}-*{SUFFIX}"):
        with contextlib.suppress(OSError):
            times[each] = each.stat().st_mtime_ns
    return sorted(times, key=times.__getitem__, reverse=True)


def entries() -> Iterator[Path]:
    """Every entry there is."""
    return iter(sorted(place().glob(f"*{SUFFIX}")))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _not_kept(path: Path, error: OSError) -> None:
    why = error.strerror or error
    _say(f"{path}: compiled kernels are not kept there ({why}); name another folder in $DPMF_KERNELS")


@functools.cache
def _say(text: str) -> None:
    """Once, and by the command itself, which asks for the `folder` before it starts processes; not by these."""
    if multiprocessing.parent_process() is None:
        say(text)

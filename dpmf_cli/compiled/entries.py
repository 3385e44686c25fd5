"""Files of machine code. Each file holds a checksum of its content, and a key of everything that the code depends on.

    magic line                       the format
    SHA-256 of the rest, in hex      compared before anything else is read
    the key                          JSON, one line
    the payload                      up to the end of the file

Unpickling a payload may run any code. So dpmf reads a file only if this user wrote it, in a folder that no one else
can write to. It unpickles the payload only after it has compared the checksum and the key.
"""

import contextlib
import functools
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dpmf_cli import children, files
from dpmf_cli.files import cache_folder, is_ours, make_folder, remove, sha256, sweep, write_whole
from dpmf_cli.terminal import say

MAGIC = b"dpmf kernel 1\n"
SUFFIX = ".kernel"
KEPT = 4
"""How many entries of one kernel and signature are kept: the newest, whatever their sources, versions, processors."""

NOT_PRIVATE = f"{files.NOT_PRIVATE}; run `chmod 700` on it, or name another folder in $DPMF_KERNELS"


class Damaged(Exception):
    """The content of an entry differs from what was written."""


def place() -> Path:
    """Returns the folder of this user's entries, existing or not: $DPMF_KERNELS, else in the folder for caches."""
    named = os.environ.get("DPMF_KERNELS")
    return Path(named) if named else cache_folder() / f"kernels-{os.getuid()}"


def folder() -> Path | None:
    """Returns the folder of entries. If it is unusable or not private, says so once and returns None."""
    return _private(place())


@functools.cache
def _private(path: Path) -> Path | None:
    try:
        make_folder(path.parent, 0o755)
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
    """Whether only this user may write to the folder of entries, or the folder does not exist."""
    return files.is_private(place())


def file_of(kernel: str, signature: str, key: bytes) -> str:
    """Returns the file name of an entry. The names of one kernel and signature have the same beginning."""
    return f"{kernel}-{sha256(signature.encode())[:16]}-{sha256(key)[:32]}{SUFFIX}"


def read(path: Path, key: bytes) -> bytes | None:
    """Returns the payload of an entry, or None if there is none. Removes a damaged entry and says so."""
    try:
        found, payload = content(path)
        if found != key:
            raise Damaged("its key belongs to another entry")
    except FileNotFoundError:
        return None
    except (Damaged, OSError) as error:
        discard(path, str(error))
        return None
    return payload


def discard(path: Path, why: str) -> None:
    """Removes an unusable entry and says so."""
    say(f"{path}: damaged ({why}); the kernel is compiled anew")
    remove(path)


def content(path: Path) -> tuple[bytes, bytes]:
    """Returns the key and the payload of an entry. Raises Damaged or OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not is_ours(os.fstat(descriptor), stat.S_IFREG):
            raise Damaged("others may write to it")
        whole = file.read()
    head = len(MAGIC) + hashlib.sha256().digest_size * 2 + 1
    if whole[:head] != MAGIC + sha256(whole[head:]).encode() + b"\n":
        raise Damaged("its content does not fit its checksum")
    key, _, payload = whole[head:].partition(b"\n")
    return key, payload


def write(path: Path, key: bytes, payload: bytes) -> None:
    """Writes an entry, and removes all but the newest of its kernel and signature.

    If it cannot write, says so once.
    """
    body = key + b"\n" + payload
    try:
        sweep(path.parent)
        write_whole(path, MAGIC + sha256(body).encode() + b"\n" + body, mode=0o600)
    except OSError as error:
        _not_kept(path.parent, error)
        return
    for old in _by_age(path)[KEPT:]:
        remove(old)


def _by_age(path: Path) -> list[Path]:
    """Returns the entries of the same kernel and signature as `path`, newest first."""
    alike = path.name.rpartition("-")[0]
    times = {}
    for each in path.parent.glob(f"{alike}-*{SUFFIX}"):
        with contextlib.suppress(OSError):
            times[each] = each.stat().st_mtime_ns
    return sorted(times, key=times.__getitem__, reverse=True)


def entries() -> Iterator[Path]:
    """Returns an iterator over all entries."""
    return iter(sorted(place().glob(f"*{SUFFIX}")))


def _not_kept(path: Path, error: OSError) -> None:
    why = error.strerror or error
    _say(f"{path}: compiled kernels are not kept there ({why}); name another folder in $DPMF_KERNELS")


@functools.cache
def _say(text: str) -> None:
    """Says a text once, and only in the process of the command itself.

    The command asks for the `folder` before it starts other processes. So they need not say the text.
    """
    if not children.started:
        say(text)

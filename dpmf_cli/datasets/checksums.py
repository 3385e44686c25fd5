"""Digests of files, which are remembered so that a file of several GB is not read again at every start."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from io import BufferedReader
from pathlib import Path

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import write_whole

# After its last change a file could change again within this time and keep the same time stamp.
_SETTLED_NS = 2 * 10**9


def digest(stream: BufferedReader, kind: str = "sha256") -> str:
    """Returns the digest of the rest of a stream as `kind:hex`."""
    state = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{state.hexdigest()}"


def kinds(known: Iterable[str]) -> list[str]:
    """Returns the kinds (`sha256`, `md5`) of the digests in `known`, sorted."""
    return sorted({value.partition(":")[0] for value in known})


def file_digest(path: Path, cache: Path | None, kind: str = "sha256") -> str:
    """Returns `kind:hex` of a file's bytes, remembered in `cache` while the file keeps its size, times and inode.

    Without a cache, the digest is computed now.
    """

    def compute() -> str:
        with path.open("rb") as file:
            return digest(file, kind)

    return _remembered(f"{kind}:{path.resolve()}", [path], cache, compute)


def folder_digest(folder: Path, paths: Sequence[Path], cache: Path) -> str:
    """Returns one `sha256:hex` of the names and bytes of some files of a folder, remembered as in `file_digest`."""

    def compute() -> str:
        state = hashlib.sha256()
        for path in sorted(paths, key=lambda path: path.name):
            with path.open("rb") as file:
                state.update(f"{path.name} {digest(file)}\n".encode())
        return f"sha256:{state.hexdigest()}"

    return _remembered(f"folder:{folder.resolve()}", paths, cache, compute)


def _remembered(key: str, paths: Sequence[Path], cache: Path | None, compute: Callable[[], str]) -> str:
    """Returns the value of `compute`, remembered while the files keep their size, times and inode."""
    try:
        if cache is None:
            return compute()
        note = cache / "digests" / f"{hashlib.sha256(os.fsencode(key)).hexdigest()[:32]}.json"
        stamp, newest = _stamp(paths)
        if (known := _recall(note, key, stamp)) is not None:
            return known
        value = compute()
    except OSError as error:
        raise DpmfError(
            f"{error.filename or paths[0]}: cannot be read ({error.strerror or error})"
        ) from error
    if abs(time.time_ns() - newest) > _SETTLED_NS:
        with contextlib.suppress(OSError):  # the cache may be read-only: then the next call computes it again
            write_whole(note, json.dumps({"key": key, "stamp": stamp, "digest": value}).encode(), 0o644)
    return value


def _stamp(paths: Sequence[Path]) -> tuple[str, int]:
    """Returns a text that changes when one of the files does, and their latest time of change (ns)."""
    state, newest = hashlib.sha256(), 0
    for path in paths:
        status = path.stat()
        newest = max(newest, status.st_mtime_ns)
        # st_ctime_ns is the time of the last change of any kind. Unlike st_mtime_ns, it cannot be set back.
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        state.update(f"{path.name} {status.st_size} {times} {status.st_ino}\n".encode())
    return state.hexdigest(), newest


def _recall(note: Path, key: str, stamp: str) -> str | None:
    """Returns the remembered digest if the note is sound and still describes the files; None otherwise."""
    try:
        held = json.loads(note.read_text())
        return str(held["digest"]) if (held["key"], held["stamp"]) == (key, stamp) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

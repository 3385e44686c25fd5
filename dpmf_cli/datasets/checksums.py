"""Digests of files, and a memory of them, so that a file of several GB is not read again at every start."""

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from dpmf_cli.datasets import storage
from dpmf_cli.errors import DpmfError

_BLOCK = 1 << 20
# A file written to within this time could change again without its time of change showing it.
_SETTLED_NS = 2 * 10**9


def digest(stream: IO[bytes], kind: str = "sha256") -> str:
    """`kind:hex` of what is left of a stream."""
    state = hashlib.new(kind, usedforsecurity=False)
    while block := stream.read(_BLOCK):
        state.update(block)
    return f"{kind}:{state.hexdigest()}"


def matches(path: Path, known: Iterable[str], cache: Path) -> bool:
    """Whether a file has one of the known digests; each kind of digest is computed once at most."""
    known = frozenset(known)
    kinds = {value.partition(":")[0] for value in known}
    return any(file_digest(path, cache, kind) in known for kind in sorted(kinds))


def file_digest(path: Path, cache: Path, kind: str = "sha256") -> str:
    """`kind:hex` of a file's bytes, remembered in `cache` for as long as its size, time and inode stay."""
    try:
        status = path.stat()
        stamp = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
        note = _note(path, cache, kind)
        if (known := _recall(note, stamp)) is not None:
            return known
        with path.open("rb") as file:
            value = digest(file, kind)
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read ({error.strerror or error})") from error
    if abs(time.time_ns() - status.st_mtime_ns) > _SETTLED_NS:
        storage.write_text(note, json.dumps({"path": str(path), "stamp": stamp, "digest": value}))
    return value


def _note(path: Path, cache: Path, kind: str) -> Path:
    name = hashlib.sha256(f"{kind}:{path.resolve()}".encode()).hexdigest()[:32]
    return cache / "digests" / f"{name}.json"


def _recall(note: Path, stamp: str) -> str | None:
    """The remembered digest, where the note is sound and still describes the file."""
    try:
        held = json.loads(note.read_text())
        return str(held["digest"]) if held["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""What the cache remembers of files that have not changed since, so that a command need not make it again.

A file of `remembered/` holds a hash of dpmf itself, a checksum, and a value with the state of the folders that it was
made from. If it is damaged, or one of these has changed, it counts as not there.
"""

import os
import pickle
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpmf_cli.core import files
from dpmf_cli.core.errors import DpmfError


def state(folders: Iterable[str | Path]) -> dict[str, str]:
    """By the folder's absolute path, a hash of the names and bytes of the files in it."""
    return {path: files.sha256(repr(list(_files(path))).encode()) for path in map(os.path.abspath, folders)}


def _files(folder: str) -> Iterable[tuple[str, str]]:
    with suppress(OSError):  # not there
        # Python makes this folder when a package is imported for the first time.
        for name in sorted({*os.listdir(folder)} - {"__pycache__"}):
            try:
                yield name, files.sha256(files.read_file(Path(folder, name)))
            except OSError:  # a folder, or a file that cannot be read
                yield name, ""


def _hash_of_code() -> bytes:
    """A hash of dpmf's own files, of Python's version, and of the times when packages were installed."""
    folders = (folder for folder, _, _ in os.walk(files.PACKAGE) if not folder.endswith("__pycache__"))
    installed = [
        os.stat(each).st_mtime_ns for each in sys.path if each.endswith("-packages") and os.path.isdir(each)
    ]
    return files.sha256(repr([sys.version, state(folders), installed]).encode()).encode()


KEPT = 500
"""How many values are remembered, the newest."""

_CODE = _hash_of_code()
"""It is made as soon as the code is imported, because files may change while a command runs."""


def _place(name: str) -> Path | None:
    """The file of a name; None if others may write there, because reading the file may run anything."""
    folder = files.cache_folder() / "remembered"
    private = all(files.is_private(each) for each in (folder.parent.resolve(), folder))
    return folder / files.sha256(os.fsencode(name)) if private else None


def remember(name: str, value: Any, made_from: dict[str, str]) -> None:
    """Remembers a value under a name for as long as `made_from` is the `state` of its folders."""
    with suppress(
        OSError, DpmfError, pickle.PicklingError, TypeError, AttributeError
    ):  # then it is made again
        data = pickle.dumps((name, made_from, value))
        if place := _place(name):
            files.write_whole(place, b"%b %b %b" % (_CODE, files.sha256(data).encode(), data), 0o600)
            files.sweep(place.parent)
            newest = sorted(place.parent.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
            for old in newest[KEPT:]:
                files.remove(old)


def recall(name: str) -> Any:
    """The value that is remembered under a name; None if there is none, or its folders have changed."""
    with suppress(Exception):  # a damaged one may raise anything
        place = _place(name)
        if place and files.is_private(place, stat.S_IFREG):
            code, seal, data = files.read_file(place).split(b" ", 2)
            if (code, seal) == (_CODE, files.sha256(data).encode()):
                named, made_from, value = pickle.loads(data)
                return value if named == name and made_from == state(made_from) else None
    return None

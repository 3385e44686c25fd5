"""The tables, figures and pages of a results folder, and their hashes in its manifest.

    "files": {"curves.csv": "<SHA-256>", "curves.png": null}

A name without a hash stands for a file that a command is about to write. So however the command ends, each file
either has its hash or is known to need the same command again.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmf_cli.files import make_folder, remove, sweep
from dpmf_cli.results.manifest import MANIFEST, read_manifest, write_manifest
from dpmf_cli.results.store import errors_named, write_atomically

Maker = Callable[[], bytes]
"""Returns the content of a file. Called only when it is the file's turn, because figures take time."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds a results folder, made if it does not exist, for one command at a time to change. Other commands wait.

    Removes half-written files that killed commands left there. Raises DpmfError where the folder cannot be made.
    """
    with errors_named(folder):
        make_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # without locks in the file system, the later manifest wins
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        sweep(folder)
        yield
    finally:
        os.close(descriptor)


def write_files(
    folder: Path, manifest: dict[str, Any], makers: Mapping[str, Maker], never: Iterable[str] = ()
) -> None:
    """Writes the manifest and the files (by name) of a `held` folder, and removes the files named in `never`.

    If the manifest already has the right hash of every file, only the files are written. Raises DpmfError.
    """
    taken = set(never)
    files = {name: digest for name, digest in manifest.get("files", {}).items() if name not in taken}
    unknown = {name: None for name in makers if files.get(name) is None}
    before = manifest.get("files", {})
    if unknown or len(files) < len(before):
        files |= unknown
        write_manifest(folder, {**manifest, "files": files})
    for name in taken:
        remove(folder / name)
    for name, make in makers.items():
        content = make()
        digest = hashlib.sha256(content).hexdigest()
        if files[name] not in (None, digest):  # another version of dpmf made a different file
            files[name] = None
            write_manifest(folder, {**manifest, "files": files})
        write_atomically(folder / name, content)
        files[name] = digest
    if files != before:
        write_manifest(folder, {**manifest, "files": files})


def add_file(path: Path, content: bytes) -> None:
    """Writes one more file into a folder, and its hash into the folder's manifest, if any. Raises DpmfError."""
    folder = path.parent
    with held(folder):
        if (folder / MANIFEST).exists():
            write_files(folder, read_manifest(folder), {path.name: lambda: content})
        else:
            write_atomically(path, content)

"""What a process asks of the disk, call by call, as `dpmf_cli.files` asks it: nothing else writes results and caches."""

import builtins
import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli import files


@dataclass(frozen=True)
class Call:
    """One call: mkdir, create, write, flush (of a file), flush folder, rename, unlink, rmdir; or `told`, that a file is
    there for good.

    path, to   relative to the folder under which calls are recorded
    data       what the whole file holds after a write
    """

    kind: str
    path: str
    to: str = ""
    data: bytes = b""


@dataclass
class Recorder:
    """In the place of the modules that `dpmf_cli.files` uses. What lies outside of `base` is not recorded."""

    base: Path
    calls: list[Call] = field(default_factory=list)

    def note(self, kind: str, path: str | Path, to: str | Path = "", data: bytes = b"") -> None:
        place = os.path.relpath(os.path.abspath(path), self.base)
        if not place.startswith(".."):
            self.calls.append(Call(kind, place, to and os.path.relpath(os.path.abspath(to), self.base), data))

    def open(self, path: Any, mode: str = "r", **options: Any) -> Any:
        file = builtins.open(path, mode, **options)
        if "x" in mode:
            self.note("create", path)
        return file


class _Os:
    """`os`, whose calls that change the disk are noted once they were made."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        if flags & os.O_CREAT:
            self._recorder.note("create", path)
        return descriptor

    def mkdir(self, path: Any) -> None:
        os.mkdir(path)
        self._recorder.note("mkdir", path)

    def replace(self, source: Any, target: Any) -> None:
        os.replace(source, target)
        self._recorder.note("rename", source, target)

    def unlink(self, path: Any) -> None:
        os.unlink(path)
        self._recorder.note("unlink", path)

    def fsync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_dir():
            self._recorder.note("write", path, data=path.read_bytes())
        os.fsync(descriptor)
        self._recorder.note("flush folder" if path.is_dir() else "flush", path)


class _Shutil:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def rmtree(self, path: Path, **options: Any) -> None:
        within = [*sorted(path.rglob("*"), reverse=True), path]
        kinds = ["rmdir" if each.is_dir() else "unlink" for each in within]
        shutil.rmtree(path, **options)
        for kind, each in zip(kinds, within, strict=True):
            self._recorder.note(kind, each)


@contextlib.contextmanager
def recorded(base: Path) -> Iterator[Recorder]:
    """Records all that is asked of the disk under a folder."""
    recorder = Recorder(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "os", _Os(recorder))
        patch.setattr(files, "shutil", _Shutil(recorder))
        patch.setattr(files, "open", recorder.open, raising=False)
        yield recorder

"""Records each call to the disk that a process makes by `dpmf_cli.core.files`, which writes all results and caches."""

import builtins
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core import files


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
    """Replaces the modules that `dpmf_cli.core.files` uses. Calls outside `base` are not recorded."""

    base: Path
    calls: list[Call] = field(default_factory=list)

    def note(self, kind: str, path: str | Path, to: str | Path | None = None, data: bytes = b"") -> None:
        place = self._within(path)
        if not place.startswith(".."):
            self.calls.append(Call(kind, place, "" if to is None else self._within(to), data))

    def _within(self, path: str | Path) -> str:
        return os.path.relpath(os.path.abspath(path), self.base)

    def open(self, path: Any, mode: str = "r", **options: Any) -> Any:
        file = builtins.open(path, mode, **options)  # noqa: SIM115
        if "x" in mode:
            self.note("create", path)
        return file


_KINDS = {"mkdir": "mkdir", "replace": "rename", "unlink": "unlink"}


class _Os:
    """`os`, with calls that change the disk recorded after they were made."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)

        def noted(*arguments: Any) -> None:
            function(*arguments)
            path, to = (*arguments, None)[:2]
            self._recorder.note(_KINDS[name], path, to if name == "replace" else None)

        return noted if name in _KINDS else function

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        if flags & os.O_CREAT:
            self._recorder.note("create", path)
        return descriptor

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


_WATCHED: list[Path] = []
_past: list[str] = []
_CHANGES = [f"os.{name}" for name in ["rename", "mkdir", "rmdir", "remove", "link", "symlink", "truncate"]]


_hook = cache(sys.addaudithook)
"""Once in a process: Python cannot remove a hook."""


def watch(folders: Sequence[Path]) -> list[str]:
    """Lists, from now on, changes of these folders that bypass `dpmf_cli.core.files`, as reported by Python's audit
    hooks."""
    global _past
    _hook(_audit)
    _WATCHED[:], _past = folders, []
    return _past


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _WATCHED or not arguments or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    if not (
        event in (*_CHANGES, "shutil.rmtree")
        or (event == "open" and (arguments[2] or 0) & (os.O_ACCMODE | os.O_CREAT))
    ):
        return
    path = Path(os.path.abspath(os.fsdecode(arguments[0])))
    if any(path.is_relative_to(folder) for folder in _WATCHED) and not _is_by_files():
        _past.append(f"{event} {path}")


def _is_by_files() -> bool:
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename != files.__file__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


@contextlib.contextmanager
def recorded(base: Path) -> Iterator[Recorder]:
    """Records all calls to the disk under a folder."""
    recorder = Recorder(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "os", _Os(recorder))
        patch.setattr(files, "shutil", _Shutil(recorder))
        patch.setattr(files, "open", recorder.open, raising=False)
        yield recorder

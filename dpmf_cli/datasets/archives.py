"""The rating files inside whatever a user has: a folder, a bare file, a zip, a tar, or one within another.

Nothing is ever extracted: members are read as streams, in bounded amounts. An archive that has a member with
an absolute name or `..` in it, a link among what is wanted, or more bytes than an honest copy could have, is
refused whole.
"""

import fnmatch
import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from dpmf_cli.errors import DpmfError

# Ratings as text compress four- to tenfold, a spreadsheet of blanks some fiftyfold.
_RATIO_LIMIT = 200
_SMALL = 1 << 20
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_DEPTH = 3


@dataclass(frozen=True)
class Member:
    """A rating file: its label for messages, its base name and its bytes, to be read before the next one."""

    label: str
    name: str
    stream: IO[bytes]


@dataclass(frozen=True)
class Wanted:
    """What to look for: base names, archives to enter, and how many bytes are believable."""

    patterns: tuple[str, ...]
    nested: tuple[str, ...] = ()
    byte_limit: int = 1 << 40

    def match(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)

    def enter(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.nested)


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, stream: IO[bytes], limit: int, label: str) -> None:
        self._stream, self._left, self._label = stream, limit, label

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _readable(self._label):
            data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise DpmfError(
                f"{self._label}: unpacks to far more than a copy of this data set can hold; refused"
            )
        buffer[: len(data)] = data
        return len(data)


def members(path: Path, wanted: Wanted) -> Iterator[Member]:
    """The members of `path` (folder, archive or bare file) that are wanted, one at a time.

    Raises `DpmfError` for an unreadable, truncated or unsafe archive; yields nothing where none matches.
    """
    with _readable(str(path)):
        if path.is_dir():
            yield from _folder_members(path, wanted)
            return
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic == _ZIP:
                yield from _zip_members(file, str(path), wanted)
            elif magic[:2] == _GZIP or tarfile.is_tarfile(file):
                file.seek(0)
                yield from _tar_members(
                    file, str(path), wanted, path.stat().st_size, zipped=magic[:2] == _GZIP
                )
            elif wanted.match(path.name):
                file.seek(0)
                yield _bounded(str(path), path.name, file, wanted)


@contextmanager
def _readable(label: str) -> Iterator[None]:
    """Turns what the archive libraries raise into one message about what `label` names."""
    try:
        yield
    except FileNotFoundError:
        raise DpmfError(f"{label}: no such file or folder") from None
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        EOFError,
        zlib.error,
        gzip.BadGzipFile,
        NotImplementedError,
    ) as error:
        raise DpmfError(f"{label}: the archive is damaged or cut off ({error}); get it again") from error
    except OSError as error:
        raise DpmfError(f"{label}: cannot be read ({error.strerror or error})") from error


def _bounded(label: str, name: str, stream: IO[bytes], wanted: Wanted) -> Member:
    limited = _Bounded(stream, wanted.byte_limit, label)
    return Member(label, name, io.BufferedReader(limited, 1 << 20))


def _check_name(archive: str, name: str) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in name.split("/")[0]:
        raise DpmfError(f'{archive}: holds a member named "{name}", outside of its own folder; refused')


def files(folder: Path, wanted: Wanted) -> list[Path]:
    """The files of a folder, up to three levels down, that are wanted themselves or as archives to enter."""
    found = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        if len(Path(place).relative_to(folder).parts) >= _DEPTH:
            folders.clear()
        found += [Path(place, name) for name in sorted(names) if wanted.match(name) or wanted.enter(name)]
    return found


def _folder_members(folder: Path, wanted: Wanted) -> Iterator[Member]:
    for path in files(folder, wanted):
        if wanted.match(path.name):
            with path.open("rb") as file:
                yield _bounded(str(path), path.name, file, wanted)
        else:
            yield from members(path, wanted)


def _zip_members(file: IO[bytes], label: str, wanted: Wanted) -> Iterator[Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            _check_name(label, info.filename)
        for info in archive.infolist():
            name = PurePosixPath(info.filename).name
            if info.is_dir() or not (wanted.match(name) or wanted.enter(name)):
                continue
            inner = f"{label}/{info.filename}"
            if stat.S_ISLNK(info.external_attr >> 16):
                raise DpmfError(f"{inner}: is a link; refused")
            if info.file_size > max(_SMALL, _RATIO_LIMIT * info.compress_size):
                raise DpmfError(f"{inner}: unpacks more than {_RATIO_LIMIT}-fold; refused")
            if info.flag_bits & 1:
                raise DpmfError(f"{inner}: is encrypted; unpack it yourself first")
            with archive.open(info) as stream:
                if wanted.match(name):
                    yield _bounded(inner, name, stream, wanted)
                else:
                    yield from _nested_members(stream, inner, wanted, info.compress_size)


def _tar_members(file: IO[bytes], label: str, wanted: Wanted, size: int, *, zipped: bool) -> Iterator[Member]:
    """Members of a tar in stored order, in one pass, so that a tar within a tar.gz needs no second one."""
    plain: IO[bytes] = file
    if zipped:
        unpacked = gzip.GzipFile(fileobj=file)
        limited = _Bounded(unpacked, max(_SMALL, _RATIO_LIMIT * size), label)  # type: ignore[arg-type]
        plain = io.BufferedReader(limited, 1 << 20)
    with tarfile.open(fileobj=plain, mode="r|") as archive:
        for info in archive:
            _check_name(label, info.name)
            name = PurePosixPath(info.name).name
            if not (wanted.match(name) or wanted.enter(name)):
                continue
            inner = f"{label}/{info.name}"
            if info.issym() or info.islnk():
                raise DpmfError(f"{inner}: is a link; refused")
            stream = archive.extractfile(info)
            if stream is None:
                continue
            if wanted.match(name):
                yield _bounded(inner, name, stream, wanted)
            else:
                yield from _nested_members(stream, inner, wanted, info.size)


def _nested_members(stream: IO[bytes], label: str, wanted: Wanted, size: int) -> Iterator[Member]:
    """Members of an archive within an archive: a tar as a stream, a zip (which needs seeking) in memory."""
    name = PurePosixPath(label).name
    if name.endswith(".zip"):
        held = io.BytesIO(_bounded(label, name, stream, wanted).stream.read())
        yield from _zip_members(held, label, wanted)
    else:
        yield from _tar_members(stream, label, wanted, size, zipped=name.endswith((".gz", ".tgz")))

"""Finds rating files in a folder, a bare file, a zip, a tar, or an archive within another; opens a user's own file.

Nothing is ever extracted: members are read as streams, in bounded amounts. An archive is refused as a whole if it has
a member with an absolute name or `..` in its name, a name twice, a link or a device among the wanted members, or more
bytes, members or nested archives than an honest copy could have.
"""

import fnmatch
import gzip
import io
import os
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from dpmf_cli.core.errors import DpmfError, extra_missing
from dpmf_cli.core.files import open_file

# Ratings as text compress four- to tenfold, a spreadsheet of blanks about fiftyfold.
_RATIO_LIMIT = 200
_SMALL = 1 << 20
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
BLOCK = tarfile.BLOCKSIZE
"""How many bytes at the start of a file show whether it is a tar."""
_DEPTH = 3
# The Netflix Prize has 17,770 files. A zip's directory has about 100 bytes for each file, and zipfile parses the
# directory before the files can be counted.
_MOST_MEMBERS = 50_000
_MOST_OF_A_DIRECTORY = 100 * _MOST_MEMBERS


@dataclass(frozen=True)
class Member:
    """A rating file: its label for messages, its base name and its bytes, to be read before the next member."""

    label: str
    name: str
    stream: io.BufferedReader


@dataclass(frozen=True)
class Wanted:
    """What to look for: patterns of base names and of archives to enter, and the most bytes that are plausible."""

    patterns: tuple[str, ...]
    nested: tuple[str, ...] = ()
    byte_limit: int = 1 << 40

    def match(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)

    def enter(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.nested)


@dataclass
class _Search:
    """How many bytes may still be read from all members together, what is wanted, and how many members may follow."""

    left: int
    wanted: Wanted = Wanted(())
    more: int = _MOST_MEMBERS

    def wants(self, archive: str, name: str, seen: set[str]) -> str | None:
        """The base name of a wanted member or archive; None for any other. Refuses names that are unsafe."""
        self.more -= 1
        if self.more < 0:
            raise _too_many(archive)
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in name.split("/")[0]:
            raise DpmfError(f'{archive}: holds a member named "{name}", outside of its own folder; refused')
        if str(parts) in seen and not name.endswith("/"):
            raise DpmfError(f'{archive}: holds two members named "{name}"; refused')
        seen.add(str(parts))
        base = PurePosixPath(name).name
        return base if self.wanted.match(base) or self.wanted.enter(base) else None

    def member(self, label: str, name: str, stream: IO[bytes]) -> Member:
        return Member(label, name, io.BufferedReader(_Bounded(stream, self, label), 1 << 20))

    def members(self, stream: IO[bytes], label: str, size: int, levels: int) -> Iterator[Member]:
        """Yields a member, or what is wanted in an archive within the archive, if `levels` of them may be entered.

        A tar is read as a stream, and a zip, which needs seeking, in memory.
        """
        name = PurePosixPath(label).name
        if self.wanted.match(name):
            yield self.member(label, name, stream)
        elif not levels:
            raise DpmfError(f"{label}: archives within archives, more than {_DEPTH} deep; refused")
        elif name.endswith(".zip"):
            held = io.BytesIO(self.member(label, name, stream).stream.read())
            yield from _zip_members(held, label, self, levels - 1)
        else:
            zipped = name.endswith((".gz", ".tgz"))
            yield from _tar_members(stream, label, self, levels - 1, size, zipped)


def _too_many(archive: str) -> DpmfError:
    fix = "give the files of ratings by themselves"
    return DpmfError(f"{archive}: holds more than {_MOST_MEMBERS:,} files; refused; {fix}")


class _SmallReads:
    """A zip file that refuses to read a large directory, which `zipfile` reads in one go."""

    def __init__(self, file: IO[bytes], label: str) -> None:
        self._file, self._label = file, label

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_OF_A_DIRECTORY:
            raise _too_many(self._label)
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Bounded(io.RawIOBase):
    """A stream that raises DpmfError when more bytes are read than its search may."""

    def __init__(self, stream: Any, search: _Search, label: str) -> None:
        self._stream, self._search, self._label = stream, search, label

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _readable(self._label):
            data = self._stream.read(min(len(buffer), _SMALL))  # a larger read would allocate that much
        self._search.left -= len(data)
        if self._search.left < 0:
            raise DpmfError(
                f"{self._label}: unpacks to far more than a copy of this data set can hold; refused"
            )
        buffer[: len(data)] = data
        return len(data)


def most_bytes(size: int) -> int:
    """How many bytes a file of `size` bytes may unpack to."""
    return max(_SMALL, _RATIO_LIMIT * size)


def unpacking(stream: Any, label: str, size: int) -> io.BufferedReader:
    """Limits a stream that unpacks a file of `size` bytes: reading raises DpmfError if the file is damaged, or if it
    unpacks to far more."""
    return io.BufferedReader(_Bounded(stream, _Search(most_bytes(size)), label), 1 << 20)


def members(path: Path, wanted: Wanted) -> Generator[Member]:
    """Yields the wanted members of `path` (folder, archive or bare file), one at a time.

    Raises `DpmfError` for an unreadable, truncated or unsafe archive; yields nothing if no member matches.
    """
    search = _Search(wanted.byte_limit, wanted)
    with _readable(str(path)):
        if not path.is_dir():
            yield from _file_members(path, search, _DEPTH)
            return
        for place in files(path, wanted):
            if wanted.match(place.name):
                with place.open("rb") as file:
                    yield search.member(str(place), place.name, file)
            else:
                yield from _file_members(place, search, _DEPTH - 1)


def _file_members(path: Path, search: _Search, levels: int) -> Iterator[Member]:
    with _readable(str(path)):
        if path.exists() and not path.is_file():
            raise DpmfError(f"{path}: is neither a file nor a folder; refused")
        with path.open("rb") as file:
            start = file.read(BLOCK)
            file.seek(0)
            zipped = start.startswith(_GZIP)
            if start.startswith(_ZIP):
                yield from _zip_members(file, str(path), search, levels)
            elif zipped or is_tar(start):
                yield from _tar_members(file, str(path), search, levels, path.stat().st_size, zipped)
            elif search.wanted.match(path.name):
                yield search.member(str(path), path.name, file)


def is_tar(block: bytes) -> bool:
    """Whether a file that starts with `block` is a plain tar: its first header has the right checksum."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return False
    return True


@contextmanager
def _readable(label: str) -> Iterator[None]:
    """A context in which errors of the archive libraries become one message that begins with `label`."""
    try:
        yield
    except (DpmfError, MemoryError):
        raise
    except FileNotFoundError:
        raise DpmfError(f"{label}: no such file or folder") from None
    except OSError as error:
        raise DpmfError(f"{label}: cannot be read ({error.strerror or error})") from error
    except Exception as error:  # for damaged headers, the libraries may raise anything
        raise DpmfError(f"{label}: the archive is damaged or cut off ({error}); get it again") from error


def files(folder: Path, wanted: Wanted) -> list[Path]:
    """The files of a folder, up to three levels down, that are wanted or are archives to enter."""
    found = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        if len(Path(place).relative_to(folder).parts) >= _DEPTH:
            folders.clear()
        found += [Path(place, name) for name in sorted(names) if wanted.match(name) or wanted.enter(name)]
    return [path for path in found if path.is_file()]


def _zip_members(file: IO[bytes], label: str, search: _Search, levels: int) -> Iterator[Member]:
    seen: set[str] = set()
    with zipfile.ZipFile(_SmallReads(file, label)) as archive:
        wanted = [info for info in archive.infolist() if search.wants(label, info.filename, seen)]
        for info in wanted:
            if info.is_dir():
                continue
            inner = f"{label}/{info.filename}"
            if (kind := stat.S_IFMT(info.external_attr >> 16)) not in (0, stat.S_IFREG):
                raise DpmfError(f"{inner}: is {'a link' if kind == stat.S_IFLNK else 'no file'}; refused")
            if info.file_size > most_bytes(info.compress_size):
                raise DpmfError(f"{inner}: unpacks more than {_RATIO_LIMIT}-fold; refused")
            if info.flag_bits & 1:
                raise DpmfError(f"{inner}: is encrypted; unpack it yourself first")
            with archive.open(info) as stream:
                yield from search.members(stream, inner, info.file_size, levels)


def _tar_members(
    file: IO[bytes], label: str, search: _Search, levels: int, size: int, zipped: bool
) -> Iterator[Member]:
    """Yields members of a tar in stored order, in one pass, so that a tar within a tar.gz needs no second pass."""
    most, seen = most_bytes(size) if zipped else size, set[str]()
    plain = unpacking(gzip.GzipFile(fileobj=file), label, size) if zipped else file
    with tarfile.open(fileobj=plain, mode="r|") as archive:
        for info in archive:
            wanted, inner = search.wants(label, info.name, seen), f"{label}/{info.name}"
            if archive.offset > most + tarfile.RECORDSIZE:  # tarfile would go to that offset in small steps
                raise DpmfError(
                    f"{inner}: claims more bytes than the archive has; it is damaged or unsafe; refused"
                )
            if info.isdir() or not wanted:
                continue
            if not info.isreg() or info.issparse():  # a few bytes of a sparse file may stand for any number
                link = info.issym() or info.islnk()
                raise DpmfError(f"{inner}: is {'a link' if link else 'no file'}; refused")
            if (stream := archive.extractfile(info)) is not None:
                yield from search.members(stream, inner, info.size, levels)


@dataclass(frozen=True)
class Source:
    """Rating files of one format in one or more places.

    paths    folders, archives or bare files
    wanted   which of their members are read
    fix      what a user should do about a bad line
    """

    paths: tuple[Path, ...]
    wanted: Wanted
    fix: str

    def members(self) -> Iterator[Member]:
        for path in self.paths:
            yield from members(path, self.wanted)

    def read(self) -> tuple[str, bytes]:
        """The label and bytes of a format that is a single file: of the first member, once all members have proved
        harmless. Raises DpmfError if there is none."""
        first = None
        for member in self.members():
            first = first or (member.label, member.stream.read())
        if first:
            return first
        raise DpmfError(f"{self.paths[0]}: holds no {' or '.join(self.wanted.patterns)}; {self.fix}")

    def place_of(self, row: int, is_rating: Callable[[int, bytes], bool]) -> str:
        """`file:line` (1-based) of the row-th rating (0-based), by counting the lines that are ratings.

        `is_rating(number, line)` tells header lines and blank lines from ratings.
        """
        label = str(self.paths[0])
        for member in self.members():
            label = member.label
            for number, line in enumerate(member.stream, 1):
                if is_rating(number, line):
                    if row == 0:
                        return f"{label}:{number}"
                    row -= 1
        return label


_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_XLS, _IN_SPREADSHEETS = b"\xd0\xcf\x11\xe0", {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}
_LARGEST_WINDOW = 27
"""Largest window of a Zstandard file, as a power of two: the default limit of the command `zstd`."""


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Yields the bytes of a file of ratings, or of the only file in an archive. Writes nothing to the disk.

    Raises DpmfError for a spreadsheet, and if the archive has no file, or more than one. Raises DpmfError, here or
    while the stream is read, if the file is damaged or unpacks to far more than ratings do.
    """
    try:
        file = open_file(path)
    except OSError as error:
        raise DpmfError(
            f"{path}: cannot be read ({error.strerror or error}); name a file of ratings"
        ) from error
    with file:
        size = file.seek(0, 2)
        file.seek(0)
        start = file.read(BLOCK)
        file.seek(0)
        if start.startswith(_GZIP):
            inner = unpacking(gzip.GzipFile(fileobj=file), str(path), size)
            if not is_tar(inner.peek(BLOCK)[:BLOCK]):
                yield inner
                return
        elif start.startswith(_ZSTANDARD):
            yield unpacking(_zstandard(file, path), str(path), size)
            return
        elif not (start.startswith((_ZIP, _XLS)) or is_tar(start)):
            yield file
            return
    wanted = Wanted(("[!.]*",), byte_limit=most_bytes(size))  # not what macOS adds
    names = [member.label.removeprefix(f"{path}/") for member in members(path, wanted)]
    if start.startswith(_XLS) or _IN_SPREADSHEETS.intersection(names):
        raise DpmfError(f"{path}: is a spreadsheet; save the sheet of ratings as CSV, and name that file")
    if len(names) != 1:
        shown = f" ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})" if names else ""
        raise DpmfError(
            f"{path}: holds {len(names)} files{shown}, not one; unpack it and name the file of ratings"
        )
    with closing(members(path, wanted)) as found:
        yield next(found).stream


def _zstandard(file: IO[bytes], path: Path) -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        try:
            import backports.zstd as zstd
        except ImportError:
            needs = "is packed by Zstandard, which needs backports.zstd (or unpack it yourself)"
            raise extra_missing("zstd", f"{path}: {needs}") from None
    options = {int(zstd.DecompressionParameter.window_log_max): _LARGEST_WINDOW}
    return zstd.ZstdFile(file, options=options)

"""Opens a user's own file as a stream of bytes: not packed, or packed in gzip, Zstandard, a zip or a tar."""

import gzip
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

from dpmf_cli.datasets import archives
from dpmf_cli.errors import DpmfError
from dpmf_cli.files import open_file

_GZIP, _ZIP, _ZSTANDARD = b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd"
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
        start = file.read(archives.BLOCK)
        file.seek(0)
        if start.startswith(_XLS):
            raise _spreadsheet(path)
        if start.startswith(_GZIP):
            inner = archives.unpacking(gzip.GzipFile(fileobj=file), str(path), size)
            if not archives.is_tar(inner.peek(archives.BLOCK)[: archives.BLOCK]):
                yield inner
                return
        elif start.startswith(_ZSTANDARD):
            yield archives.unpacking(_Zstandard(file), str(path), size)
            return
        elif not (start.startswith(_ZIP) or archives.is_tar(start)):
            yield file
            return
    wanted = archives.Wanted(("[!.]*",), byte_limit=archives.most_bytes(size))  # not what macOS adds
    _check_only(path, wanted)
    with closing(archives.members(path, wanted)) as found:
        yield next(found).stream


def is_packed(path: Path) -> bool:
    """Whether a file must be unpacked before it is read. Raises OSError."""
    with open_file(path) as file:
        start = file.read(archives.BLOCK)
    return start.startswith((_GZIP, _ZIP, _ZSTANDARD)) or archives.is_tar(start)


def _check_only(path: Path, wanted: archives.Wanted) -> None:
    names = [member.label.removeprefix(f"{path}/") for member in archives.members(path, wanted)]
    if _IN_SPREADSHEETS.intersection(names):
        raise _spreadsheet(path)
    if len(names) != 1:
        shown = f" ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})" if names else ""
        raise DpmfError(
            f"{path}: holds {len(names)} files{shown}, not one; unpack it and name the file of ratings"
        )


def _spreadsheet(path: Path) -> DpmfError:
    return DpmfError(f"{path}: is a spreadsheet; save the sheet of ratings as CSV, and name that file")


class _Zstandard:
    """A stream that unpacks a Zstandard file. For a damaged one it raises ValueError, as other archives do."""

    def __init__(self, file: IO[bytes]) -> None:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        options = {int(zstd.DecompressionParameter.window_log_max): _LARGEST_WINDOW}
        self._stream, self._damaged = zstd.ZstdFile(file, options=options), zstd.ZstdError

    def read(self, size: int) -> bytes:
        try:
            return bytes(self._stream.read(size))
        except self._damaged as error:
            raise ValueError(str(error)) from None

"""The two files of a release: `model.npz` with arrays, and `model.json` with the statement and the arrays' SHA-256.

Arrays hold numbers and text, and no Python objects, so that nothing is run when they are read. The same arrays always
give the same bytes. They are not compressed, although noise on a grid could be to a half or more, so that no file
unpacks to more than it has bytes.

Both files are written into a hidden folder beside the release, which then gets the release's name at once. A process
that is killed leaves nothing under that name, and perhaps the hidden folder: the next attempt writes into it.
"""

import contextlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.errors import DpmfError
from dpmf_cli.files import make_folder, read_file, remove, rename, sha256, sweep, write_whole
from dpmf_cli.releasing.statement import FORM, Statement

ARRAYS, STATEMENT, UNFINISHED = "model.npz", "model.json", ".unfinished"
AGAIN = "release the model again, or copy its folder again without changes"


def refuse_a_release(folder: Path) -> None:
    """Raises DpmfError if the folder holds a release already, or anything else."""
    with _written(folder):
        if folder.exists() and any(folder.iterdir()):
            holds = "holds a release" if (folder / STATEMENT).exists() else "is not empty"
            raise DpmfError(f"{folder}: {holds}; name another folder")


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Returns the bytes of an npz file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in sorted(arrays.items()):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            # A ZipInfo made here has the date 1980, not the time of writing.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return stream.getvalue()


def unfinished(folder: Path) -> Statement | None:
    """Returns the statement that a killed process left beside the folder; None without a sound one."""
    path = _beside(folder) / STATEMENT
    try:
        return _statement(path, read_file(path))
    except (OSError, DpmfError):
        return None


def write(folder: Path, statement: Statement, arrays: bytes) -> None:
    """Writes both files beside the folder, over those that a killed process left. `publish` is the next step.

    Raises DpmfError if they cannot be written.
    """
    beside = _beside(folder)
    begun = os.path.exists(beside)
    with _written(folder):
        try:
            make_folder(beside)
            sweep(beside)
            write_whole(beside / ARRAYS, arrays)
            write_whole(beside / STATEMENT, statement.text(indent=2))
        except OSError:
            if not begun:
                remove(beside)
            raise


def publish(folder: Path) -> None:
    """Gives the written files the name of the release. Raises DpmfError if that fails."""
    with _written(folder):
        rename(_beside(folder), Path(os.path.abspath(folder)))


def _beside(folder: Path) -> Path:
    place = Path(os.path.abspath(folder))
    return place.with_name(f".{place.name}{UNFINISHED}")


@contextlib.contextmanager
def _written(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DpmfError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}; name another folder"
        ) from None


def releases_in(place: Path) -> list[Path]:
    """Returns the place if it is a release, even a damaged one, and else the releases in it."""
    if any(os.path.exists(place / name) for name in (STATEMENT, ARRAYS)):
        return [place]
    found = place.glob("*/model.*") if os.path.isdir(place) else ()
    return sorted({path.parent for path in found if path.name in (STATEMENT, ARRAYS)})


def read(path: Path) -> tuple[Statement, Arrays]:
    """Reads the release in a folder; `path` may be one of its files. Raises DpmfError if there is none, or a changed
    one."""
    folder = path.parent if path.name in (ARRAYS, STATEMENT) and not path.is_dir() else path
    if folder.name.endswith(UNFINISHED):
        raise DpmfError(f"{folder}: is a release that was never finished; give its command again")
    try:
        text, data = (read_file(folder / name) for name in (STATEMENT, ARRAYS))
    except OSError as error:
        raise DpmfError(
            f"{error.filename or folder}: cannot be read: {error.strerror or error}; name a folder that "
            "`dpmf release` has written"
        ) from None
    statement = _statement(folder / STATEMENT, text)
    if sha256(data) != statement.sha256:
        raise DpmfError(
            f"{folder / ARRAYS}: is not the file that {STATEMENT} describes, by its SHA-256; {AGAIN}"
        )
    try:
        return statement, _unpacked(data)
    except (ValueError, OSError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile) as error:
        raise DpmfError(f"{folder / ARRAYS}: {error}; {AGAIN}") from None


def _unpacked(data: bytes) -> Arrays:
    """Returns the arrays. Raises ValueError for compressed ones, and for more of them than the file has bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED for each in members):
            raise ValueError("an array is compressed")
        if sum(each.file_size for each in members) > len(data):
            raise ValueError("its arrays are larger than the file")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}


def _statement(path: Path, text: bytes) -> Statement:
    try:
        found = json.loads(text)
        form = found.get("form") if isinstance(found, dict) else None
        if form != FORM:
            raise DpmfError(
                f"{path}: has form {form}, but this dpmf reads form {FORM}; use the dpmf that wrote it"
            )
        statement = Statement.model_validate(found)
        if statement.text(indent=2) != text:
            raise DpmfError(f"{path}: was changed after the release, by its checksum; {AGAIN}")
        return statement
    except (ValueError, RecursionError) as error:
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ""
        raise DpmfError(f"{path}: is not the statement of a release {where or ''}; {AGAIN}") from None

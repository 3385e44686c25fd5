"""The two files of a release: `model.npz` with arrays, and `model.json` with the statement and the arrays' SHA-256.

Arrays hold numbers and text, and no Python objects, so that nothing is run when they are read. The same arrays always
give the same bytes.
"""

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.errors import DpmfError
from dpmf_cli.files import make_folder, read_file, write_whole
from dpmf_cli.releasing.statement import FORM, Statement

ARRAYS, STATEMENT = "model.npz", "model.json"
AGAIN = "release the model again, or copy its folder again without changes"


def refuse_a_release(folder: Path) -> None:
    """Raises DpmfError if the folder holds a release already."""
    if (folder / STATEMENT).exists() or (folder / ARRAYS).exists():
        raise DpmfError(f"{folder}: holds a release; name another folder")


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Returns the bytes of an npz file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in sorted(arrays.items()):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            # A ZipInfo made here has the date 1980, not the time of writing.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make(folder: Path) -> None:
    """Makes the folder of a release. Raises DpmfError if it cannot be made."""
    with _written(folder):
        make_folder(folder)


def write(folder: Path, statement: Statement, arrays: bytes) -> None:
    """Writes both files. Raises DpmfError if they cannot be written."""
    text = json.dumps(statement.model_dump(mode="json"), indent=2, ensure_ascii=False, allow_nan=False)
    with _written(folder):
        write_whole(folder / ARRAYS, arrays)
        write_whole(folder / STATEMENT, f"{text}\n".encode())


@contextlib.contextmanager
def _written(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DpmfError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}; name another folder"
        ) from None


def read(path: Path) -> tuple[Statement, Arrays]:
    """Reads the release in a folder; `path` may be one of its files. Raises DpmfError if there is none, or a changed
    one."""
    folder = path if path.is_dir() else path.parent
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
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return statement, {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise DpmfError(f"{folder / ARRAYS}: {error}; {AGAIN}") from None


def _statement(path: Path, text: bytes) -> Statement:
    try:
        found = json.loads(text)
        form = found.get("form") if isinstance(found, dict) else None
        if form != FORM:
            raise DpmfError(
                f"{path}: has form {form}, but this dpmf reads form {FORM}; use the dpmf that wrote it"
            )
        return Statement.model_validate(found)
    except (ValueError, RecursionError) as error:
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ""
        raise DpmfError(f"{path}: is not the statement of a release {where or ''}; {AGAIN}") from None

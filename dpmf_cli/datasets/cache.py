"""Canonical ratings on disk, in NumPy's own format, opened as memory maps: no process parses twice.

    ratings/<checksum>/   users, items, values, column-*; meta.json   named by their content
    sources/<key>         the ids, and the checksum of the ratings    named by their source
    digests/              remembered digests of source files

A folder of ratings or a file is either complete or absent: it is written beside its place under another name, flushed
to the disk and renamed. If two processes write the same folder at once, both succeed: the second finds the first's
folder and drops its own. The `meta.json` of ratings has each file's size, so that a cut-off file is noticed; other
damage is noticed by their checksum. A source begins with the SHA-256 of its key and of all that follows, so that no
item gets another's id. Nothing is read, and nothing kept, where other users may write.
"""

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from stat import S_IFREG
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core import files
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.datasets.canonical import Canonical, arrays, checksum

# Raise it when a change of a parser or of the canonical form changes the ratings that come out.
PARSER_VERSION = 1
_ATTEMPTS = 20
_PAUSE = 0.01
"""Seconds between two attempts: other processes may be replacing the same folder."""
_DAMAGED = (DpmfError, OSError, ValueError, LookupError, TypeError, AttributeError)
_FIX = "free some space there, or name another folder in $DPMF_CACHE"
_UNFIT = "its content does not fit its checksum"


def write_text(path: Path, text: str) -> None:
    """Writes a small file atomically. Raises `DpmfError` if the disk is full or the folder read-only."""
    with files.writing(path.parent, _FIX):
        files.write_whole(path, text.encode(), 0o644)


def publish(folder: Path, write: Callable[[Path], object]) -> None:
    """Makes a folder of ratings with the files that `write` puts into it, unless a whole one is there.

    `write` gets an empty folder to fill with `new_file`. Raises `DpmfError` if the folder cannot be written.
    """
    place = folder.parent
    with files.writing(place, _FIX):
        files.make_folder(place, 0o755)
        files.sweep(place)
        with files.temporary_folder(place) as fresh:
            write(fresh)
            files.flush_folder(fresh)
            for _ in range(_ATTEMPTS):
                if _is_whole(folder):
                    break
                _replace(folder, fresh)
                time.sleep(_PAUSE)
            else:
                raise OSError("it changes all the time")


def _replace(folder: Path, fresh: Path) -> None:
    """Tries once to give `fresh` the name of `folder`. Another process may be faster: then the caller tries again."""
    broken = files.unused_name(folder.parent)
    with contextlib.suppress(FileNotFoundError):
        files.rename(folder, broken)
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        try:
            files.rename(fresh, folder)
        except OSError:
            # The error of renaming onto a filled folder is "not empty" on some systems, "exists" on others.
            if not folder.exists():
                raise
    files.remove(broken)


def source_key(description: Mapping[str, Any]) -> str:
    """Returns the name of a source: a digest of everything that decides what is parsed from it."""
    return files.sha256(json.dumps({"parser": PARSER_VERSION, **description}, sort_keys=True).encode())


def find(key: str, cache: Path) -> Canonical | None:
    """Opens what was kept from a source; None if nothing is there, or something broken.

    Raises DpmfError if other users may write to the cache.
    """
    refuse_shared(cache)
    try:
        head, user_ids, item_ids = _source(cache / "sources" / key)
        ratings = open_ratings(head["checksum"], cache)
        return Canonical(ratings, user_ids, item_ids, head["merged"], head["checksum"])
    except _DAMAGED:
        return None


def keep(key: str, parsed: Canonical, cache: Path) -> Canonical:
    """Writes ratings and ids, and opens them again, the ratings as memory maps."""
    name, source = checksum(parsed.ratings), cache / "sources" / key
    ids = io.BytesIO()
    for each in (parsed.user_ids, parsed.item_ids):
        np.save(ids, each, allow_pickle=False)
    head = json.dumps({"checksum": name, "merged": parsed.merged}).encode()
    data = head + b"\n" + ids.getvalue()
    if source.is_dir():  # an older version kept a folder of files
        files.remove(source)
    elif source.exists() and (wrong := broken(source)):
        _say_replaced(source, wrong)

    def fill(fresh: Path) -> None:
        for name, array in arrays(parsed.ratings).items():
            with files.new_file(fresh / f"{name}.npy") as file:
                np.save(file, array, allow_pickle=False)
        scale = parsed.ratings.scale
        meta = {
            "n_users": parsed.ratings.n_users,
            "n_items": parsed.ratings.n_items,
            "scale": [scale.minimum, scale.maximum, scale.step],
            "columns": sorted(parsed.ratings.columns),
            "files": {path.name: path.stat().st_size for path in fresh.iterdir()},
        }
        with files.new_file(fresh / "meta.json") as file:
            file.write(json.dumps(meta).encode())

    for _ in range(2):
        publish(cache / "ratings" / name, fill)
        with files.writing(source.parent, _FIX):
            if source.parent.exists():
                files.sweep(source.parent)
            files.write_whole(source, _seal(key, data).encode() + b"\n" + data, 0o644)
        found = find(key, cache)
        if found is not None:
            return found
        # Older files were there and were not replaced, since they have the right size. But they cannot be read.
        discard(name, cache)
    raise DpmfError(f"{cache}: files written there cannot be read back; name another folder in $DPMF_CACHE")


def opened(key: str, parse: Callable[[], Canonical], cache: Path, *, verify: bool) -> Canonical:
    """Returns what was kept from a source; parses it if that is not there, or broken.

    verify   whether the ratings must still have their checksum. Checking 10⁸ ratings takes about five seconds
    """
    found = find(key, cache) or keep(key, parse(), cache)
    if verify and checksum(found.ratings) != found.checksum:
        _say_replaced(discard(found.checksum, cache), _UNFIT)
        return keep(key, parse(), cache)
    return found


def _say_replaced(place: Path, why: str) -> None:
    print(f"{place}: damaged ({why}); it is replaced", file=sys.stderr)


def refuse_shared(cache: Path) -> None:
    """Raises DpmfError if another user may write to the cache: ratings could be planted there."""
    for place in (cache, *(cache / part for part in ("ratings", "sources", "digests"))):
        if place.is_dir() and not files.is_private(place.resolve()):
            fix = "run `chmod -R go-w` on it if only you have written there, else name another folder in $DPMF_CACHE"
            raise DpmfError(f"{place}: parsed ratings are not kept there: {files.NOT_PRIVATE}; {fix}")


def open_ratings(name: str, cache: Path) -> Ratings:
    """Opens the ratings of a checksum as memory maps.

    Raises `DpmfError` if they are missing or cut off, or if other users may write to the cache.
    """
    refuse_shared(cache)
    return _open(cache / "ratings" / name)


def _open(folder: Path) -> Ratings:
    if not _is_whole(folder):
        raise DpmfError(
            f"{folder}: not there, or cut off; run the command again to rebuild it from the source"
        )
    mapped = partial(np.load, mmap_mode="r", allow_pickle=False)
    try:
        meta = json.loads(files.read_file(folder / "meta.json"))
        return Ratings(
            mapped(folder / "users.npy"),
            mapped(folder / "items.npy"),
            mapped(folder / "values.npy"),
            int(meta["n_users"]),
            int(meta["n_items"]),
            Scale(*meta["scale"]),
            {column: mapped(folder / f"column-{column}.npy") for column in meta["columns"]},
        )
    except Exception as error:  # a header is Python source: for a damaged one, its parser may raise anything
        raise DpmfError(f"{folder}: cannot be read ({error}); delete it and run the command again") from error


def broken(place: Path) -> str | None:
    """Says in words what is wrong with a part of `ratings` or `sources`; None if it is sound. Changes nothing."""
    try:
        if place.parent.name == "ratings":
            return None if checksum(_open(place)) == place.name else _UNFIT
        _source(place)
    except _DAMAGED as error:
        return str(error) if _UNFIT in str(error) else f"cannot be read ({error})"
    return None


def checksum_of(source: Path) -> str | None:
    """Returns the checksum of the ratings that a file of `sources` belongs to; None if it is damaged."""
    try:
        return str(_source(source)[0]["checksum"])
    except _DAMAGED:
        return None


def discard(name: str, cache: Path) -> Path:
    """Removes the ratings of a checksum, and returns the folder that they were in."""
    folder = cache / "ratings" / name
    files.remove(folder)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether a folder of ratings has all its files, of the right size, and only this user may write to them."""
    try:
        sizes = json.loads(files.read_file(folder / "meta.json"))["files"]
        paths = [folder / "meta.json", *(folder / name for name in sizes)]
        return (
            files.is_private(folder)
            and all(files.is_private(path, S_IFREG) for path in paths)
            and all((folder / name).stat().st_size == size for name, size in sizes.items())
        )
    except _DAMAGED:
        return False


def _source(path: Path) -> tuple[dict[str, Any], NDArray[Any], NDArray[Any]]:
    """Reads the head of a source, and the ids of users and items. Raises an error of `_DAMAGED` if it is unsound."""
    seal, _, data = files.read_file(path).partition(b"\n")
    if not files.is_private(path, S_IFREG) or seal.decode() != _seal(path.name, data):
        raise ValueError(f"incomplete, or {_UNFIT}")
    stream = io.BytesIO(data)
    head = json.loads(stream.readline())
    user_ids, item_ids = (np.load(stream, allow_pickle=False) for _ in range(2))
    return head, user_ids, item_ids


def _seal(key: str, data: bytes) -> str:
    return files.sha256(key.encode() + b"\n" + data)

"""Canonical ratings on disk, in NumPy's own format, opened as memory maps: no process parses twice.

    ratings/<checksum>/   users, items, values, column-*; meta.json         named by their content
    sources/<key>/        user_ids, item_ids; meta.json with the checksum   named by their source
    digests/              remembered digests of source files

A folder of ratings or of a source is either complete or absent: it is written beside its place under another name,
flushed to the disk and renamed. If two processes write the same folder at once, both succeed: the second finds the
first's folder and drops its own. The `meta.json` of ratings has each file's size, so that a cut-off file is noticed;
other damage is noticed by their checksum. The `meta.json` of a source has the SHA-256 of each file, of itself and of
the source's key, so that no item gets another's id. Nothing is read, and nothing kept, where other users may write.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_IFREG
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import (
    NOT_PRIVATE,
    flush_folder,
    is_private,
    make_folder,
    new_file,
    read_file,
    remove,
    rename,
    sha256,
    sweep,
    temporary_folder,
    unused_name,
    write_whole,
)
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.datasets.canonical import Canonical, Ids, arrays, checksum

_ATTEMPTS = 20
_PAUSE = 0.01
"""Seconds between two attempts: other processes may be replacing the same folder."""


def write_text(path: Path, text: str) -> None:
    """Writes a small file atomically. Raises `DpmfError` if the disk is full or the folder read-only."""
    with _errors_named(path.parent):
        write_whole(path, text.encode(), 0o644)


def publish(folder: Path, write: Callable[[Path], None], sound: Callable[[Path], bool]) -> None:
    """Makes `folder` with the files that `write` puts into it. Leaves a sound folder that is there; replaces others.

    `write` gets an empty folder to fill with `new_file`; `sound` tells whether a folder is complete.
    Raises `DpmfError` if the folder cannot be written.
    """
    place = folder.parent
    with _errors_named(place):
        make_folder(place, 0o755)
        sweep(place)
        with temporary_folder(place) as fresh:
            write(fresh)
            flush_folder(fresh)
            for _ in range(_ATTEMPTS):
                if sound(folder):
                    break
                _replace(folder, fresh)
                time.sleep(_PAUSE)
            else:
                raise OSError("it changes all the time")


def _replace(folder: Path, fresh: Path) -> None:
    """Tries once to move a broken `folder` out of the way and to give `fresh` its name.

    Another process may be faster at either step; the caller then tries again.
    """
    broken = unused_name(folder.parent)
    with contextlib.suppress(FileNotFoundError):
        rename(folder, broken)
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        try:
            rename(fresh, folder)
        except OSError:
            # The error of renaming onto a filled folder is "not empty" on some systems, "exists" on others.
            if not folder.exists():
                raise
    remove(broken)


@contextlib.contextmanager
def _errors_named(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DpmfError(
            f"{place}: cannot be written ({error.strerror or error}); free some space there, or name another "
            "folder in $DPMF_CACHE"
        ) from error


_COLUMN = "column-"
_UNFIT = "its content does not fit its checksum"


@dataclass(frozen=True)
class Cached:
    """The content of a `Canonical` as read-only memory maps, and the checksum of its ratings."""

    checksum: str
    ratings: Ratings
    user_ids: Ids
    item_ids: Ids
    merged: int = 0


def source_key(description: Mapping[str, Any]) -> str:
    """Returns the name of a source: a digest of everything that decides what is parsed from it."""
    return sha256(json.dumps(description, sort_keys=True).encode())


def find(key: str, cache: Path) -> Cached | None:
    """Opens what was kept from a source; None if nothing is there, or something broken.

    Raises DpmfError if other users may write to the cache.
    """
    refuse_shared(cache)
    source = cache / "sources" / key
    meta = _meta(source)
    if meta is None:
        return None
    try:
        return Cached(
            str(meta["checksum"]),
            open_ratings(str(meta["checksum"]), cache),
            _mapped(source / "user_ids.npy"),
            _mapped(source / "item_ids.npy"),
            int(meta.get("merged", 0)),
        )
    except (DpmfError, OSError, ValueError, KeyError, TypeError):
        return None


def keep(key: str, canonical: Canonical, cache: Path) -> Cached:
    """Writes ratings and ids, and opens them again as memory maps."""
    ratings = canonical.ratings
    name = checksum(ratings)
    head = {
        "n_users": ratings.n_users,
        "n_items": ratings.n_items,
        "scale": [ratings.scale.minimum, ratings.scale.maximum, ratings.scale.step],
        "columns": sorted(ratings.columns),
    }
    ids = {"user_ids": canonical.user_ids, "item_ids": canonical.item_ids}
    source = cache / "sources" / key
    if source.exists() and not is_older(source) and (wrong := broken(source)):
        _say_replaced(source, wrong)
    for _ in range(2):
        _write(cache / "ratings" / name, arrays(ratings), head)
        _write(source, ids, {"checksum": name, "merged": canonical.merged})
        found = find(key, cache)
        if found is not None:
            return found
        # Older files were there and were not replaced, since they have the right size. But they cannot be read.
        discard(name, cache)
        remove(source)
    raise DpmfError(f"{cache}: files written there cannot be read back; name another folder in $DPMF_CACHE")


def verified(get: Callable[[], Cached], cache: Path) -> Cached:
    """Returns what `get` finds or makes; calls `get` again if the kept ratings no longer have their checksum.

    Checking 10⁸ ratings takes about five seconds.
    """
    found = get()
    return found if intact(found.checksum, found.ratings, cache) else get()


def intact(name: str, ratings: Ratings, cache: Path) -> bool:
    """Whether `ratings`, kept under the checksum `name`, still have it. If not, discards them and says so."""
    if checksum(ratings) == name:
        return True
    _say_replaced(discard(name, cache), _UNFIT)
    return False


def _say_replaced(folder: Path, why: str) -> None:
    print(f"{folder}: damaged ({why}); it is replaced", file=sys.stderr)


def refuse_shared(cache: Path) -> None:
    """Raises DpmfError if another user may write to the cache: ratings could be planted there."""
    for place in (cache, *(cache / part for part in ("ratings", "sources", "digests"))):
        if place.is_dir() and not is_private(place.resolve()):
            raise DpmfError(
                f"{place}: parsed ratings are not kept there: {NOT_PRIVATE}; run `chmod -R go-w` on it if only you "
                "have written there, else name another folder in $DPMF_CACHE"
            )


def open_ratings(name: str, cache: Path) -> Ratings:
    """Opens the ratings of a checksum as memory maps.

    Raises `DpmfError` if they are missing or cut off, or if other users may write to the cache.
    """
    refuse_shared(cache)
    return _open(cache / "ratings" / name)


def _open(folder: Path) -> Ratings:
    meta = _meta(folder)
    if meta is None:
        raise DpmfError(
            f"{folder}: not there, or cut off; run the command again to rebuild it from the source"
        )
    try:
        return Ratings(
            _mapped(folder / "users.npy"),
            _mapped(folder / "items.npy"),
            _mapped(folder / "values.npy"),
            int(meta["n_users"]),
            int(meta["n_items"]),
            Scale(*meta["scale"]),
            {column: _mapped(folder / f"{_COLUMN}{column}.npy") for column in meta["columns"]},
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DpmfError(f"{folder}: cannot be read ({error}); delete it and run the command again") from error


def broken(folder: Path) -> str | None:
    """Says in words what is wrong with a folder of `ratings` or `sources`; None if it is sound. Changes nothing."""
    try:
        if folder.parent.name == "ratings":
            return None if checksum(_open(folder)) == folder.name else _UNFIT
        if (meta := _meta(folder)) is None:
            return f"incomplete, or {_UNFIT}"
        _mapped(folder / "user_ids.npy"), _mapped(folder / "item_ids.npy"), str(meta["checksum"])
    except (DpmfError, OSError, ValueError, KeyError, TypeError) as error:
        return f"cannot be read ({error})"
    return None


def is_older(source: Path) -> bool:
    """Whether a folder of `sources` was kept by a version of dpmf that wrote no checksums: it is made anew."""
    try:
        meta = json.loads((source / "meta.json").read_text())
        sizes = meta.pop("files").values()
        return meta.keys() <= {"checksum", "merged"} and all(isinstance(size, int) for size in sizes)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def checksum_of(source: Path) -> str | None:
    """Returns the checksum of the ratings that a folder of `sources` belongs to; None if it is damaged."""
    meta = _meta(source)
    return None if meta is None else str(meta.get("checksum"))


def discard(name: str, cache: Path) -> Path:
    """Removes the ratings of a checksum, and returns the folder that they were in."""
    folder = cache / "ratings" / name
    remove(folder)
    return folder


def packed(name: str, cache: Path) -> dict[str, bytes]:
    """Reads the files of the ratings of a checksum, for `unpack` on another machine. Raises like `open_ratings`."""
    open_ratings(name, cache)
    return {path.name: path.read_bytes() for path in sorted((cache / "ratings" / name).iterdir())}


def unpack(name: str, files: Mapping[str, bytes], cache: Path) -> None:
    """Keeps the files that `packed` read, unless the cache has them undamaged.

    Raises DpmfError if they cannot be kept, or arrived damaged.
    """
    refuse_shared(cache)
    folder = cache / "ratings" / name

    def fill(fresh: Path) -> None:
        for file, content in files.items():
            with new_file(fresh / file) as kept:
                kept.write(content)
        if checksum(_open(fresh)) != name:
            raise DpmfError(f"{folder}: the files came damaged over the network; run the command again")

    if not _holds(name, cache):
        publish(folder, fill, lambda place: _meta(place) is not None)


def _holds(name: str, cache: Path) -> bool:
    try:
        return intact(name, open_ratings(name, cache), cache)
    except DpmfError:
        return False


def _write(folder: Path, content: Mapping[str, NDArray[Any]], head: Mapping[str, Any]) -> None:
    def fill(fresh: Path) -> None:
        for name, array in content.items():
            with new_file(fresh / f"{name}.npy") as file:
                np.save(file, array, allow_pickle=False)
        meta = {**head, "files": {path.name: _noted(path, folder) for path in fresh.iterdir()}}
        if folder.parent.name == "sources":
            meta["sha256"] = _seal(folder, meta)
        with new_file(fresh / "meta.json") as file:
            file.write(json.dumps(meta).encode())

    publish(folder, fill, lambda place: _meta(place) is not None)


def _meta(folder: Path) -> dict[str, Any] | None:
    """Reads the `meta.json` of a folder; None if it is broken, if a file is not as noted, or if others may write."""
    try:
        meta: dict[str, Any] = json.loads(read_file(folder / "meta.json"))
        paths = {folder / name: noted for name, noted in meta["files"].items()}
        sound = is_private(folder) and all(
            is_private(path, S_IFREG) for path in (folder / "meta.json", *paths)
        )
        sound = sound and all(_noted(path, folder) == noted for path, noted in paths.items())
        if sound and (folder.parent.name == "ratings" or meta["sha256"] == _seal(folder, meta)):
            return meta
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _noted(path: Path, folder: Path) -> int | str:
    """What the `meta.json` of a folder notes of a file: its size, or its SHA-256 (hex) if nothing else checks it."""
    if folder.parent.name == "ratings":
        return path.stat().st_size
    return sha256(read_file(path))


def _seal(folder: Path, meta: Mapping[str, Any]) -> str:
    """The SHA-256 (hex) of the name of a folder and of its `meta.json`, without the seal itself."""
    rest = {key: value for key, value in meta.items() if key != "sha256"}
    return sha256(json.dumps([folder.name, rest], sort_keys=True).encode())


def _mapped(path: Path) -> NDArray[Any]:
    """Opens the array of a file as a memory map. Raises OSError or ValueError."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        raise
    except (
        Exception
    ) as error:  # the header is Python source: for a damaged one, its parser may raise anything
        raise ValueError(f"{path}: broken header ({error})") from error
    return array

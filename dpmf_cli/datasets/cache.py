"""Canonical ratings on disk, opened as memory maps: no process parses twice.

    ratings/<checksum>.dpmf   a line of JSON, then the arrays   named by their content
    sources/<key>             the ids, and the checksum of the ratings    named by their source
    digests/                  remembered digests of source files

A file is either complete or absent: it is written beside its place under another name, flushed to the disk and
renamed. The first line of ratings has the length of each array, so that a cut-off file is noticed; other damage is
noticed by their checksum. A source begins with the SHA-256 of its key and of all that follows, so that no item gets
another's id. Nothing is read, and nothing kept, where other users may write.
"""

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
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
_LINE = 64
"""Bytes. Each array begins at a multiple of it, so that no number lies across two cache lines."""
_LONGEST_HEAD = 1 << 16
_DAMAGED = (DpmfError, OSError, ValueError, LookupError, TypeError, AttributeError)
_FIX = "free some space there, or name another folder in $DPMF_CACHE"
_UNFIT = "its content does not fit its checksum"


def _place(name: str, cache: Path) -> Path:
    return cache / "ratings" / f"{name}.dpmf"


def write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file atomically. Raises `DpmfError` if the disk is full or the folder read-only."""
    with files.writing(path.parent, _FIX):
        if path.parent.exists():
            files.sweep(path.parent)
        files.write_whole(path, parts, 0o644)


def source_key(description: Mapping[str, Any]) -> str:
    """The name of a source: a digest of everything that decides what is parsed from it."""
    return files.sha256(json.dumps({"parser": PARSER_VERSION, **description}, sort_keys=True).encode())


def find(key: str, cache: Path) -> Canonical | None:
    """What was kept from a source; None if nothing is there, or something broken. Raises DpmfError if other users may
    write to the cache."""
    refuse_shared(cache)
    try:
        head, user_ids, item_ids = _source(cache / "sources" / key)
        ratings = open_ratings(head["checksum"], cache)
        return Canonical(
            ratings, user_ids, item_ids, head["merged"], head["checksum"], head.get("left_out", {})
        )
    except _DAMAGED:
        return None


def keep(key: str, parsed: Canonical, cache: Path) -> Canonical:
    """Writes the ratings and the ids, and returns them as memory maps."""
    name, source = checksum(parsed.ratings), cache / "sources" / key
    ids = io.BytesIO()
    for each in (parsed.user_ids, parsed.item_ids):
        np.save(ids, each, allow_pickle=False)
    head = json.dumps({"checksum": name, "merged": parsed.merged, "left_out": parsed.left_out}).encode()
    data = head + b"\n" + ids.getvalue()
    for older in (source, cache / "ratings" / name):  # an older version kept folders of files
        if older.is_dir():
            files.remove(older)
    if source.exists() and (wrong := broken(source)):
        _say_replaced(source, wrong)
    try:
        _open(_place(name, cache))  # of another source, with the same ratings
    except DpmfError:
        write(_place(name, cache), _parts(parsed.ratings))
    write(source, [_seal(key, data).encode(), b"\n", data])
    if (found := find(key, cache)) is None:
        raise DpmfError(
            f"{cache}: files written there cannot be read back; name another folder in $DPMF_CACHE"
        )
    return found


def opened(key: str, parse: Callable[[], Canonical], cache: Path, *, verify: bool) -> Canonical:
    """What was kept from a source; parses it if that is not there, or broken.

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
    """The ratings of a checksum as memory maps. Raises `DpmfError` if they are missing or cut off, or if other users
    may write to the cache."""
    refuse_shared(cache)
    return _open(_place(name, cache))


def _open(path: Path) -> Ratings:
    try:
        if not files.is_private(path, S_IFREG):
            raise ValueError("others may write to it")
        return _ratings_in(np.memmap(path, np.uint8, "r"))
    except Exception as error:  # a damaged first line may raise anything
        fix = "run the command again to rebuild it from the source"
        raise DpmfError(f"{path}: not there, or damaged ({error}); {fix}") from error


def _parts(ratings: Ratings) -> Iterator[bytes | memoryview]:
    every, scale = arrays(ratings), ratings.scale
    head = {
        "n_users": ratings.n_users,
        "n_items": ratings.n_items,
        "scale": [scale.minimum, scale.maximum, scale.step],
        "arrays": [[name, array.dtype.str, len(array)] for name, array in every.items()],
    }
    line = json.dumps(head).encode() + b"\n"
    yield line + bytes(-len(line) % _LINE)
    for array in every.values():
        yield np.ascontiguousarray(array).data
        yield bytes(-array.nbytes % _LINE)


def _ratings_in(whole: NDArray[np.uint8]) -> Ratings:
    """The ratings in the bytes of a file of them. Raises an error of any kind for damaged ones."""
    line, end, _ = whole[:_LONGEST_HEAD].tobytes().partition(b"\n")
    head, at, found = json.loads(line), len(line + end), dict[str, NDArray[Any]]()
    for name, kind, count in (*head["arrays"], ("the end", "u1", 0)):
        gap = whole[at : at + -at % _LINE]
        at += -at % _LINE
        found[name] = whole[at : at + np.dtype(kind).itemsize * count].view(kind)
        at += found[name].nbytes
        if gap.any() or len(found[name]) != count:
            raise ValueError("cut off, or changed")
    if at != len(whole):
        raise ValueError("of another length")
    of_each, of_items = (
        {name.removeprefix(kind): array for name, array in found.items() if name.startswith(kind)}
        for kind in ("column-", "item-")
    )
    rated = found["users"], found["items"], found["values"]
    return Ratings(*rated, head["n_users"], head["n_items"], Scale(*head["scale"]), of_each, of_items)


def broken(place: Path) -> str | None:
    """What is wrong, in words, with a part of `ratings` or `sources`; None if it is sound. Changes nothing."""
    try:
        if place.parent.name == "ratings":
            return None if checksum(_open(place)) == place.stem else _UNFIT
        _source(place)
    except _DAMAGED as error:
        return str(error) if _UNFIT in str(error) else f"cannot be read ({error})"
    return None


def checksum_of(place: Path) -> str | None:
    """The checksum of the ratings that a part of `ratings` or `sources` belongs to; None if it is damaged."""
    try:
        return place.stem if place.parent.name == "ratings" else str(_source(place)[0]["checksum"])
    except _DAMAGED:
        return None


def discard(name: str, cache: Path) -> Path:
    """Removes the file of the ratings of a checksum, and returns its place."""
    files.remove(_place(name, cache))
    return _place(name, cache)


def _source(path: Path) -> tuple[dict[str, Any], NDArray[Any], NDArray[Any]]:
    """The head of a source, and the ids of users and items. Raises an error of `_DAMAGED` if it is unsound."""
    seal, _, data = files.read_file(path).partition(b"\n")
    if not files.is_private(path, S_IFREG) or seal.decode() != _seal(path.name, data):
        raise ValueError(f"incomplete, or {_UNFIT}")
    stream = io.BytesIO(data)
    head = json.loads(stream.readline())
    user_ids, item_ids = (np.load(stream, allow_pickle=False) for _ in range(2))
    return head, user_ids, item_ids


def _seal(key: str, data: bytes) -> str:
    return files.sha256(key.encode() + b"\n" + data)

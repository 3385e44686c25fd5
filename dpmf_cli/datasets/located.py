"""Finds the files of data sets, says what is missing, and compares them with the publisher's digests.

Digests are remembered, so that a file of several GB is not read again at every start.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Self

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import cache_folder, write_whole
from dpmf_cli.datasets import archives, catalog
from dpmf_cli.datasets.archives import Source, Wanted
from dpmf_cli.datasets.catalog import CatalogEntry, Content, SourcePart
from dpmf_cli.datasets.spec import AnySpec, CatalogSpec, CsvSpec, SyntheticSpec


def data_folder() -> Path:
    """The folder of data files: $DPMF_DATA, else `datasets` in the current folder."""
    return Path(os.environ.get("DPMF_DATA") or "datasets")


@dataclass(frozen=True)
class Folders:
    """The folders that a command works with.

    data      files of the catalog's data sets
    cache     parsed ratings, and measurements of this machine
    base      the config's own folder, where its relative paths start
    results   task results, and a folder of tables and figures for each experiment
    """

    data: Path
    cache: Path
    base: Path = Path()
    results: Path = Path("results")

    @classmethod
    def named(cls, data: Path | None = None, *, base: Path = Path(), results: Path = Path("results")) -> Self:
        """The folders that a command line names, and all others from the environment."""
        return cls(data or data_folder(), cache_folder(), base, results)

    def beside_config(self, path: str) -> Path:
        """A path of a config, resolved: `~` stands for home, and a relative path starts at `base`."""
        return self.base / Path(path).expanduser()


# After its last change a file could change again within this time and keep the same time stamp.
_SETTLED_NS = 2 * 10**9


def digest(stream: BufferedReader, kind: str = "sha256") -> str:
    """The digest of the rest of a stream as `kind:hex`."""
    state = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{state.hexdigest()}"


def file_digest(path: Path, cache: Path | None, kind: str = "sha256") -> str:
    """`kind:hex` of a file's bytes, remembered in `cache`, if there is one, while the file keeps its size, times and
    inode."""

    def compute() -> str:
        with path.open("rb") as file:
            return digest(file, kind)

    return _remembered(f"{kind}:{path.resolve()}", [path], cache, compute)


def folder_digest(folder: Path, paths: Sequence[Path], cache: Path) -> str:
    """One `sha256:hex` of the names and bytes of some files of a folder, remembered as in `file_digest`."""

    def compute() -> str:
        state = hashlib.sha256()
        for path in sorted(paths, key=lambda path: path.name):
            with path.open("rb") as file:
                state.update(f"{path.name} {digest(file)}\n".encode())
        return f"sha256:{state.hexdigest()}"

    return _remembered(f"folder:{folder.resolve()}", paths, cache, compute)


def _remembered(key: str, paths: Sequence[Path], cache: Path | None, compute: Callable[[], str]) -> str:
    """The value of `compute`, remembered while the files keep their size, times and inode."""
    try:
        if cache is None:
            return compute()
        note = cache / "digests" / f"{hashlib.sha256(os.fsencode(key)).hexdigest()[:32]}.json"
        state, newest = hashlib.sha256(), 0
        for path in paths:
            status = path.stat()
            newest = max(newest, status.st_mtime_ns)
            # st_ctime_ns is the time of the last change of any kind. Unlike st_mtime_ns, it cannot be set back.
            times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
            state.update(f"{path.name} {status.st_size} {times} {status.st_ino}\n".encode())
        about = {"key": key, "stamp": state.hexdigest()}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # no sound note
            held = json.loads(note.read_text())
            if about == {name: held[name] for name in about}:
                return str(held["digest"])
        value = compute()
    except OSError as error:
        raise DpmfError(
            f"{error.filename or paths[0]}: cannot be read ({error.strerror or error})"
        ) from error
    if abs(time.time_ns() - newest) > _SETTLED_NS:
        with contextlib.suppress(OSError):  # the cache may be read-only: then the next call computes it again
            write_whole(note, json.dumps({**about, "digest": value}).encode(), 0o644)
    return value


@dataclass(frozen=True)
class Located:
    """The rating files of an entry: their source, and each part with its place and content."""

    entry: CatalogEntry
    source: Source
    parts: tuple[tuple[SourcePart, Path, Content], ...]


def how_to_get(entry: CatalogEntry) -> str:
    from_file = f"`dpmf datasets fetch {entry.key} --from-file PATH`"
    if any(part.mirrors for part in entry.parts):
        return f"get it with `dpmf datasets fetch {entry.key}`, or, if you have the file, {from_file}"
    return f"there is no download of it; if you have the file, {from_file}"


def find_part(part: SourcePart, data: Path) -> Path | None:
    """The path of a part in the data folder, by the first of its accepted names that is there; else None."""
    return next((data / name for name in part.names if (data / name).exists()), None)


def note_of_origin(place: Path) -> Path:
    """The path of the note that names a file's mirror: beside the file, with the ending `.source`."""
    return place.with_name(f"{place.name}.source")


def origin(place: Path) -> str | None:
    """The mirror that gave a file, from the note beside it; None without a note."""
    try:
        return str(json.loads(note_of_origin(place).read_text("utf-8"))["mirror"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def present(entry: CatalogEntry, data: Path) -> list[Path] | None:
    """The place of every part if all are in the data folder; None if one is missing."""
    places = [place for part in entry.parts if (place := find_part(part, data))]
    return places if len(places) == len(entry.parts) else None


def locate(
    entry: CatalogEntry, data: Path, path: Path | None = None, *, only: SourcePart | None = None
) -> Located:
    """The entry's rating files in the data folder, or at `path`: a file, an archive, or a folder of either.

    only   the only part to look for

    Raises `DpmfError` for a missing file, with the way to get it.
    """
    found = []
    for part in (only,) if only else entry.parts:
        place = find_part(part, data)
        if path is not None:
            if not path.exists():
                raise DpmfError(f"{path}: no such file or folder; {how_to_get(entry)}")
            place = (find_part(part, path) if path.is_dir() else None) or path
        if place is None:
            raise DpmfError(
                f"{data}: {entry.title} is not there (no {', '.join(part.names[:4])}…); {how_to_get(entry)}"
            )
        content = content_at(entry, part, place)
        if content is None:
            patterns = " or ".join(content.pattern for content in part.contents)
            raise DpmfError(f"{place}: holds no {patterns}, so it is not {entry.title}; {how_to_get(entry)}")
        found.append((part, place, content))
    wanted = Wanted(
        tuple(dict.fromkeys(content.pattern for _, _, content in found)),
        tuple(dict.fromkeys(name for part, _, _ in found for name in part.nested)),
        entry.byte_limit,
    )
    paths = tuple(dict.fromkeys(place for _, place, _ in found))
    return Located(entry, Source(paths, wanted, how_to_get(entry)), tuple(found))


def locate_spec(spec: CatalogSpec, folders: Folders) -> Located:
    """The rating files of a spec: at its path, or in the data folder. Raises like `locate`."""
    path = None if spec.path is None else folders.beside_config(spec.path)
    return locate(catalog.entry(spec.name), folders.data, path)


def content_at(entry: CatalogEntry, part: SourcePart, place: Path) -> Content | None:
    """The form of a part that a place holds, by the first member that matches one; None if it holds none."""
    wanted = Wanted(tuple(content.pattern for content in part.contents), part.nested, entry.byte_limit)
    member = next(archives.members(place, wanted), None)
    if member is None:
        return None
    return next(content for content in part.contents if Wanted((content.pattern,)).match(member.name))


def is_publishers(part: SourcePart, place: Path, cache: Path | None) -> bool:
    """Whether a place is the publisher's own archive, byte for byte."""
    known = {digest.partition(":")[0] for digest in part.digests}
    return place.is_file() and any(file_digest(place, cache, kind) in part.digests for kind in known)


def content_digest(located: Located, cache: Path) -> str:
    """A digest of all source files; remembered for files that have not changed."""

    def of(path: Path) -> str:
        wanted = archives.files(path, located.source.wanted) if path.is_dir() else None
        return file_digest(path, cache) if wanted is None else folder_digest(path, wanted, cache)

    return " ".join(map(of, located.source.paths))


def fault(located: Located, cache: Path | None) -> tuple[str | None, bool]:
    """Which archive or rating file is not the publisher's (None if all are, as far as checksums tell), and whether
    checksums can verify all files. If no digest is published, counts must."""
    parts = [each for each in located.parts if not is_publishers(each[0], each[1], cache)]
    by_digest = all(content.digests for _, _, content in parts)
    for part, place, content in parts:
        wanted = Wanted((content.pattern,), part.nested, located.entry.byte_limit)
        kind = min(content.digests, default="").partition(":")[0]
        for member in archives.members(place, wanted) if kind else ():
            found = digest(member.stream, kind)
            if found not in content.digests:
                known = " or ".join(sorted(content.digests))
                return f"{member.label}: its checksum is {found}, but the publisher's is {known}", by_digest
    return None, by_digest


def what_is_missing(spec: AnySpec, folders: Folders) -> str | None:
    """In words, what a data set lacks and how to get it; None if it is present."""
    if isinstance(spec, SyntheticSpec):
        return None
    title = spec.name if isinstance(spec, CsvSpec) else catalog.entry(spec.name).title
    if spec.path is not None:
        path = folders.beside_config(spec.path)
        there = path.is_file() if isinstance(spec, CsvSpec) else path.exists()
        return None if there else f"{title}: {path} is not there"
    entry = catalog.entry(spec.name)
    return None if present(entry, folders.data) else f"{title} is not present; {how_to_get(entry)}"


def present_keys(data: Path) -> set[str]:
    """The keys of the catalog's data sets whose files are in the data folder."""
    return {key for key, entry in catalog.ENTRIES.items() if present(entry, data) is not None}

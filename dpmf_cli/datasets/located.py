"""Finds the files of a catalog entry, and says whether they are the publisher's."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpmf_cli.datasets import archives, checksums
from dpmf_cli.datasets.archives import Wanted
from dpmf_cli.datasets.entry import CatalogEntry, Content, SourcePart
from dpmf_cli.datasets.formats.source import Source
from dpmf_cli.errors import DpmfError


@dataclass(frozen=True)
class Located:
    """The rating files of an entry: their source, their format, and each part with its place and content."""

    entry: CatalogEntry
    source: Source
    format: str
    parts: tuple[tuple[SourcePart, Path, Content], ...]


def how_to_get(entry: CatalogEntry) -> str:
    """Names the commands that bring an entry's files."""
    from_file = f"`dpmf datasets fetch {entry.key} --from-file PATH`"
    if any(part.mirrors for part in entry.parts):
        return f"get it with `dpmf datasets fetch {entry.key}`, or, if you have the file, {from_file}"
    return f"there is no download of it; if you have the file, {from_file}"


def find_part(part: SourcePart, data: Path) -> Path | None:
    """Returns the path of a part in the data folder, by the first of its accepted names that is there; else None."""
    return next((data / name for name in part.names if (data / name).exists()), None)


def note_of_origin(place: Path) -> Path:
    """Returns the path of the note that names a file's mirror: beside the file, with the ending `.source`."""
    return place.with_name(f"{place.name}.source")


def origin(place: Path) -> str | None:
    """Returns the mirror that gave a file, from the note beside it; None without a note."""
    try:
        return str(json.loads(note_of_origin(place).read_text("utf-8"))["mirror"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def present(entry: CatalogEntry, data: Path) -> list[Path] | None:
    """Returns the place of every part if all are in the data folder; None if one is missing."""
    places = [find_part(part, data) for part in entry.parts]
    found = [place for place in places if place is not None]
    return found if len(found) == len(places) else None


def locate(entry: CatalogEntry, data: Path, path: Path | None = None) -> Located:
    """Finds the entry's rating files in the data folder, or at `path`: a file, an archive, or a folder of either.

    Raises `DpmfError` for a missing file, with the way to get it.
    """
    return _located(entry, [(part, _place(entry, part, data, path)) for part in entry.parts])


def locate_part(entry: CatalogEntry, part: SourcePart, place: Path) -> Located:
    """Finds the rating files of only one part."""
    return _located(entry, [(part, place)])


def _located(entry: CatalogEntry, places: Sequence[tuple[SourcePart, Path]]) -> Located:
    parts = tuple((part, place, _known_content(entry, part, place)) for part, place in places)
    wanted = Wanted(
        tuple(dict.fromkeys(content.pattern for _, _, content in parts)),
        tuple(dict.fromkeys(name for part, _ in places for name in part.nested)),
        entry.byte_limit,
    )
    paths = tuple(dict.fromkeys(place for _, place in places))
    return Located(entry, Source(paths, wanted, how_to_get(entry)), parts[0][2].format, parts)


def content_at(entry: CatalogEntry, part: SourcePart, place: Path) -> Content | None:
    """Returns the form of a part that a place holds, by the first member that matches one; None if it holds none."""
    wanted = Wanted(part.patterns, part.nested, entry.byte_limit)
    member = next(archives.members(place, wanted), None)
    if member is None:
        return None
    return next(content for content in part.contents if Wanted((content.pattern,)).match(member.name))


def is_publishers(part: SourcePart, place: Path, cache: Path | None) -> bool:
    """Whether a place is the publisher's own archive, byte for byte."""
    kinds = checksums.kinds(part.digests)
    return place.is_file() and any(
        checksums.file_digest(place, cache, kind) in part.digests for kind in kinds
    )


def content_digest(located: Located, cache: Path) -> str:
    """Returns a digest of all source files; remembered for files that have not changed."""
    found = []
    for path in located.source.paths:
        if path.is_dir():
            paths = archives.files(path, located.source.wanted)
            found.append(checksums.folder_digest(path, paths, cache))
        else:
            found.append(checksums.file_digest(path, cache))
    return " ".join(found)


def fault(located: Located, cache: Path | None) -> str | None:
    """Says which archive or rating file is not the publisher's; None if all are, as far as checksums tell."""
    for part, place, content in located.parts:
        if is_publishers(part, place, cache):
            continue
        if not content.digests:
            continue
        wanted = Wanted((content.pattern,), part.nested, located.entry.byte_limit)
        kind = checksums.kinds(content.digests)[0]
        for member in archives.members(place, wanted):
            found = checksums.digest(member.stream, kind)
            if found not in content.digests:
                known = " or ".join(sorted(content.digests))
                return f"{member.label}: its checksum is {found}, but the publisher's is {known}"
    return None


def known_by_digest(located: Located, cache: Path | None) -> bool:
    """Whether checksums can verify all files. If not (no digest is published), counts must."""
    return all(
        bool(content.digests) or is_publishers(part, place, cache) for part, place, content in located.parts
    )


def _place(entry: CatalogEntry, part: SourcePart, data: Path, path: Path | None) -> Path:
    if path is None:
        place = find_part(part, data)
        if place is None:
            raise DpmfError(
                f"{data}: {entry.title} is not there (no {', '.join(part.names[:4])}…); {how_to_get(entry)}"
            )
        return place
    if not path.exists():
        raise DpmfError(f"{path}: no such file or folder; {how_to_get(entry)}")
    inside = find_part(part, path) if path.is_dir() else None
    return inside or path


def _known_content(entry: CatalogEntry, part: SourcePart, place: Path) -> Content:
    """Returns what `content_at` finds. Raises DpmfError if it finds nothing."""
    found = content_at(entry, part, place)
    if found is None:
        raise DpmfError(
            f"{place}: holds no {' or '.join(part.patterns)}, so it is not {entry.title}; {how_to_get(entry)}"
        )
    return found

"""Brings a data set's files into the data folder, from its mirrors in turn or from a file that the user has.

No file gets its final name before it is verified; this check cannot be switched off.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from dpmf_cli.datasets import loading, located, mirrors
from dpmf_cli.datasets.downloads import MirrorError
from dpmf_cli.datasets.entry import CatalogEntry, SourcePart
from dpmf_cli.datasets.figures import TOLERANCE, figures
from dpmf_cli.errors import DpmfError
from dpmf_cli.files import flush, make_folder, rename, sweep, temporary_folder, write_whole

Confirm = Callable[[str], bool]


def fetch(
    entry: CatalogEntry, data: Path, cache: Path, *, confirm: Confirm, out: TextIO | None = None
) -> list[Path]:
    """Downloads the parts that are not in `data`, or not sound there, and returns the place of each part.

    Prints the licence to `out` (default: stderr) before the first download, and `confirm` asks the user to accept it.
    Raises `DpmfError` if the user does not, and if no mirror gave the right file, with all that was tried.
    """
    out = out or sys.stderr
    places: list[Path] = []
    asked = False
    for part in entry.parts:
        place = located.find_part(part, data)
        if place is not None and _sound(entry, part, place, cache, out):
            print(f"{place}: already there", file=out)
            places.append(place)
            continue
        if not part.mirrors:
            raise DpmfError(f"{entry.title}: {located.how_to_get(entry)}")
        if not asked:
            print(f"{entry.title}\n{entry.licence.summary}\nTerms: {entry.licence.url}", file=out)
            if not confirm("Download it under these terms?"):
                raise DpmfError(f"{entry.title}: the terms were not accepted, nothing was downloaded")
            asked = True
        places.append(_from_mirrors(entry, part, data, out))
    return places


def take(entry: CatalogEntry, path: Path, data: Path, cache: Path, *, out: TextIO | None = None) -> Path:
    """Verifies a file that the user has and copies it (by a link, where the disk allows) into `data`.

    If no checksum is published, prints the counts to `out` (default: stderr). Raises `DpmfError` if the file is not
    one of `entry`.
    """
    if not path.is_file():
        hint = "; a folder can be used where it is: `dataset: {kind: catalog, name: …, path: …}`"
        raise DpmfError(f"{path}: not a file{hint if path.is_dir() else ''}")
    part = _part_of(entry, path, cache, out or sys.stderr)
    name = path.name if path.name in part.names else _name(entry, part, path)
    with _temporary(data) as folder:
        held = folder / "file"
        try:
            os.link(path.resolve(), held)  # resolved, since a symbolic link may be relative
        except OSError:
            shutil.copyfile(path, held)
        located.note_of_origin(data / name).unlink(missing_ok=True)
        return _settle(held, data / name)


def _part_of(entry: CatalogEntry, path: Path, cache: Path, out: TextIO) -> SourcePart:
    """Returns the part whose file this is, by its checksum, by that of the rating file in it, or by its counts."""
    wrong = None
    for part in entry.parts:
        if located.is_publishers(part, path, cache):
            return part
    for part in entry.parts:
        if located.content_at(entry, part, path) is None:
            continue
        if len(entry.parts) > 1:
            wrong = _wrong(entry, part, path, cache)
            if wrong is None:
                return part
            continue
        # Verifies the checksum if one is known, and always the counts of the ratings.
        _count(located.locate(entry, path.parent, path), cache, out)
        return part
    names = ", ".join(pattern for part in entry.parts for pattern in part.patterns)
    raise DpmfError(
        f"{wrong or f'{path}: holds no {names}'}: it is not (a part of) {entry.title}, or damaged"
    )


def _sound(entry: CatalogEntry, part: SourcePart, place: Path, cache: Path, out: TextIO) -> bool:
    """Whether the file at `place` is the publisher's: by checksum, or by its counts if no checksum is published."""
    try:
        if located.is_publishers(part, place, cache):
            return True
        found = located.locate_part(entry, part, place)
        if located.known_by_digest(found, cache):
            return located.fault(found, cache) is None
        _count(found, cache, out)
    except DpmfError as error:
        print(error, file=out)
        return False
    return True


def _count(found: located.Located, cache: Path, out: TextIO) -> None:
    """Verifies a file by its counts. If it has no published checksum, verifies its mean and variance too, and prints
    all of them. Raises DpmfError if it is another file."""
    counted = figures(loading.read_catalog(found, cache).ratings)
    if located.known_by_digest(found, cache):
        return
    entry, place = found.entry, found.source.paths[0]
    for name in ("mean", "variance"):
        got, expected = getattr(counted, name), getattr(entry.expected, name)
        if abs(got - expected) > TOLERANCE:
            raise DpmfError(
                f"{place}: the {name} of its ratings is {got:.5f}, but {entry.title} has {expected:.5f}: it is "
                f"another version; {located.how_to_get(entry)}"
            )
    print(
        f"{place}: its checksum is not published; counted {counted.ratings:,} ratings by {counted.users:,} users of "
        f"{counted.items:,} items, mean {counted.mean:.5f}, variance {counted.variance:.5f}, as in {entry.title}",
        file=out,
    )


def _wrong(entry: CatalogEntry, part: SourcePart, place: Path, cache: Path) -> str | None:
    return located.fault(located.locate_part(entry, part, place), cache)


def _name(entry: CatalogEntry, part: SourcePart, path: Path) -> str:
    """Returns the name under which a file with an unknown name is put, so that it is found again."""
    kind = next((end for end in (".tar.gz", ".tgz", ".tar", ".zip") if path.name.endswith(end)), "")
    if kind and f"{entry.key}{kind}" in part.names and len(entry.parts) == 1:
        return f"{entry.key}{kind}"
    return part.names[0] if kind else f"{entry.key}/{path.name}"


def _from_mirrors(entry: CatalogEntry, part: SourcePart, data: Path, out: TextIO) -> Path:
    tried = []
    for mirror in part.mirrors:
        print(f"fetching {mirror.filename} from {mirror}", file=out)
        try:
            with _temporary(data) as folder:
                place = _settle(mirrors.download(mirror, folder), data / mirror.filename)
                note = json.dumps({"mirror": str(mirror), "digest": mirror.digest})
                write_whole(located.note_of_origin(place), f"{note}\n".encode())
                return place
        except MirrorError as error:
            print(f"  failed: {error}", file=out)
            tried.append(f"  {mirror}: {error}")
    name = part.mirrors[0].filename
    raise DpmfError(
        f"{entry.title}: none of its mirrors gave {name}:\n"
        + "\n".join(tried)
        + f"\nGet {name} some other way (it is described at {entry.homepage}) and give it to\n"
        f"  dpmf datasets fetch {entry.key} --from-file {name}"
    )


@contextmanager
def _temporary(data: Path) -> Iterator[Path]:
    """Makes a folder inside the data folder, so that a file can be renamed out of it, and removes it afterwards."""
    try:
        make_folder(data)
        sweep(data)
        with temporary_folder(data) as folder:
            yield folder
    except OSError as error:
        raise DpmfError(
            f"{data}: cannot be written ({error.strerror or error}); free some space there, or name another "
            "folder in $DPMF_DATA"
        ) from error


def _settle(held: Path, place: Path) -> Path:
    make_folder(place.parent)
    flush(held)
    rename(held, place)
    return place

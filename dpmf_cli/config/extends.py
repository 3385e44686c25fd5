"""Reads a config and those that it extends as one config, in which each key keeps its place in its file."""

import difflib
import os
from pathlib import Path
from typing import Any

from dpmf_cli.config.shipped import config_file, shipped_file
from dpmf_cli.config.yaml_positions import Document, KeyPath, Place, read
from dpmf_cli.errors import DpmfError, did_you_mean

KEY = "extends"
MOST_FILES = 8
"""Most files in one chain. A reader could not follow more either."""


def read_whole(path: Path) -> Document:
    """Reads a config with what it extends. Raises DpmfError, with the place, for what cannot be extended."""
    found = config_file(path)
    return _whole(read(found), (found.resolve(),))


def _whole(document: Document, chain: tuple[Path, ...]) -> Document:
    """Returns `document` on top of what it extends. `chain` has the files that led here, `document` last."""
    if KEY not in document.data:
        return document
    place = document.place_of((KEY,), key=False)
    named = _file_named(document.data.pop(KEY), place)
    path = document.path.parent / named
    if not _is_file(path) and (ships := shipped_file(Path(named))):
        path = ships
    if not _is_file(path):
        near = difflib.get_close_matches(path.name, _configs_beside(path), n=1)
        raise DpmfError(f"{place}: {KEY}: there is no file {path}{did_you_mean(path.name, near)}")
    if path.resolve() in chain:
        circle = " → ".join(each.name for each in (*chain, path))
        raise DpmfError(f"{place}: {KEY}: {circle} is a circle; remove one `{KEY}` of it")
    if len(chain) == MOST_FILES:
        raise DpmfError(f"{place}: {KEY}: more than {MOST_FILES} files in one chain; copy one into another")
    return _on_top(document, _whole(read(path), (*chain, path.resolve())))


def _file_named(value: Any, place: Place) -> str:
    if not isinstance(value, str) or not value:
        raise DpmfError(f"{place}: {KEY}: name one file, relative to this one: `{KEY}: other.yaml`")
    return value


def _is_file(path: Path) -> bool:
    """Whether a path is a plain file. Reading a pipe or a device might never end."""
    try:
        return path.is_file()
    except OSError:
        return False


def _configs_beside(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.glob("*.y*ml")]
    except OSError:
        return []


def _on_top(own: Document, base: Document) -> Document:
    """Returns what a file says itself, on top of what it extends. The base's name is not inherited: it names
    a results folder."""
    base.data.pop("name", None)
    relative_to(own.path.parent, base)
    replaced: set[KeyPath] = set()
    data = _merged(own.data, base.data, (), replaced)
    keys = {**_outside(replaced, base.keys), **own.keys}
    values = {**_outside(replaced, base.values), **own.values}
    return Document(own.path, data, keys, values)


def _merged(
    own: dict[str, Any], base: dict[str, Any], path: KeyPath, replaced: set[KeyPath]
) -> dict[str, Any]:
    """Merges two mappings key by key. Any other value in `own` replaces the base's, and null removes it.

    replaced   receives the paths at and below which nothing of the base is left
    """
    merged = dict(base)
    for key, value in own.items():
        before, here = base.get(key), (*path, key)
        if isinstance(value, dict) and isinstance(before, dict) and _of_one_kind(value, before):
            merged[key] = _merged(value, before, here, replaced)
            continue
        replaced.add(here)
        merged[key] = value
        if value is None and key in base:
            del merged[key]
    return merged


def _of_one_kind(own: dict[str, Any], base: dict[str, Any]) -> bool:
    """Whether two mappings may hold the same keys. Data sets of different `kind` may not."""
    return "kind" not in own or own["kind"] == base.get("kind")


def _outside(cut: set[KeyPath], places: dict[KeyPath, Place]) -> dict[KeyPath, Place]:
    """Returns the places of all paths that are neither at nor below one of these."""
    return {
        path: place
        for path, place in places.items()
        if not any(path[:length] in cut for length in range(len(path) + 1))
    }


def relative_to(folder: Path, base: Document) -> None:
    """Rewrites the path of the base's data set, which is relative to the base, so that it is relative to `folder`."""
    if base.path.parent == folder:
        return
    dataset = base.data.get("dataset")
    path = dataset.get("path") if isinstance(dataset, dict) else None
    if isinstance(path, str) and path and not path.startswith(("/", "~")):
        dataset["path"] = os.path.relpath(base.path.parent / path, folder)

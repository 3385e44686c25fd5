"""Where a value at fault was written: in an entry, in what that inherits, or in a list that it was chosen from."""

from collections.abc import Mapping
from typing import Any

from dpmf_cli.config.entries import INHERITED, LISTED, Registry, written_out
from dpmf_cli.config.yaml_positions import Document, KeyPath
from dpmf_cli.strict_model import tagged

Registries = Mapping[str, Registry]
"""The algorithms of each key that lists entries."""


def where_written(document: Document, location: KeyPath, registries: Registries) -> KeyPath:
    """The path in the file of what validation found at `location`, or of the nearest thing around it."""
    location = _as_listed(document, location, registries)
    return path_in_file(document, _where_inherited(document, location, registries))


def path_in_file(document: Document, location: KeyPath) -> KeyPath:
    """`location` without the steps that are pydantic's own (the tags of unions) or not in the file."""
    path: KeyPath = ()
    for step in location:
        if (*path, step) in document.values:
            path = (*path, step)
    return path


def choice_in_list(document: Document, path: KeyPath, value: Any) -> KeyPath:
    """`path`, or that of `value` in the list at `path`, where the list was one of choices."""
    listed = document.data
    for step in path:
        listed = listed[step]
    chosen = path[-1:] and path[-1] in LISTED and isinstance(listed, list) and value in listed
    return (*path, listed.index(value)) if chosen else path


def _is_of_entry(location: KeyPath, registries: Registries) -> bool:
    return len(location) > 1 and location[0] in registries and isinstance(location[1], int)


def _as_listed(document: Document, location: KeyPath, registries: Registries) -> KeyPath:
    """`location` with the index of an entry as it stands in the file, where one there stands for several."""
    if not _is_of_entry(location, registries):
        return location
    entries, registry = document.data.get(location[0]) or [], registries[str(location[0])]
    origin = [at for at, entry in enumerate(entries) for _ in written_out(entry, document.data, registry)]
    found = dict(enumerate(origin)).get(int(location[1]), location[1])
    return (location[0], found, *location[2:])


def _where_inherited(document: Document, location: KeyPath, registries: Registries) -> KeyPath:
    """`location`, or where the experiment has what an entry inherited from it: its `parameters`, or its own key."""
    within = location[2:]
    if _is_of_entry(location, registries) and path_in_file(document, location) == location[:2]:
        entry = tagged(document.data[location[0]][location[1]])
        shared = ("parameters", entry.get("algorithm", "")) if isinstance(entry, dict) else ()
        if len(path_in_file(document, (*shared, *within))) > len(shared):
            return (*shared, *within)
    for at, step in enumerate(location):
        inherited = at > 0 and step in INHERITED and (step,) in document.values
        if inherited and (*path_in_file(document, location[:at]), step) not in document.values:
            return location[at:]
    return location

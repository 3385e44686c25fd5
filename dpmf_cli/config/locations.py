"""Where a value at fault was written: in an entry, in what that inherits, or in a list that it was chosen from."""

from collections.abc import Mapping
from typing import Any

from dpmf_cli.config.entries import INHERITED, LISTED, Registry, written_out
from dpmf_cli.config.yaml_positions import Document, KeyPath
from dpmf_cli.strict_model import tagged

Registries = Mapping[str, Registry]
"""The algorithms of each key that lists entries."""

Origins = Mapping[str | int, list[int]]
"""Of each entry that is validated, by key, the index of the one in the file that stands for it."""


def origins(document: Document, registries: Registries) -> Origins:
    """Which of a document's entries stands for which of those that are validated."""
    return {
        key: [
            at
            for at, entry in enumerate(document.data[key])
            for _ in written_out(entry, document.data, registry)
        ]
        for key, registry in registries.items()
        if isinstance(document.data.get(key), list)
    }


def where_written(document: Document, location: KeyPath, of: Origins) -> KeyPath:
    """The path in the file of what validation found at `location`, or of the nearest thing around it."""
    match location:
        case (key, int(at), *within) if key in of:
            location = _in_parameters(document, (key, of[key][at], *within))
    return path_in_file(document, _where_inherited(document, location))


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


def _in_parameters(document: Document, location: KeyPath) -> KeyPath:
    """`location` in an entry, or where what the entry has there was written: in its sweep, or in `parameters`."""
    (key, index), within = location[:2], location[2:]
    entry = tagged(document.data[key][index])
    if not isinstance(entry, dict):
        return location
    swept = entry.get("sweep")
    written = path_in_file(document, location)
    for name in map(str, swept if isinstance(swept, dict) else ()):
        whole = name.split(".")
        if (written == (key, index) and whole[0] in within) or within[-len(whole) :] == tuple(whole):
            return (key, index, "sweep", name)
    if written != (key, index):
        return location
    shared = ("parameters", str(entry.get("algorithm")))
    found = path_in_file(document, (*shared, *within))
    return (*shared, *within) if len(found) > len(shared) else location


def _where_inherited(document: Document, location: KeyPath) -> KeyPath:
    """`location`, or the experiment's own key where an entry inherited the value at fault from it."""
    for at, step in enumerate(location):
        inherited = at > 0 and step in INHERITED and (step,) in document.values
        if inherited and (*path_in_file(document, location[:at]), step) not in document.values:
            return location[at:]
    return location

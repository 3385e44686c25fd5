"""Finds where a wrong value was written: in an entry, in what the entry inherits, or in a list of choices."""

from collections.abc import Mapping
from typing import Any

from dpmf_cli.config.entries import INHERITED, LISTED, Registry, written_out
from dpmf_cli.config.yaml_positions import Document, KeyPath
from dpmf_cli.strict_model import tagged

Registries = Mapping[str, Registry]
"""The algorithms of each key that lists entries."""

Origins = Mapping[str | int, list[int]]
"""By key: for each validated entry, the index of the entry in the file that it was written out from."""


def origins(document: Document, registries: Registries) -> Origins:
    """Returns, for each validated entry, the index of the document's entry that it was written out from."""
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
    """Returns the path in the file of what validation found at `location`, or the nearest path around it."""
    match location:
        case (key, int(at), *within) if key in of:
            location = _in_parameters(document, (key, of[key][at], *within))
    return path_in_file(document, _where_inherited(document, location))


def path_in_file(document: Document, location: KeyPath) -> KeyPath:
    """Returns `location` without the steps that are pydantic's own (the tags of unions) or not in the file."""
    path: KeyPath = ()
    for step in location:
        if (*path, step) in document.values:
            path = (*path, step)
    return path


def choice_in_list(document: Document, path: KeyPath, value: Any) -> KeyPath:
    """Returns the path of `value` in the list at `path` if that is a list of choices, else `path`."""
    listed = document.data
    for step in path:
        listed = listed[step]
    chosen = path[-1:] and path[-1] in LISTED and isinstance(listed, list) and value in listed
    return (*path, listed.index(value)) if chosen else path


def _in_parameters(document: Document, location: KeyPath) -> KeyPath:
    """Returns where an entry's value at `location` was written: there, in the entry's sweep, or in `parameters`."""
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
    """Returns `location`, or the experiment's own key if the entry inherited the wrong value from there."""
    for at, step in enumerate(location):
        inherited = at > 0 and step in INHERITED and (step,) in document.values
        if inherited and (*path_in_file(document, location[:at]), step) not in document.values:
            return location[at:]
    return location

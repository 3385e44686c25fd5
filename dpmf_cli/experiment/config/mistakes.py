"""Messages about mistakes in a config: the place where a wrong value was written, what is wrong, and the fix."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic_core import ErrorDetails

from dpmf_cli.algorithms import plugins
from dpmf_cli.core.errors import did_you_mean
from dpmf_cli.core.strict_model import NEIGHBOURS_HIDE, tagged
from dpmf_cli.core.terminal import printable
from dpmf_cli.experiment.config.documents import Document, KeyPath
from dpmf_cli.experiment.config.entries import INHERITED, LISTED, Registry, written_out

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


LONGEST_SHOWN = 100

_SHAPES = (
    "list_type",
    "dict_type",
    "model_type",
    "model_attributes_type",
    "string_pattern_mismatch",
    "string_type",
    "string_too_short",
)
"""The types of mistakes that are mended by writing a value in another way."""

_WRITTEN = {
    "algorithms": "write a list: `algorithms: [pge, {algorithm: isgd, factors: 3}]`",
    "baselines": "write a list: `baselines: [ga, ia]`",
    "epsilons": "write a list: `epsilons: [0.3, 1, 3]`",
    "thetas": "write a list: `thetas: [0.3, 1, 3]`",
    "scale": "write `scale: {minimum: 1, maximum: 5, step: 1}`",
    "columns": "write `columns: {user: customer, item: sku, rating: stars}`",
    "path": "name a file of ratings, relative to the config: `path: ratings.csv`",
    "kind": "`kind: csv` is a file of your own, Parquet too; `kind: catalog` is a data set that dpmf knows",
    "separator": 'write one character in quotes, like `separator: "\\t"` for a tab',
    "name": "use letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
    "neighbours": NEIGHBOURS_HIDE,
}
"""How a key is written."""


def mistakes(document: Document, details: Sequence[ErrorDetails], registries: Registries) -> list[str]:
    """Returns a message for each mistake in a config, as `file:line:column: where: what and the fix`, each once."""
    of = origins(document, registries)
    return list(dict.fromkeys(_mistake(document, detail, registries, of) for detail in details))


def _mistake(document: Document, detail: ErrorDetails, registries: Registries, of: Origins) -> str:
    context = detail.get("ctx", {})
    kind, message = detail["type"], detail["msg"]
    about_key = kind == "unknown_key"
    location = (*detail["loc"], *context.get("path", ()), *((context["key"],) if about_key else ()))
    path = where_written(document, location, of)
    if kind == "missing":
        key = str(location[-1])
        fix = _WRITTEN.get(key, "give it here")
        if len(location) == 1:
            fix = "give it here, or in a file that this one `extends`"
        message = f'the key "{key}" is missing; {fix}'
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        registry = registries.get(str(detail["loc"][0]), {})
        tag = str(context.get("tag", ""))
        hint = did_you_mean(tag, registry)
        if isinstance(written := detail["input"], dict) and (named := written.keys() & registry.keys()):
            hint = f", as in `- {{algorithm: {min(named)}, …}}`, with the parameters in the same braces"
        if tag in plugins.available():
            hint = f"; it is a plugin; name it: `plugins: [{tag}]`"
        if nested := _nested_entries(registry, detail["loc"]):
            where = path[-1]
            path = path_in_file(document, (*path, "algorithm"))
            message = f'"{tag}" cannot be the {where} here; ' if tag else f"name the {where}'s `algorithm`; "
            message += f"it is one of {', '.join(nested)}"
            if tag in registry and registry[tag].joint is True:
                message += f" ({tag} puts a user's own clean ratings into the user's predictions)"
        elif "dataset" in path:
            path = path_in_file(document, (*path, "kind"))
            message = (f'unknown kind "{tag}"; ' if tag else "name the `kind`; ") + _WRITTEN["kind"]
        else:
            path = path_in_file(document, (*path, "algorithm"))
            message = f'unknown algorithm "{tag}"{hint}' if tag else f"name an `algorithm`{hint}"
    elif kind == "value_error":
        path = choice_in_list(document, path, detail["input"])
        message = str(context["error"])
    elif isinstance(detail["input"], str | int | float | bool):
        path = choice_in_list(document, path, detail["input"])
        message = f"{_uncapitalised(message)}, not {_shown(detail['input'])}"
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    if kind in (*_SHAPES, "enum") and key in _WRITTEN:
        what = f"cannot be {_shown(detail['input'])}" if kind in _SHAPES else message
        message = f"{what}; {_WRITTEN[key]}"
    place = document.place_of(path, key=about_key)
    where = _dotted(path)
    return printable(f"{place}: {where + ': ' if where else ''}{_uncapitalised(message)}")


def _nested_entries(registry: Registry, location: KeyPath) -> list[str]:
    """Returns the algorithms, by name, that an entry inside another may be, at `(…, algorithm, key)`. There are none
    for an entry that is not inside another."""
    algorithm, key = (registry.get(str(location[-2])), location[-1]) if len(location) > 1 else (None, "")
    field = algorithm.model_fields.get(str(key)) if algorithm else None
    return [
        get_args(each.model_fields["algorithm"].annotation)[0]
        for each in get_args(field and field.annotation)
    ]


def _dotted(path: KeyPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:] if message[1:2].islower() else message

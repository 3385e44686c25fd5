"""Messages about mistakes in a config: the place in the file, what is wrong, and the fix."""

import json
from collections.abc import Sequence
from typing import get_args

from pydantic_core import ErrorDetails

from dpmf_cli.algorithms import plugins
from dpmf_cli.config.entries import Registry
from dpmf_cli.config.locations import (
    Origins,
    Registries,
    choice_in_list,
    origins,
    path_in_file,
    where_written,
)
from dpmf_cli.config.yaml_positions import Document, KeyPath
from dpmf_cli.errors import did_you_mean
from dpmf_cli.escapes import printable

LONGEST_SHOWN = 100


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
        message = f'the key "{detail["loc"][-1]}" is missing'
        if len(detail["loc"]) == 1:
            message += "; give it here, or in a file that this one `extends`"
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        registry = registries.get(str(detail["loc"][0]), {})
        tag = str(context.get("tag", ""))
        hint = did_you_mean(tag, registry)
        if tag in plugins.available():
            hint = f"; it is a plugin; name it: `plugins: [{tag}]`"
        if nested := _nested_entries(registry, detail["loc"]):
            where = path[-1]
            path = path_in_file(document, (*path, "algorithm"))
            message = f'"{tag}" cannot be the {where} here; ' if tag else f"name the {where}'s `algorithm`; "
            message += f"it is one of {', '.join(nested)}"
            if tag in registry and registry[tag].joint is True:
                message += f" ({tag} puts a user's own clean ratings into the user's predictions)"
        elif "dataset" not in path:
            path = path_in_file(document, (*path, "algorithm"))
            message = f'unknown algorithm "{tag}"{hint}' if tag else f"name an `algorithm`{hint}"
    elif kind == "value_error":
        path = choice_in_list(document, path, detail["input"])
        message = str(context["error"])
    elif isinstance(detail["input"], str | int | float | bool):
        path = choice_in_list(document, path, detail["input"])
        message = f"{_uncapitalised(message)}, not {_shown(json.dumps(detail['input'], ensure_ascii=False))}"
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


def _shown(value: str) -> str:
    return value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}…"


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:] if message[1:2].islower() else message

"""What is wrong with a config, where it stands in the file, and the fix."""

import json
from typing import Any, get_args

from pydantic_core import ErrorDetails

from dpmf_cli.algorithms import plugins
from dpmf_cli.algorithms.zhang2018.personalized import CleanBase, PrivateBase
from dpmf_cli.config.entries import INHERITED, Registry, expand_sweep
from dpmf_cli.config.yaml_positions import Document, Step
from dpmf_cli.errors import did_you_mean

LONGEST_SHOWN = 100


def explain(
    document: Document,
    detail: ErrorDetails,
    known_baselines: Registry,
    known_private: Registry,
) -> str:
    """One mistake as `file:line:column: where: what and the fix`."""
    context = detail.get("ctx", {})
    location = _before_sweeps(document, (*detail["loc"], *context.get("path", ())))
    path = _path_in_file(document, _where_written(document, location))
    kind, message = detail["type"], detail["msg"]
    about_key = kind == "unknown_key"
    if about_key:
        path = (*path, context["key"])
    elif kind == "missing":
        message = f'the key "{detail["loc"][-1]}" is missing'
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        baseline = "baselines" in path
        registry = known_baselines if baseline else known_private
        tag = str(context.get("tag", ""))
        hint = did_you_mean(tag, registry)
        if tag in plugins.available():
            hint = f"; it is a plugin, to be named: `plugins: [{tag}]`"
        if path[-1:] == ("base",):
            path = _path_in_file(document, (*path, "algorithm"))
            known = ", ".join(_tags(CleanBase if baseline else PrivateBase))
            message = f'"{tag}" cannot be the base here; ' if tag else "name the base's `algorithm`; "
            message += f"it is one of {known}"
            if not baseline and tag in known_private and known_private[tag].joint is True:
                message += f" ({tag} puts a user's own clean ratings into the user's predictions)"
        elif "dataset" not in path:
            path = _path_in_file(document, (*path, "algorithm"))
            message = f'unknown algorithm "{tag}"{hint}' if tag else f"name an `algorithm`{hint}"
    elif isinstance(detail["input"], str | int | float | bool):
        message = f"{_uncapitalised(message)}, not {_shown(json.dumps(detail['input'], ensure_ascii=False))}"
    place = document.place_of(path, key=about_key)
    where = _dotted(path)
    return f"{document.path}:{place.line}:{place.column}: {where + ': ' if where else ''}{_uncapitalised(message)}"


def _tags(union: Any) -> list[str]:
    """The names by which a config calls the algorithms of a union."""
    return [get_args(algorithm.model_fields["algorithm"].annotation)[0] for algorithm in get_args(union)]


def _before_sweeps(document: Document, location: tuple[Step, ...]) -> tuple[Step, ...]:
    """`location` with the index of an entry as it stands in the file, where sweeps have made several of one."""
    if (
        len(location) < 2
        or location[0] not in ("baselines", "algorithms")
        or not isinstance(location[1], int)
    ):
        return location
    entries = document.data.get(location[0])
    origin = [at for at, entry in enumerate(entries or []) for _ in expand_sweep(entry)]
    return (location[0], origin[location[1]] if location[1] < len(origin) else location[1], *location[2:])


def _where_written(document: Document, location: tuple[Step, ...]) -> tuple[Step, ...]:
    """`location`, or the experiment's own key where an entry inherited the value at fault from it."""
    for at, step in enumerate(location):
        inherited = at > 0 and step in INHERITED and (step,) in document.values
        if inherited and (*_path_in_file(document, location[:at]), step) not in document.values:
            return location[at:]
    return location


def _path_in_file(document: Document, location: tuple[Step, ...]) -> tuple[Step, ...]:
    """`location` without the steps that are pydantic's own (the tags of unions) or not in the file."""
    path: tuple[Step, ...] = ()
    for step in location:
        if (*path, step) in document.values:
            path = (*path, step)
    return path


def _dotted(path: tuple[Step, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _shown(value: str) -> str:
    return value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}…"


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:] if message[1:2].islower() else message

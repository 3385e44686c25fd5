"""The reference, as Markdown, from what the code knows of itself: commands, keys of a config, algorithms."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.config import ExperimentConfig

SHARED = ("algorithm", "label", "sweep", "clip_predictions", "neighbours", "mode", "effects")
"""Keys of every entry, listed once."""

FILLED_IN = {"name": "the file's name"}
"""Defaults that a config gets while it is read."""

HEAD = """\
# Reference

Written by `dpmf docs > docs/reference.md` from the models and docstrings; a test holds it against them. Task by task:
[guides](guides/README.md). What each ε means: [privacy.md](privacy.md); terms: [glossary.md](glossary.md).
"""


def reference(command: Any) -> str:
    """The whole page; `command` is the click command of `dpmf`."""
    parts = [HEAD, "\n## Commands\n", *_commands(command, "dpmf"), "\n## Keys of a config\n", *_config()]
    parts += ["\n## Private algorithms\n", _shared(), *_algorithms(PRIVATE)]
    parts += ["\n## Baselines\n", *_algorithms(BASELINES)]
    return "".join(parts)


def _commands(command: Any, path: str) -> Iterator[str]:
    below: Mapping[str, Any] = getattr(command, "commands", {})
    for name, each in below.items():
        yield from _commands(each, f"{path} {name}")
    if below:
        return
    text = inspect.cleandoc(command.help or "")
    said, _, example = text.partition("Example: ")
    yield f"\n### {path}\n\n{said.strip()}\n\n    {example.strip()}\n\n"
    rows = []
    for each in command.params:
        names = (
            ", ".join((*each.opts, *each.secondary_opts))
            if each.param_type_name == "option"
            else each.name.upper()
        )
        default = "" if each.default is None or each.default is False else str(each.default)
        rows.append((f"`{names}`", default, each.help or ""))
    yield markdown_table(("", "default", ""), rows)


def _config() -> Iterator[str]:
    schema = ExperimentConfig.model_json_schema()
    parts = schema["$defs"]
    yield f"\n{ExperimentConfig.__doc__}\n\n"
    yield _keys(schema["properties"], parts, set(schema["required"]), FILLED_IN)
    for name in (
        "CatalogSpec",
        "SampleSpec",
        "CsvSpec",
        "CsvColumns",
        "ScaleSpec",
        "SyntheticSpec",
        "GrowthKeys",
        "GeometricGrid",
        "EffectsParameters",
        *(name for name in parts if name.endswith("Budget")),
    ):
        part = parts.get(name)
        if part:
            yield f"\n### {name}\n\n{inspect.cleandoc(part.get('description', ''))}\n\n"
            yield _keys(part["properties"], parts, set(part.get("required", ())))


def _shared() -> str:
    schema = PrivateAlgorithm.model_json_schema()
    own = {key: value for key, value in schema["properties"].items() if key in SHARED}
    return "\nKeys of every entry:\n\n" + _keys(own, schema["$defs"], {"algorithm"})


def _algorithms(registry: Mapping[str, type[Algorithm]]) -> Iterator[str]:
    for name, algorithm in registry.items():
        schema = algorithm.model_json_schema()
        yield f"\n### {name}\n\n**{algorithm.title}.** {inspect.cleandoc(algorithm.__doc__ or '')}\n"
        if issubclass(algorithm, PrivateAlgorithm):
            yield f"\n{_hides(algorithm)}\n"
            for variant in algorithm.algorithms():
                yield f"\n**{variant.__name__}.** {inspect.cleandoc(variant.__doc__ or '')}\n\n{_hides(variant)}\n"
        own = {key: value for key, value in schema["properties"].items() if key not in SHARED}
        if own:
            yield "\n" + _keys(own, schema.get("$defs", {}), set(schema.get("required", ())))


def _hides(algorithm: type[PrivateAlgorithm]) -> str:
    """What a class offers, and from whom it protects if a prediction takes its user's own clean ratings."""
    offered = ", ".join(sorted(f"{kind.value} ({mode.value})" for kind, mode in algorithm.variants))
    joint = " Joint: towards everybody but the user who gets the prediction." if algorithm.joint else ""
    return f"Hides: {offered}.{joint}"


def _keys(
    properties: Mapping[str, Any],
    parts: Mapping[str, Any],
    required: set[str],
    filled_in: Mapping[str, str] | None = None,
) -> str:
    """A table of keys: what they may hold, their default, what they are for."""
    rows = []
    for key, value in properties.items():
        default = "required" if key in required else _default(value.get("default"))
        default = (filled_in or {}).get(key, default)
        rows.append((f"`{key}`", _kind(value, parts), default, value.get("description", "")))
    return markdown_table(("key", "holds", "default", ""), rows)


def _default(value: Any) -> str:
    return "–" if value is None else str(value).replace("'", "")


def _kind(value: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        part = parts[name]
        return _kind(part, parts) if "enum" in part or "const" in part else name
    if "enum" in value:
        return " or ".join(map(str, value["enum"]))
    if "const" in value:
        return str(value["const"])
    if "oneOf" in value or "anyOf" in value:
        kinds = dict.fromkeys(_kind(each, parts) for each in value.get("oneOf") or value["anyOf"])
        kinds.pop("null", None)
        first, *others = kinds
        if others == [f"list of {first}"]:
            return f"{first}, or a list"
        return " or ".join(kinds) if len(kinds) <= 6 else "one of those below"
    if value.get("type") == "array":
        return f"list of {_kind(value.get('items', {}), parts)}"
    return str(value.get("type", "anything")) + _bounds(value)


def _bounds(value: Mapping[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    found = [f"{sign} {value[key]:g}" for key, sign in signs.items() if key in value]
    return f" {', '.join(found)}" if found else ""


def markdown_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table whose cells are escaped, but for those that begin with code."""
    lines = [header, ("---",) * len(header), *(tuple(map(_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    """A cell's text; what is code already stays as it is."""
    flat = " ".join(text.split())
    return flat if flat.startswith("`") else flat.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")

"""Configs read from files and manifests, with a message for each mistake, changed, and described by a schema.

A config that the command line reduces gets a name that says what was changed: `friedman_fig3a` on ML-100K, with one
fold and one run, becomes `friedman_fig3a.ml-100k.held-out-1.runs-1`. Thus its figures are not taken for those of the
complete experiment, whose folder does not change.

A path names a key of a config: `config.folds`, `isgd|psgd.effects.beta_m`, `psgd[q_max 1].item_norm`, `*.factors`.
The part before the first dot names algorithms by their keys; a label in brackets means only the entry of that name.
`*` means every entry that has the key, and `config` the config itself. A path never means an entry that ignores
the key.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dpmf_cli.algorithms.plugins import available, plugin, plugin_names
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.core.errors import DpmfError, did_you_mean, nearest, words
from dpmf_cli.core.strict_model import SAME, in_words, tagged
from dpmf_cli.core.terminal import printable
from dpmf_cli.experiment.config.documents import HELD_OUT, MARK, RUNS, Document, KeyPath, read_whole
from dpmf_cli.experiment.config.entries import INHERITED, LISTED, Registry, with_parameter, written_out
from dpmf_cli.experiment.config.model import ExperimentConfig


def load_config(path: Path) -> ExperimentConfig:
    """The config of a file and what it extends. Raises DpmfError with the place and fix of every mistake."""
    return validated(read_whole(path))


def validated(document: Document) -> ExperimentConfig:
    """A config that was read, validated. Raises DpmfError as `load_config` does."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", document.path.stem).strip("-.")
    document.data.setdefault("name", stem or "experiment")
    plugins = []
    for index, name in enumerate(plugin_names(document.data)):
        try:
            plugins.append(plugin(name))
        except DpmfError as error:
            place = document.place_of(("plugins", index), key=False)
            raise DpmfError(f"{place}: plugins[{index}]: {error}") from None
    model = ExperimentConfig.knowing(plugins)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        of: Origins = {
            key: [
                at
                for at, entry in enumerate(document.data[key])
                for _ in written_out(entry, document.data, registry)
            ]
            for key, registry in model.known.items()
            if isinstance(document.data.get(key), list)
        }
        details = error.errors(include_url=False)
        found = dict.fromkeys(_mistake(document, detail, model.known, of) for detail in details)
        raise DpmfError("\n".join(found)) from None


def config_of(data: dict[str, Any]) -> ExperimentConfig:
    """A resolved config, validated with the plugins that it names. Raises DpmfError if a plugin is missing, and
    pydantic's ValidationError for data that are no config."""
    names = plugin_names(data)
    return ExperimentConfig.knowing([plugin(name) for name in names]).model_validate(data)


def reduced(
    config: ExperimentConfig,
    *,
    dataset: str | None = None,
    held_out: int | None = None,
    runs: int | None = None,
) -> ExperimentConfig:
    """`config` on another data set (by its key), with fewer folds held out, or with fewer runs; `config`
    itself if nothing changes. Raises `DpmfError` if the changed config is not valid."""
    changes: dict[str, Any] = {}
    marks = [config.name]
    for key, begin, asked, there in (
        ("dataset", "", dataset, config.dataset.key),
        ("held_out", HELD_OUT, held_out, config.folds_run),
        ("runs", RUNS, runs, config.runs),
    ):
        if asked not in (None, there):
            changes[key] = asked
            marks.append(f"{begin}{asked}")
    if not changes:
        return config
    try:
        return config_of({**config.resolved(), **changes, "name": MARK.join(marks)[:80]})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = " ".join(flags(dataset, held_out, runs))
        raise DpmfError(f"{config.name} with {said}: {in_words(first)}") from None


def flags(dataset: str | None, held_out: int | None, runs: int | None) -> list[str]:
    """The options of the command line that ask for this reduction."""
    asked = (("--dataset", dataset), ("--held-out", held_out), ("--runs", runs))
    return [word for flag, value in asked if value is not None for word in (flag, str(value))]


def file_schema(model: type[ExperimentConfig]) -> dict[str, Any]:
    """The schema of a file with these keys. It accepts more than the model: a file that extends another may
    leave out what it inherits, or remove it with null, and an entry may get its keys from `parameters`."""
    schema = model.model_json_schema()
    for part in schema["$defs"].values():
        if "required" in part:
            part["required"] = [key for key in part["required"] if key == "algorithm"]
    needed = [key for key in schema.pop("required") if key != "name"]
    properties = {}
    for key, value in schema["properties"].items():
        said = {word: value.pop(word) for word in ("title", "description", "default") if word in value}
        properties[key] = {**said, "anyOf": [*value.get("anyOf", [value]), {"type": "null"}]}
    return {**schema, "properties": properties, "anyOf": [{"required": needed}, {"required": ["extends"]}]}


Registries = Mapping[str, Registry]
"""The algorithms of each key that lists entries."""

Origins = Mapping[str | int, list[int]]
"""By key: for each validated entry, the index of the entry in the file that it was written out from."""


def path_in_file(document: Document, location: KeyPath) -> KeyPath:
    """`location` without the steps that are pydantic's own (the tags of unions) or not in the file."""
    path: KeyPath = ()
    for step in location:
        if (*path, step) in document.places:
            path = (*path, step)
    return path


def _in_parameters(document: Document, location: KeyPath) -> KeyPath:
    """Where an entry's value at `location` was written: there, in the entry's sweep, or in `parameters`."""
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


LONGEST_SHOWN = 100


def _mistake(document: Document, detail: ErrorDetails, registries: Registries, of: Origins) -> str:
    context = detail.get("ctx", {})
    kind, message, given = detail["type"], in_words(detail), detail["input"]
    about_key = kind == "unknown_key"
    location = (*detail["loc"], *context.get("path", ()), *((context["key"],) if about_key else ()))
    written = location
    if len(location) > 1 and location[0] in of and isinstance(location[1], int):  # a step into an entry
        several, at, *within = location
        written = _in_parameters(document, (several, of[several][at], *within))
    elif len(location) > 1 and location[0] in registries and location[0] not in document.data:
        written = ("parameters", *location[2:])  # of a baseline that is there by default
    # The entry may have inherited the wrong value from the experiment's own key.
    for at, step in enumerate(written):
        inherited = at > 0 and step in INHERITED and (step,) in document.places
        if inherited and (*path_in_file(document, written[:at]), step) not in document.places:
            written = written[at:]
            break
    path = path_in_file(document, written)
    key = str(path[-1]) if path else ""
    how = words("written").get(key)
    if kind == "missing":
        key = str(location[-1])
        fix = words("written").get(key, "give it here")
        if len(location) == 1:
            fix = "give it here, or in a file that this one `extends`"
        message = f'the key "{key}" is missing; {fix}'
    elif about_key:
        top = nearest(key, ExperimentConfig.model_fields, near=SAME) if len(path) > 1 else None
        if top and not nearest(key, context["known"], near=SAME):
            message = f"unknown key; `{top}` belongs at the top of the config"
    elif kind in ("union_tag_invalid", "union_tag_not_found"):
        path, message = _of_tag(document, detail, registries, path)
    elif kind in ("enum", "literal_error"):
        known = re.findall("'(.*?)'(?:, | or |$)", context["expected"])
        near = nearest(str(given), known)
        hint = f"; {how}" if how and not near else did_you_mean(str(given), known)
        message = f"cannot be {_shown(given)}{hint}"
        listed = document.data
        for step in path:
            listed = listed[step]
        if key in LISTED and isinstance(listed, list):
            path = (*path, listed.index(given))
    elif kind in words("expected") and len(path) == 2 and path[0] in registries:
        message = (
            f"cannot be {_shown(given)}; write a name, or a mapping like `{{algorithm: isgd, factors: 3}}`"
        )
    elif kind in words("expected") and how:
        message = f"cannot be {_shown(given)}; {how}"
    elif kind == "value_error":
        message = str(context["error"])
    elif given is None or isinstance(given, str | int | float | bool):
        message = f"{_uncapitalised(message)}, not {_shown(given)}"
    place = document.place_of(path, key=about_key)
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return printable(f"{place}: {where + ': ' if where else ''}{_uncapitalised(message)}")


def _of_tag(
    document: Document, detail: ErrorDetails, registries: Registries, path: KeyPath
) -> tuple[KeyPath, str]:
    """(the path, the message) of an entry's algorithm, a data set's kind or a split's `by` that is none."""
    given, at = detail["input"], str(detail["loc"][0])
    registry, tag = registries.get(at, {}), str(detail.get("ctx", {}).get("tag", ""))
    if nested := _nested_entries(registry, detail["loc"]):
        where = path[-1]
        message = f'"{tag}" cannot be the {where} here; ' if tag else f"name the {where}'s `algorithm`; "
        message += f"it is one of {', '.join(nested)}"
        if tag in registry and registry[tag].joint is True:
            message += f" ({tag} puts a user's own clean ratings into the user's predictions)"
        return path_in_file(document, (*path, "algorithm")), message
    if at in ("dataset", "split"):
        said, how = ("kind", "kind") if at == "dataset" else ("by", "split")
        message = (f'cannot be "{tag}"; ' if tag else f"name the `{said}`; ") + words("written")[how]
        return path_in_file(document, (*path, said)), message
    other = next((key for key, each in registries.items() if tag in each), None)
    hint = did_you_mean(tag, registry, {each.title: key for key, each in registry.items()})
    if isinstance(given, dict) and (named := given.keys() & registry.keys()):
        hint = f", as in `- {{algorithm: {min(named)}, …}}`, with the parameters in the same braces"
    elif other:
        hint = f"; it belongs under `{other}`"
    elif tag in available():
        hint = f"; it is a plugin; name it: `plugins: [{tag}]`"
    path = path_in_file(document, (*path, "algorithm"))
    return path, f'unknown algorithm "{tag}"{hint}' if tag else f"name an `algorithm`{hint}"


def _nested_entries(registry: Registry, location: KeyPath) -> list[str]:
    """The algorithms, by name, that an entry inside another may be, at `(…, algorithm, key)`; else none."""
    algorithm, key = (registry.get(str(location[-2])), location[-1]) if len(location) > 1 else (None, "")
    field = algorithm.model_fields.get(str(key)) if algorithm else None
    return [
        get_args(each.model_fields["algorithm"].annotation)[0]
        for each in get_args(field and field.annotation)
    ]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


_PATH = re.compile(r"(?P<algorithms>[^.\[]+)(\[(?P<label>.+)\])?\.(?P<keys>.+)")


@dataclass(frozen=True)
class ConfigPath:
    """A parsed path. `keys` are the keys behind the first dot, joined by dots."""

    algorithms: frozenset[str]
    label: str | None
    keys: str

    @classmethod
    def of(cls, text: str) -> "ConfigPath":
        """The path of a text. Raises ValueError for a text that is none."""
        parsed = _PATH.fullmatch(text)
        if parsed is None:
            raise ValueError(f'"{text}" is no path; write ALGORITHM.KEY or config.KEY')
        return cls(frozenset(parsed["algorithms"].split("|")), parsed["label"], parsed["keys"])


def places(
    config: ExperimentConfig, data: dict[str, Any], path: ConfigPath
) -> Iterator[tuple[Algorithm | None, dict[str, Any]]]:
    """Yields what a path means: each entry with its part of the config's plain data, or None with all of it."""
    if path.algorithms == {"config"}:
        yield None, data
        return
    for entry, holder in zip(config.entries, [*data["baselines"], *data["algorithms"]], strict=True):
        named = entry.algorithm in path.algorithms
        named |= "*" in path.algorithms and path.keys.partition(".")[0] in type(entry).model_fields
        if named and path.label in (None, entry.name) and path.keys not in entry.ignored:
            yield entry, holder


def with_values(config: ExperimentConfig, values: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """(the plain data of a config with these values at their paths, the paths that meant something in it). The other
    parts of a budget share the rest in the same proportions as before, and entries keep their names."""
    data, met = config.resolved(), set[str]()
    for text, value in values.items():
        path = ConfigPath.of(text)
        for entry, holder in places(config, data, path):
            if entry and entry.swept is None:
                holder["label"] = entry.name
            holder.update(with_parameter(dict(holder), path.keys, value, type(entry) if entry else None))
            met.add(text)
    return data, met

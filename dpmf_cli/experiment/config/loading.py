"""Reads configs from files and manifests, with their plugins; reduces them; makes the schema for editors.

A config that the command line reduces gets a name that says what was changed: `friedman_fig3a` on ML-100K, with one
fold and one run, becomes `friedman_fig3a.ml-100k.held-out-1.runs-1`. So nobody takes its figures for those of the
complete experiment, and that experiment's folder does not change.
"""

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmf_cli.algorithms.plugins import plugin, plugin_names
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config.documents import HELD_OUT, MARK, RUNS, Document, read_whole
from dpmf_cli.experiment.config.keys import ExperimentKeys
from dpmf_cli.experiment.config.mistakes import mistakes
from dpmf_cli.experiment.config.model import ExperimentConfig


def load_config(path: Path) -> ExperimentConfig:
    """Reads and validates a config and what it extends. Raises DpmfError with the place and fix of every mistake."""
    return validated(read_whole(path))


def validated(document: Document) -> ExperimentConfig:
    """Validates a config that was read. Raises DpmfError as `load_config` does."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", document.path.stem).strip("-.")
    document.data.setdefault("name", stem or "experiment")
    model = ExperimentConfig.knowing(_named_plugins(document))
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        registries = {"baselines": model.known_baselines, "algorithms": model.known_private}
        details = error.errors(include_url=False)
        raise DpmfError("\n".join(mistakes(document, details, registries))) from None


def config_of(data: dict[str, Any]) -> ExperimentConfig:
    """Validates a resolved config, with the plugins that it names. Raises DpmfError if a plugin is missing, and
    pydantic's ValidationError for data that are no config."""
    names = plugin_names(data)
    return ExperimentConfig.knowing([plugin(name) for name in names]).model_validate(data)


def _named_plugins(document: Document) -> list[type[Algorithm]]:
    """Returns the plugins that a file names. The model refuses values that are no names at all."""
    found = []
    for index, name in enumerate(plugin_names(document.data)):
        try:
            found.append(plugin(name))
        except DpmfError as error:
            place = document.place_of(("plugins", index), key=False)
            raise DpmfError(f"{place}: plugins[{index}]: {error}") from None
    return found


def reduced(
    config: ExperimentConfig,
    *,
    dataset: str | None = None,
    held_out: int | None = None,
    runs: int | None = None,
) -> ExperimentConfig:
    """Returns `config` on another data set (by its key), with fewer folds held out, or with fewer runs.

    Returns `config` itself if nothing changes. Raises `DpmfError` if the changed config is not valid.
    """
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
        raise DpmfError(f"{config.name} with {said}: {first['msg']}") from None


def flags(dataset: str | None, held_out: int | None, runs: int | None) -> list[str]:
    """Returns the options of the command line that ask for this reduction."""
    asked = (("--dataset", dataset), ("--held-out", held_out), ("--runs", runs))
    return [word for flag, value in asked if value is not None for word in (flag, str(value))]


def file_schema(model: type[ExperimentKeys]) -> dict[str, Any]:
    """Returns the schema of a file with these keys. It accepts more than the model: a file that extends another may
    leave out what it inherits, or remove it with null, and an entry may get its keys from `parameters`."""
    schema = model.model_json_schema()
    for part in schema["$defs"].values():
        if "required" in part:
            part["required"] = [key for key in part["required"] if key == "algorithm"]
    needed = [key for key in schema.pop("required") if key != "name"]
    properties = {key: _or_null(value) for key, value in schema["properties"].items()}
    return {**schema, "properties": properties, "anyOf": [{"required": needed}, {"required": ["extends"]}]}


def _or_null(value: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {
        key: value.pop(key) for key in ("title", "description", "default") if key in value
    }
    return {**said, "anyOf": [*value.get("anyOf", [value]), {"type": "null"}]}

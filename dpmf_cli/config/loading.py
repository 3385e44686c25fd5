"""Reads configs from files and from manifests, with the plugins that they name."""

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmf_cli.algorithms.plugins import plugin, plugin_names
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.config.errors import mistakes
from dpmf_cli.config.extends import read_whole
from dpmf_cli.config.model import ExperimentConfig
from dpmf_cli.config.yaml_positions import Document
from dpmf_cli.errors import DpmfError


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

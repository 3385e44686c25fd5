"""Shipped configs under the settings of a space."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmf_cli.config import ExperimentConfig, config_of, load_config
from dpmf_cli.config.paths import with_values
from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.space import OnData, Setting, Space

Configs = dict[str, ExperimentConfig]
"""Shipped configs under one setting, by their names."""


def shipped(configs: Path, on: OnData, data: str) -> Configs:
    """Returns the configs of a space on one data set, with its folds and runs.

    Raises DpmfError for a config of another data set.
    """
    found = {}
    for name in on.configs:
        config = load_config(configs / f"{name}.yaml")
        if config.dataset.key != data:
            raise DpmfError(f"{configs / name}.yaml: has the data set {config.dataset.key}, not {data}")
        cut = {"held_out": min(on.folds, config.folds), "runs": on.runs}
        found[name] = _of(config, {**config.resolved(), **cut}, str(configs / f"{name}.yaml"))
    return found


def with_settings(space: Space, settings: Iterable[Setting], configs: Configs) -> list[Configs]:
    """Returns these configs under each setting. Raises DpmfError for values that make an invalid config."""
    found = []
    for setting in settings:
        values = _values(space, setting)
        under = {}
        for name, config in configs.items():
            data, met = with_values(config, values)
            under[name] = _of(config, data, f"{space.file}: {space.named(setting)}") if met else config
        found.append(under)
    return found


def _values(space: Space, setting: Setting) -> dict[str, Any]:
    """Returns the values of a setting by their paths."""
    chosen = (choice.values[at] for choice, at in zip(space.open, setting, strict=True))
    return {path: value for each in chosen for path, value in each.set.items()}


def _of(config: ExperimentConfig, data: dict[str, Any], what: str) -> ExperimentConfig:
    try:
        return config_of(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DpmfError(f"{what}: makes config {config.name} invalid: {place}: {first['msg']}") from None


def distinct(explored: Sequence[Configs]) -> list[ExperimentConfig]:
    """Returns each distinct config of all settings once."""
    return list({config.hash: config for under in explored for config in under.values()}.values())

"""Paths into configs: `config.folds`, `isgd|psgd.effects.beta_m`, `psgd[q_max 1].item_norm`, `*.factors`.

Before the first dot stand the keys of algorithms, with a label where only the entry of that name is meant; `*` is
every entry that has the key, `config` the config itself. An entry that has no use for a key is not meant.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.config.entries import with_parameter
from dpmf_cli.config.model import ExperimentConfig

_PATH = re.compile(r"(?P<algorithms>[^.\[]+)(\[(?P<label>.+)\])?\.(?P<keys>.+)")


@dataclass(frozen=True)
class ConfigPath:
    """A path that was read. `keys` are those behind the entry, or the config, joined by dots."""

    algorithms: frozenset[str]
    label: str | None
    keys: str

    @classmethod
    def of(cls, text: str) -> "ConfigPath":
        """Raises ValueError for what is no path."""
        parsed = _PATH.fullmatch(text)
        if parsed is None:
            raise ValueError(f'"{text}" is no path; write ALGORITHM.KEY or config.KEY')
        return cls(frozenset(parsed["algorithms"].split("|")), parsed["label"], parsed["keys"])

    @property
    def of_config(self) -> bool:
        return self.algorithms == {"config"}

    def means(self, entry: Algorithm) -> bool:
        """Whether it goes into that entry."""
        named = entry.algorithm in self.algorithms
        named |= "*" in self.algorithms and self.keys.partition(".")[0] in type(entry).model_fields
        return named and self.label in (None, entry.name) and self.keys not in entry.ignored


def places(
    config: ExperimentConfig, data: dict[str, Any], path: ConfigPath
) -> Iterator[tuple[Algorithm | None, dict[str, Any]]]:
    """What a path goes into: each entry with its part of the config's plain data, or no entry with all of it."""
    if path.of_config:
        yield None, data
        return
    for entry, holder in zip(config.entries, [*data["baselines"], *data["algorithms"]], strict=True):
        if path.means(entry):
            yield entry, holder


def with_values(config: ExperimentConfig, values: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The plain data of a config with these values, by their paths, and the paths that met something in it.

    Of a budget the other parts share what is left, in the proportions that they had. Entries keep their names.
    """
    data, met = config.resolved(), set[str]()
    for text, value in values.items():
        path = ConfigPath.of(text)
        for entry, holder in places(config, data, path):
            if entry and entry.swept is None:
                holder["label"] = entry.name
            holder.update(with_parameter(dict(holder), path.keys, value, type(entry) if entry else None))
            met.add(text)
    return data, met

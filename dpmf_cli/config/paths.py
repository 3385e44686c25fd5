"""Paths into configs: `config.folds`, `isgd|psgd.effects.beta_m`, `psgd[q_max 1].item_norm`, `*.factors`.

Before the first dot stand the keys of algorithms, with a label where only the entry of that name is meant; `*` is
every entry that has the key, `config` the config itself.
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
        return named and self.label in (None, entry.name)


def with_values(config: ExperimentConfig, values: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The plain data of a config with these values, by their paths, and the paths that met something in it.

    Of a budget the other parts share what is left, in the proportions that they had. Entries keep their names.
    """
    data, met = config.resolved(), set[str]()
    for path, value in values.items():
        for holder, key, known in _places(config, data, ConfigPath.of(path)):
            holder.update(with_parameter(dict(holder), key, value, known))
            met.add(path)
    return data, met


def _places(
    config: ExperimentConfig, data: dict[str, Any], path: ConfigPath
) -> Iterator[tuple[dict[str, Any], str, type[Algorithm] | None]]:
    """The mappings of a config's data that a path goes into, with what is behind them of the path."""
    if path.of_config:
        yield data, path.keys, None
        return
    for entry, holder in zip(config.entries, [*data["baselines"], *data["algorithms"]], strict=True):
        if path.means(entry):
            if entry.swept is None:
                holder["label"] = entry.name
            yield holder, path.keys, type(entry)

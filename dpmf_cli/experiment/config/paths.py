"""Paths into configs: `config.folds`, `isgd|psgd.effects.beta_m`, `psgd[q_max 1].item_norm`, `*.factors`.

The part before the first dot names algorithms by their keys; a label in brackets means only the entry of that name.
`*` means every entry that has the key, and `config` the config itself. A path never means an entry that ignores
the key.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.experiment.config.entries import with_parameter
from dpmf_cli.experiment.config.model import ExperimentConfig

_PATH = re.compile(r"(?P<algorithms>[^.\[]+)(\[(?P<label>.+)\])?\.(?P<keys>.+)")


@dataclass(frozen=True)
class ConfigPath:
    """A parsed path. `keys` are the keys behind the first dot, joined by dots."""

    algorithms: frozenset[str]
    label: str | None
    keys: str

    @classmethod
    def of(cls, text: str) -> "ConfigPath":
        """Parses a path. Raises ValueError for a text that is no path."""
        parsed = _PATH.fullmatch(text)
        if parsed is None:
            raise ValueError(f'"{text}" is no path; write ALGORITHM.KEY or config.KEY')
        return cls(frozenset(parsed["algorithms"].split("|")), parsed["label"], parsed["keys"])

    def means(self, entry: Algorithm) -> bool:
        """Whether the path means that entry."""
        named = entry.algorithm in self.algorithms
        named |= "*" in self.algorithms and self.keys.partition(".")[0] in type(entry).model_fields
        return named and self.label in (None, entry.name) and self.keys not in entry.ignored


def places(
    config: ExperimentConfig, data: dict[str, Any], path: ConfigPath
) -> Iterator[tuple[Algorithm | None, dict[str, Any]]]:
    """Yields what a path means: each entry with its part of the config's plain data, or None with all of it."""
    if path.algorithms == {"config"}:
        yield None, data
        return
    for entry, holder in zip(config.entries, [*data["baselines"], *data["algorithms"]], strict=True):
        if path.means(entry):
            yield entry, holder


def with_values(config: ExperimentConfig, values: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Returns (the plain data of a config with these values at their paths, the paths that meant something in it).

    The other parts of a budget share the rest in the same proportions as before. Entries keep their names.
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

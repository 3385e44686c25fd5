"""Entries of a config before they are validated: sweeps written out, and what they inherit from the experiment."""

from collections.abc import Mapping
from typing import Any

from dpmf_cli.models import tagged

INHERITED = ("neighbours", "mode", "effects", "delta")
"""Keys of the experiment that an algorithm's entry may set for itself and otherwise inherits."""


def expand_sweep(entry: Any) -> list[Any]:
    """An entry with `sweep: {parameter: [values]}` as one entry for each value, labelled by it."""
    sweep = entry.get("sweep") if isinstance(entry, dict) else None
    if not (
        isinstance(sweep, dict) and len(sweep) == 1 and all(isinstance(v, list) and v for v in sweep.values())
    ):
        return [entry]  # as it stands: if it has a sweep, Algorithm refuses its shape
    ((parameter, values),) = sweep.items()
    rest = {key: value for key, value in entry.items() if key != "sweep"}
    name = rest.get("label") or rest.get("algorithm")
    return [
        {
            **rest,
            parameter: value,
            "swept": parameter,
            "swept_label": rest.get("label"),
            "label": f"{name}, {parameter} {value}",
        }
        for value in values
    ]


def with_inherited(entry: Any, experiment: dict[str, Any], registry: Mapping[str, type[Any]]) -> Any:
    entry = tagged(entry)
    if not isinstance(entry, dict):
        return entry
    algorithm = entry.get("algorithm")
    if not isinstance(algorithm, str) or algorithm not in registry:
        return entry
    known = registry[algorithm].model_fields
    inherited = {key: experiment[key] for key in INHERITED if key in known and key in experiment}
    return {**inherited, **entry}

"""Entries of a config: what they may be, and, before that is validated, sweeps written out and what they inherit."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.strict_model import tagged

Registry = Mapping[str, type[Any]]
"""Algorithms by the names that a config has for them."""

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


def with_inherited(entry: Any, experiment: dict[str, Any], registry: Registry) -> Any:
    entry = tagged(entry)
    if not isinstance(entry, dict):
        return entry
    algorithm = entry.get("algorithm")
    if not isinstance(algorithm, str) or algorithm not in registry:
        return entry
    known = registry[algorithm].model_fields
    inherited = {key: experiment[key] for key in INHERITED if key in known and key in experiment}
    return {**inherited, **entry}


def private_entry(known: Registry) -> Any:
    """One of the algorithms, told by its name."""
    return Annotated[reduce(or_, known.values()), Field(discriminator="algorithm")]


def baseline_entry(known: Registry) -> Any:
    """One of the baselines, told by its name, which may stand alone."""
    one = reduce(or_, known.values())
    alone = BeforeValidator(tagged, json_schema_input_type=Literal[tuple(known)] | one)
    return Annotated[one, Field(discriminator="algorithm"), alone]


if TYPE_CHECKING:
    PrivateEntry = PrivateAlgorithm
    BaselineEntry = Algorithm
else:
    PrivateEntry, BaselineEntry = private_entry(PRIVATE), baseline_entry(BASELINES)

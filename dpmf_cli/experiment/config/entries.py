"""The entries of a config: what one inherits, and how one that is written becomes several before validation."""

import math
from collections.abc import Mapping
from functools import reduce
from itertools import product
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.shared.budget import ON_OWN_RATINGS, Fractions
from dpmf_cli.core.strict_model import StrictModel, in_words, tagged

Registry = Mapping[str, type[Any]]
"""Algorithms, by their keys in a config."""

INHERITED = ("neighbours", "mode", "effects", "delta")
"""Keys of the experiment that an algorithm's entry may set for itself and otherwise inherits."""

BASELINES_OF_OWN = ["ga", "ua", "ia", "ge", "als"]
"""The baselines of an experiment on a user's own ratings, if the config names none."""

_NO_PARAMETERS = {"algorithm", "label", "clip_predictions"}
"""Keys of an entry that are not parameters of its algorithm."""

LISTED = ("neighbours", "mode")
"""Keys that may hold a list. The entry then becomes one entry for each combination."""


def entry_class(entry: Any, registry: Registry) -> type[Any] | None:
    """The algorithm that an entry of a config names, or None if it names none that is known."""
    name = entry.get("algorithm") if isinstance(entry, dict) else None
    return registry.get(name) if isinstance(name, str) else None


def written_out(entry: Any, experiment: dict[str, Any], registry: Registry) -> list[Any]:
    """An entry of a config, with what it inherits, written out: one entry for each combination of its `neighbours`
    and `mode`, and of these one for each value of its sweep."""
    entry = with_inherited(entry, experiment, registry)
    known = entry_class(entry, registry)
    return [each for one in _combinations(entry, known) for each in expand_sweep(one, known)]


def with_inherited(entry: Any, experiment: dict[str, Any], registry: Registry) -> Any:
    """An entry with what it does not set itself: from the experiment's `parameters`, then from its other keys."""
    entry = tagged(entry)
    known = entry_class(entry, registry)
    if known is None:
        return entry
    inherited = {key: experiment[key] for key in INHERITED if key in known.model_fields and key in experiment}
    parameters = experiment.get("parameters")
    shared = parameters.get(entry["algorithm"]) if isinstance(parameters, dict) else None
    given = {**inherited, **(shared if isinstance(shared, dict) else {}), **entry}
    return {**given, **on_own_ratings(given, known)} if is_own(experiment.get("dataset")) else given


def is_own(dataset: Any) -> bool:
    return isinstance(dataset, dict) and dataset.get("kind") == "csv"


def on_own_ratings(entry: dict[str, Any], known: type[Any]) -> dict[str, Any]:
    """What an entry has by default on a user's own ratings, for which no paper chose parameters.

    A baseline without parameters chooses them itself. A private method's averages follow the public rule, unless the
    entry has `effects`.
    """
    fields = known.model_fields
    if "tuned" in fields:
        return {"tuned": True} if entry.keys() <= _NO_PARAMETERS else {}
    ruled = issubclass(known, PrivateAlgorithm) and "effects" in fields and "effects" not in entry
    return {"effects": dict(ON_OWN_RATINGS)} if ruled else {}


def _combinations(entry: Any, known: type[Algorithm] | None) -> list[Any]:
    """An entry for each combination of its lists of `neighbours` or `mode`, labelled by what differs."""
    if known is None:
        return [entry]
    of_entry = [key for key in LISTED if key in known.model_fields]
    lists = {key: entry[key] for key in of_entry if is_list_of_choices(entry.get(key))}
    entries = [{**entry, **dict(zip(lists, choice, strict=True))} for choice in product(*lists.values())]
    differing = [key for key, values in lists.items() if len(values) > 1]
    if differing:
        for each in entries:
            try:
                name = each.get("label") or known.model_validate({**each, "sweep": None}).default_name
            except ValidationError:  # refused later
                name = known.title
            if isinstance(name, str):
                each["label"] = ", ".join((name, *(each[key] for key in differing)))
    return entries


def is_list_of_choices(value: Any) -> bool:
    """Whether a value is a list of different words; the entry's own validation refuses other lists."""
    words = isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)
    return words and len(set(value)) == len(value)


def expand_sweep(entry: Any, known: type[Algorithm] | None) -> list[Any]:
    """An entry for each value of `sweep: {parameter: [values]}`, labelled by the value."""
    sweep = entry.get("sweep") if isinstance(entry, dict) else None
    if not (
        isinstance(sweep, dict) and len(sweep) == 1 and all(isinstance(v, list) and v for v in sweep.values())
    ):
        return [entry]  # unchanged: if it has a sweep, Algorithm refuses its shape
    ((parameter, values),) = sweep.items()
    rest = {key: value for key, value in entry.items() if key != "sweep"}
    name = rest.get("label") or rest.get("algorithm")
    swept = {"swept": parameter, "swept_label": rest.get("label")}
    return [
        {**with_parameter(rest, parameter, value, known), **swept, "label": f"{name}, {parameter} {value}"}
        for value in values
    ]


def with_parameter(
    entry: dict[str, Any], parameter: str, value: Any, known: type[Algorithm] | None
) -> dict[str, Any]:
    """An entry with one parameter set, or one `key.part` of it; the other parts of a budget share the rest in the
    same proportions as before."""
    key, _, part = parameter.partition(".")
    if not part:
        return {**entry, key: value}
    field = known.model_fields.get(key) if known else None
    default = field.default.model_dump() if field and isinstance(field.default, StrictModel) else {}
    whole = {**default, **own} if isinstance(own := entry.get(key, {}), dict) else own
    if not isinstance(whole, dict):
        return entry
    if field and isinstance(field.default, Fractions) and _is_fraction(value):
        left = math.fsum(share for name, share in whole.items() if name != part and _is_fraction(share))
        for name, share in whole.items():
            whole[name] = share * (1 - value) / left if _is_fraction(share) else share
    return {**entry, key: {**whole, part: value}}


def with_parameters(
    entry: Algorithm, values: Mapping[str, Any], *, exclude_unset: bool = False
) -> dict[str, Any]:
    """An entry as plain data, with these parameters set one after the other, and without a sweep."""
    sweep = {"sweep", "swept", "swept_label"}
    plain = entry.model_dump(mode="json", exclude=sweep, exclude_unset=exclude_unset)
    for key, value in values.items():
        plain = with_parameter(plain, key, value, type(entry))
    return plain


def refused(entry: Algorithm, key: str, value: Any) -> str:
    """Why an entry cannot have this value of a parameter, whatever its others are; "" if it can."""
    try:
        type(entry).model_validate(with_parameters(entry, {key: value}))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if detail["type"] == "unknown_key" or detail["loc"] == tuple(key.split(".")):
                return in_words(detail)
    return ""


def _is_fraction(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < 1


def entry_of(known: Registry) -> Any:
    """The type of an entry: a mapping with the key of one of these algorithms, or that key alone."""
    one = reduce(or_, known.values())
    alone = BeforeValidator(tagged, json_schema_input_type=Literal[tuple(known)] | one)
    return Annotated[one, Field(discriminator="algorithm"), alone]


if TYPE_CHECKING:
    PrivateEntry = PrivateAlgorithm
    BaselineEntry = Algorithm
else:
    PrivateEntry, BaselineEntry = entry_of(PRIVATE), entry_of(BASELINES)

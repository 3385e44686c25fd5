"""The entries that `dpmf audit --all` audits: every algorithm of the registry, in all of its variants."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

from pydantic import ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.privacy.neighbours import Mode, Neighbours


def registered(key: str | None = None) -> Iterator[PrivateAlgorithm]:
    """Yields every algorithm of the registry, or that of `key`, for all neighbours, modes and laws of noise.

    The label of each says which variant it is.
    """
    for name, entry in PRIVATE.items():
        if key is not None and name != key:
            continue
        for neighbours, mode in sorted(entry.variants):
            for chosen in product(*entry.choices(mode)):
                more = {field: value for each in chosen for field, value in each.items()}
                with suppress(ValidationError):  # this variant lacks the option
                    yield _made(entry, neighbours, mode, {**entry.small_in(mode), **more})


def of_plugin(entry: type[PrivateAlgorithm]) -> Iterator[PrivateAlgorithm]:
    """Yields an algorithm from outside the package, for all neighbours and modes that it offers.

    Raises DpmfError if it has a parameter without a default.
    """
    for neighbours, mode in sorted(entry.variants):
        try:
            yield _made(entry, neighbours, mode, {})
        except ValidationError as error:
            where = ", ".join(str(part) for part in error.errors()[0]["loc"])
            raise DpmfError(
                f"{entry.key()}: needs the parameter `{where}`, which has no default; audit a config that sets it"
            ) from None


def _made(
    entry: type[PrivateAlgorithm], neighbours: Neighbours, mode: Mode, parameters: dict[str, Any]
) -> PrivateAlgorithm:
    said = [f"of {parameters['base']['algorithm']}"] if "base" in parameters else []
    said += [parameters[field] for field in ("noise", "tuning", "mechanism") if field in parameters]
    said += [f"samples of {parameters['sampling_rate']:g}"] if "sampling_rate" in parameters else []
    label = ", ".join((entry.key(), *said, neighbours.value, mode.value))
    return entry.model_validate(
        {"algorithm": entry.key(), "neighbours": neighbours, "mode": mode, "label": label, **parameters}
    )

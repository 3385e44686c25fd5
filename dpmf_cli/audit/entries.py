"""The entries that `dpmf audit --all` audits: every algorithm of the registry, in all of its variants."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any, get_args

from pydantic import ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.theta import NoiseKind
from dpmf_cli.algorithms.zhang2018.personalized import PrivateBase
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.neighbours import Mode, Neighbours

SMALL: dict[str, dict[str, Any]] = {
    "isgd": {"epochs": 3},
    "isgd_local": {"epochs": 3},
    "dp_pmf": {"epochs": 3, "noisy_epochs": 3, "learning_rate": 0.1},
    "personalized": {
        "epsilon_conservative": 0.5,
        "epsilon_moderate": 1,
        "epsilon_liberal": 2,
        "threshold": 1,
    },
    "dpps_mf": {"iterations": 5},
    "dpps_pnbm": {"iterations": 5},
    "pg_mf": {"iterations": 3},
    "dpam": {"iterations": 2, "steps": 3},
}
"""Parameters that give fewer steps than the default, for methods whose later steps repeat the first ones.

The published learning rate of DP-PMF is meant for 10⁵ ratings, and diverges on a few."""

MOST_RATINGS = 4
"""The bound on a user's ratings, for methods that have one. Users of small pairs have more ratings, and fewer."""


def registered(key: str | None = None) -> Iterator[PrivateAlgorithm]:
    """Yields every algorithm of the registry, or that of `key`, for all neighbours, modes and laws of noise.

    The label of each says which variant it is.
    """
    for name, entry in PRIVATE.items():
        if key is not None and name != key:
            continue
        for neighbours, mode in sorted(entry.variants):
            offering = entry.offering(neighbours, mode)
            for more in _options(name, offering, mode):
                with suppress(ValidationError):  # this variant lacks the option
                    yield _made(name, neighbours, mode, {**_small(name, offering), **more})


def of_plugin(entry: type[PrivateAlgorithm]) -> Iterator[PrivateAlgorithm]:
    """Yields an algorithm from outside the package, for all neighbours and modes that it offers.

    Raises DpmfError if it has a parameter without a default.
    """
    (key,) = get_args(entry.model_fields["algorithm"].annotation)
    for neighbours, mode in sorted(entry.offered()):
        label = f"{key}, {neighbours.value}, {mode.value}"
        data = {"algorithm": key, "neighbours": neighbours, "mode": mode, "label": label}
        try:
            yield entry.model_validate(data)
        except ValidationError as error:
            where = ", ".join(str(part) for part in error.errors()[0]["loc"])
            raise DpmfError(
                f"{key}: needs the parameter `{where}`, which has no default; audit a config that sets it"
            ) from None


def _small(key: str, offering: type[PrivateAlgorithm]) -> dict[str, Any]:
    """Returns the small parameters that a variant has."""
    return {
        field: value
        for field, value in {"most_ratings": MOST_RATINGS, **SMALL.get(key, {})}.items()
        if field in offering.model_fields and field not in offering.of_the_other
    }


def _made(key: str, neighbours: Neighbours, mode: Mode, parameters: dict[str, Any]) -> PrivateAlgorithm:
    said = [f"of {parameters['base']['algorithm']}"] if "base" in parameters else []
    said += [parameters[field] for field in ("noise", "tuning", "mechanism") if field in parameters]
    said += [f"samples of {parameters['sampling_rate']:g}"] if "sampling_rate" in parameters else []
    label = ", ".join((key, *said, neighbours.value, mode.value))
    data = {"algorithm": key, "neighbours": neighbours, "mode": mode, "label": label, **parameters}
    made: PrivateAlgorithm = PRIVATE[key].model_validate(data)
    return made


def _options(key: str, entry: type[PrivateAlgorithm], mode: Mode) -> Iterator[dict[str, Any]]:
    """Yields the choices of parameters that change the releases: laws of noise, samples, refitting, bases."""
    if key == "personalized":
        for base in get_args(PrivateBase):
            (name,) = get_args(base.model_fields["algorithm"].annotation)
            if (Neighbours.UNBOUNDED, mode) in base.variants:
                small = _small(name, base.offering(Neighbours.UNBOUNDED, mode))
                yield {"base": {"algorithm": name, **small}}
        return
    laws: list[dict[str, Any]] = [{}]
    if "noise" in entry.model_fields and "noise" not in entry.of_the_other:
        laws = [{"noise": kind.value} for kind in NoiseKind]
    elif key == "local_mf":
        laws = [{"mechanism": kind.value} for kind in Mechanism]
    samples: list[dict[str, Any]] = [{}]
    if "sampling_rate" in entry.model_fields:
        samples.append({"sampling_rate": 0.3})
    refitted: list[dict[str, Any]] = [{}]
    if "tuning" in entry.model_fields:
        refitted.append({"tuning": "refitted", "validation": 0.2})
    for law, sample, tuned in product(laws, samples, refitted):
        yield {**law, **sample, **tuned}

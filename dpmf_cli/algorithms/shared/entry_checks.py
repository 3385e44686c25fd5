"""What an entry of a config must not ask for: parameters of the other mode, what it or its base would ignore, what no
accountant certifies.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.subsampling import LEAST_DELTA

if TYPE_CHECKING:  # which calls what stands here
    from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm


def refuse_fields_of_the_other_mode(entry: "PrivateAlgorithm", fields: Iterable[str]) -> None:
    """Raises PydanticCustomError for the first of `fields`, which only the other mode has a use for, that is set.

    But for defaults, which a resolved config spells out.
    """
    other = Mode.CORRECTED if entry.mode is Mode.PUBLISHED else Mode.PUBLISHED
    for field in sorted(entry.model_fields_set.intersection(fields)):
        if getattr(entry, field) != type(entry).model_fields[field].default:
            raise PydanticCustomError(
                "other_mode",
                "{mode} mode of {algorithm} would ignore it; remove it, or set `mode: {other}`",
                {
                    "other": other.value,
                    "mode": entry.mode.value,
                    "algorithm": entry.algorithm,
                    "path": (field,),
                },
            )


def refuse_what_is_ignored(entry: "PrivateAlgorithm") -> None:
    """Raises PydanticCustomError for the first key that the entry `ignores` and that is no default."""
    for key in sorted(entry.ignored):
        holder = entry.effects if key.startswith("effects.") else entry
        name = key.removeprefix("effects.")
        if getattr(holder, name) != type(holder).model_fields[name].default:
            raise PydanticCustomError(
                "ignored",
                "{algorithm} with neighbours {neighbours} has no use for it; remove it",
                {
                    "algorithm": entry.algorithm,
                    "neighbours": entry.neighbours.value,
                    "path": tuple(key.split(".")),
                },
            )


def refuse_what_a_base_ignores(base: "Algorithm") -> None:
    """Raises PydanticCustomError where an entry's `base` has a key that only the entry's own is looked at of."""
    for key in ("label", "clip_predictions", "by_epsilon"):
        if getattr(base, key, None):
            raise PydanticCustomError("base", "set `{key}` on the entry, not on its `base`", {"key": key})


def refuse_steps_that_diverge(rate: float, key: str, ridge: float) -> None:
    """Raises PydanticCustomError where S ← S − rate·(gradient + ridge·S) may overshoot: ridge is the entry's `key`.

    Up to rate·ridge = 1 the second part only shrinks S, and clipped gradients and their noise cannot carry it away.
    Beyond, S may leave what single precision holds: then errors are NaN, with some ratings and not with others.
    """
    if rate * ridge > 1:
        raise PydanticCustomError(
            "diverges",
            "at steps of {rate} it may be {most} at most, or the descent diverges",
            {"rate": f"{rate:g}", "most": f"{1 / rate:g}", "path": (key,)},
        )


def refuse_a_delta_beyond_the_accountant(sampling_rate: float, delta: float) -> None:
    """Raises PydanticCustomError where sampled Gaussian steps have a δ too small to certify; 0 is none at all."""
    if sampling_rate < 1 and 0 < delta < LEAST_DELTA:
        raise PydanticCustomError(
            "least_delta",
            "with a sampling_rate below 1 no δ below {least} can be certified",
            {"least": LEAST_DELTA, "path": ("delta",)},
        )

"""Checks of an entry of a config. They refuse parameters of the other mode, keys that the entry or its base would
ignore, steps that may diverge, and a δ that no accountant certifies.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.subsampling import LEAST_DELTA

if TYPE_CHECKING:  # `base` imports this module
    from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm


def refuse_fields_of_the_other_mode(entry: "PrivateAlgorithm", fields: Iterable[str]) -> None:
    """Raises PydanticCustomError if one of `fields` is set: only the other mode uses them.

    Default values are allowed, because a resolved config spells them out.
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
    """Raises PydanticCustomError for the first of the entry's `ignored` keys that does not have its default."""
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
    """Raises PydanticCustomError if an entry's `base` sets a key that is only read from the entry itself."""
    for key in ("label", "clip_predictions", "by_epsilon"):
        if getattr(base, key, None):
            raise PydanticCustomError("base", "set `{key}` on the entry, not on its `base`", {"key": key})


def refuse_steps_that_diverge(rate: float, key: str, ridge: float) -> None:
    """Raises PydanticCustomError if S ← S − rate·(gradient + ridge·S) may overshoot. `ridge` is the entry's `key`.

    Up to rate·ridge = 1 the ridge term only shrinks S, and clipped gradients and their noise cannot carry S away.
    Beyond that, S may overflow single precision. Errors are then NaN, for some data sets and not for others.
    """
    if rate * ridge > 1:
        raise PydanticCustomError(
            "diverges",
            "it must be at most {most} with steps of {rate}, or the descent diverges",
            {"rate": f"{rate:g}", "most": f"{1 / rate:g}", "path": (key,)},
        )


def refuse_a_delta_beyond_the_accountant(sampling_rate: float, delta: float) -> None:
    """Raises PydanticCustomError if δ is too small to certify for sampled Gaussian steps. δ = 0 means pure ε-DP."""
    if sampling_rate < 1 and 0 < delta < LEAST_DELTA:
        raise PydanticCustomError(
            "least_delta",
            "with a sampling_rate below 1 no δ below {least} can be certified",
            {"least": LEAST_DELTA, "path": ("delta",)},
        )

"""A compiled function for tests, with another that it calls and a constant; and a cache for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, no_type_check

import numpy as np

from dpmf_cli.core.compiled import machine_code
from dpmf_cli.core.compiled.machine_code import compiled

STEP = np.float64(0.5)
VALUES = np.arange(4.0)


@compiled()
@no_type_check
def moved(value):
    return value + STEP


def doubled(values: np.ndarray, out: np.ndarray) -> None:
    for x in range(len(values)):
        out[x] = 2 * moved(values[x])


def example(kinds: Any) -> dict[str, np.ndarray]:
    return {"values": VALUES, "out": np.zeros(4)}


def fresh() -> Any:
    """`doubled` as in a new process: none of it is compiled or loaded yet."""
    return compiled(example)(doubled)


def result(dispatcher: Callable[..., None]) -> list[float]:
    out = np.zeros(4)
    dispatcher(VALUES, out)
    return out.tolist()


RIGHT = [1.0, 3.0, 5.0, 7.0]


def entry() -> Path:
    """The one entry of `doubled`."""
    (path,) = (path for path in machine_code.entries() if ".doubled-" in path.name)
    return path


def was_loaded(dispatcher: Any) -> bool:
    """Whether its machine code came from the cache."""
    return bool(dispatcher.stats.cache_hits)

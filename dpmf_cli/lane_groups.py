"""The ε grid in lanes: its models in groups of at most 16, side by side in the vectors of a kernel."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

MAXIMUM_WIDTH = 16
"""With 32 lanes (four AVX2 registers a value) a visit spills registers and costs more a model than with 16."""


def padded_width(count: int) -> int:
    """Lanes to allocate for a group of `count` models: a multiple of 8 (one AVX2 register), at most 16."""
    return min(MAXIMUM_WIDTH, -(-count // 8) * 8)


def padded_grid(count: int) -> int:
    """Lanes allocated for a grid of `count` models, all its groups together."""
    return sum(padded_width(group.stop - group.start) for group in groups(count))


def groups(count: int) -> list[slice]:
    """The grid cut into groups of at most `MAXIMUM_WIDTH` models, each fitted in one pass of a kernel."""
    return [slice(start, min(start + MAXIMUM_WIDTH, count)) for start in range(0, count, MAXIMUM_WIDTH)]


def pad(values: np.ndarray, width: int) -> np.ndarray:
    """`values` (..., E) as contiguous float32 (..., width): the last model is repeated in the unused lanes."""
    missing = width - values.shape[-1]
    edges = [(0, 0)] * (values.ndim - 1) + [(0, missing)]
    return np.ascontiguousarray(np.pad(values.astype(np.float32), edges, mode="edge"))


G = TypeVar("G")
G_co = TypeVar("G_co", covariant=True)
P = ParamSpec("P")


class Grouped(Protocol[G_co]):
    """Models of a whole grid: one G for each group of lanes. A group by itself is `groups` of one."""

    @property
    def groups(self) -> Sequence[G_co]: ...


def on_each_group(kernel: Callable[Concatenate[G, P], None]) -> Callable[Concatenate[Grouped[G], P], None]:
    """Lets a kernel that changes one group of models in place take the models of a whole grid."""

    @wraps(kernel)
    def run(models: Grouped[G], /, *arguments: P.args, **parameters: P.kwargs) -> None:
        for group in models.groups:
            kernel(group, *arguments, **parameters)

    return run

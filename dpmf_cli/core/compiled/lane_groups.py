"""The models of an ε grid in lanes: groups of at most 16 models, side by side in the vectors of a kernel."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

MAXIMUM_WIDTH = 16
"""Most lanes of a group. With 32 lanes (four AVX2 registers for each value), a visit spills registers and costs more
for each model than with 16."""


def padded_width(count: int) -> int:
    """Lanes to allocate for `count` models: one for one, else a multiple of 8 (an AVX2 register), 16 at most."""
    return 1 if count == 1 else min(MAXIMUM_WIDTH, -(-count // 8) * 8)


def padded_grid(count: int) -> int:
    """Lanes allocated for a grid of `count` models, all its groups together."""
    return sum(padded_width(group.stop - group.start) for group in groups(count))


def groups(count: int) -> list[slice]:
    """The grid cut into groups of at most `MAXIMUM_WIDTH` models, each fitted in one pass of a kernel."""
    return [slice(start, min(start + MAXIMUM_WIDTH, count)) for start in range(0, count, MAXIMUM_WIDTH)]


def pad(values: np.ndarray, width: int, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """`values` (..., E) as contiguous (..., width) of `dtype`: the last model is repeated in the unused lanes."""
    missing = width - values.shape[-1]
    edges = [(0, 0)] * (values.ndim - 1) + [(0, missing)]
    return np.ascontiguousarray(np.pad(values.astype(dtype), edges, mode="edge"))


CACHE_LINE = 64
"""Bytes; a vector of sixteen float32 is one line."""


def aligned(shape: tuple[int, ...], dtype: type[np.floating] = np.float32) -> np.ndarray:
    """An uninitialised array of that shape, in which no vector of lanes lies across two cache lines."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    whole = np.empty(size + CACHE_LINE, np.uint8)
    first = -whole.ctypes.data % CACHE_LINE
    return whole[first : first + size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class LaneValues:
    """Numbers that differ between the models of a grid, in groups as kernels take them.

    groups  one (n, width) float32 array for each group of models
    """

    groups: tuple[NDArray[np.float32], ...]

    @classmethod
    def empty(cls, count: int, grid: int) -> Self:
        """Room for `count` numbers of each of `grid` models, which `put` sets."""
        widths = (padded_width(part.stop - part.start) for part in groups(grid))
        return cls(tuple(np.empty((count, width), np.float32) for width in widths))

    @classmethod
    def of_grid(cls, numbers: NDArray[np.floating]) -> Self:
        """The `numbers` (n, E) in groups."""
        values = cls.empty(*numbers.shape)
        values.put(slice(None), numbers)
        return values

    def put(self, rows: slice, numbers: NDArray[np.floating]) -> None:
        """Sets the numbers of `rows`, (n, E), for all models."""
        for part, group in zip(groups(numbers.shape[1]), self.groups, strict=True):
            group[rows] = pad(numbers[:, part], group.shape[1])

    def of(self, part: slice) -> NDArray[np.float32]:
        """(n, width) the numbers of one group of models, which is the `part` of the grid."""
        return np.asarray(self.groups[part.start // MAXIMUM_WIDTH])

    def column(self, index: int) -> NDArray[np.float32]:
        """(n,) the numbers of one model, by its index in the grid."""
        return np.asarray(self.groups[index // MAXIMUM_WIDTH][:, index % MAXIMUM_WIDTH])


G = TypeVar("G")
G_co = TypeVar("G_co", covariant=True)
P = ParamSpec("P")
Found = TypeVar("Found", bound=NDArray[Any] | tuple[NDArray[Any], ...] | None)


class Grouped(Protocol[G_co]):
    """The models of a complete grid: one G for each group of lanes; a single group has itself."""

    @property
    def groups(self) -> Sequence[G_co]: ...


@dataclass(frozen=True)
class LaneGroup:
    """One group of models. A kernel that takes the models of a grid also takes a single group.

    part  the place of these models in the grid
    """

    part: slice

    @property
    def groups(self) -> tuple[Self, ...]:
        return (self,)

    @property
    def lanes(self) -> int:
        return int(self.part.stop - self.part.start)

    @property
    def width(self) -> int:
        """How many lanes are allocated; those beyond the models repeat the last model, or belong to none."""
        return padded_width(self.lanes)

    @property
    def width_of(self) -> tuple[int, ...]:
        """A tuple whose length is the width: kernels read shapes from types."""
        return (0,) * self.width

    def of_grid(self, values: np.ndarray | float, dtype: type[np.floating] = np.float32) -> NDArray[Any]:
        """(…, width) the numbers of these models, of `values` (…, E), or of one number for all models."""
        own = values[..., self.part] if isinstance(values, np.ndarray) else np.full(self.lanes, values)
        return pad(own, self.width, dtype)


def on_each_group(
    function: Callable[Concatenate[G, P], Found],
) -> Callable[Concatenate[Grouped[G], P], Found]:
    """A function of one group of models as one of a complete grid. It changes them in place and returns None, or
    returns arrays (…, lanes), which become (…, E)."""

    @wraps(function)
    def run(models: Grouped[G], /, *arguments: P.args, **parameters: P.kwargs) -> Any:
        found: list[Any] = [function(group, *arguments, **parameters) for group in models.groups]
        if isinstance(found[0], tuple):
            return tuple(np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
        return None if found[0] is None else np.concatenate(found, axis=-1)

    return run

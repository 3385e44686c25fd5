"""Noise for a whole ε grid, and how its unit is drawn. `mechanisms` draw it and `release` applies it.

Noise is drawn once per fit in its *unit* form and scaled for every ε of the grid. If X ~ Laplace(1) then b·X
~ Laplace(b), so each ε has exactly its own distribution. The ε of one fit share the unit draw, which makes a
curve over ε smooth. Every ε is a statement about its own marginal. Only one of a grid's models may ever be
released: two of them give the clean sums by one subtraction. What is released of a model is on that model's own
`grid`: rounding comes after scaling, so that the shared draw costs a single model nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.privacy.grid import FINEST, grid_of, on_grid
from dpmf_cli.privacy.keyed import unit_of_cells

Law = Callable[[tuple[int, ...], np.random.Generator], NDArray[np.float64]]
"""Draws unit noise for numbers of a shape."""


def silence(shape: tuple[int, ...], rng: np.random.Generator | None = None) -> NDArray[np.float64]:
    """No noise."""
    return np.zeros(shape)


@dataclass(frozen=True)
class LaneNoise:
    """Noise for a whole ε grid: element k of ε e is unit[k]·scale[e].

    unit     (...) float64, one draw of the unit distribution per measured number
    scale    (E,) float64, the scale for each ε, in units of the measurement; 0 where ε = inf
    law      what the unit is a draw of, for audits
    rounded  whether what it is added to is rounded to the `grid`: always, but where the sum itself never leaves
    """

    unit: NDArray[np.float64]
    scale: NDArray[np.float64]
    law: Law = silence
    rounded: bool = True

    @classmethod
    def drawn(
        cls,
        law: Law,
        shape: tuple[int, ...],
        rng: np.random.Generator,
        scale: NDArray[np.float64],
        *,
        rounded: bool = True,
    ) -> Self:
        """One draw of `law` for numbers of `shape`."""
        return cls(law(shape, rng), scale, law, rounded)

    @property
    def grid(self) -> NDArray[np.float64]:
        """(E,) what released numbers are multiples of, a power of two for each ε: `privacy.grid`."""
        return grid_of(self.scale) if self.rounded else np.full_like(self.scale, FINEST)

    def added_to(self, values: ArrayLike) -> NDArray[np.float64]:
        """(..., E) `values` plus the noise, on the grid; values (...) common to all ε, or (..., E) of their own."""
        values = np.asarray(values, dtype=np.float64)
        if values.ndim == self.unit.ndim:
            values = values[..., None]
        return on_grid(values + self.unit[..., None] * self.scale, self.grid)

    def of_models(self, lanes: slice) -> Self:
        """The noise of the models `lanes`, from the same unit draw."""
        return replace(self, scale=self.scale[lanes])

    def units(self, first: int, count: int) -> NDArray[np.float64]:
        """(count, …) the unit noise of the numbers from `first` on."""
        return self.unit[first : first + count]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the unit draw."""
        return self.unit.shape


@dataclass(frozen=True)
class LaterNoise:
    """Noise as `LaneNoise` has it, for a kernel alone: its unit is drawn for each group of models that asks for it,
    the same each time, and is not kept.

    law, shape  what the unit is a draw of
    again       the generator of the step, from its beginning
    scale       (E,) float64, the scale for each ε
    """

    law: Law
    shape: tuple[int, ...]
    again: Callable[[], np.random.Generator]
    scale: NDArray[np.float64]

    def of_models(self, lanes: slice) -> LaneNoise:
        """The noise of the models `lanes`, drawn."""
        return LaneNoise.drawn(self.law, self.shape, self.again(), self.scale[lanes])

    @property
    def grid(self) -> NDArray[np.float64]:
        """(E,) what released numbers are multiples of: `privacy.grid`."""
        return grid_of(self.scale)


@dataclass(frozen=True)
class KeyedNoise:
    """Laplace noise for more numbers than can be kept: number c has the unit noise that `keyed` computes from
    (key, c), independent and the same whenever it is asked for.

    key  state of SplitMix64; scale (E,) float64, the scale for each ε
    """

    key: int
    scale: NDArray[np.float64]

    def of_models(self, lanes: slice) -> Self:
        """The noise of the models `lanes`, from the same unit draw."""
        return replace(self, scale=self.scale[lanes])

    @property
    def grid(self) -> NDArray[np.float64]:
        """(E,) what released numbers are multiples of: `privacy.grid`."""
        return grid_of(self.scale)

    def units(self, first: int, count: int) -> NDArray[np.float64]:
        """(count,) the unit noise of the numbers from `first` on."""
        return np.asarray(unit_of_cells(np.uint64(self.key), first, count))


class Randomiser(Protocol):
    """What a device does to a number before it sends it, and how the message is read.

    title     how ledgers call it
    uniforms  how many draws from U(0, 1) one message takes
    """

    @property
    def title(self) -> str: ...

    @property
    def uniforms(self) -> int: ...

    def decoded(
        self, values: NDArray[np.float64], uniforms: NDArray[np.float64], epsilons: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        """(n, E) what is read off the messages of `values` (n, …), from uniforms (n, `uniforms`), for each ε (E,)."""


@dataclass(frozen=True)
class DeviceNoise:
    """What devices draw for themselves, and how they perturb what they send.

    epsilons  (E,) what the randomiser is told for each ε of the grid
    """

    rng: np.random.Generator
    randomiser: Randomiser
    epsilons: NDArray[np.float64]

    def perturbed(self, numbers: NDArray[np.floating]) -> NDArray[np.float64]:
        """(n, E) what arrives of numbers (n, …): the draws go on where those of the call before ended."""
        drawn = self.rng.random((len(numbers), self.randomiser.uniforms))
        # At 0 the logarithms of an inverse CDF are infinite.
        return self.randomiser.decoded(numbers.astype(np.float64), np.maximum(drawn, 2.0**-54), self.epsilons)


AnyNoise = LaneNoise | LaterNoise | KeyedNoise | DeviceNoise
"""What a release may have."""


def unit_laplace(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Laplace(1) draws, as exponentials with a random sign: float64, for `privacy.grid` counts on 53 bits."""
    count = int(np.prod(shape))
    exponential = rng.standard_exponential(count)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), dtype=np.uint8), count=count)
    signs = bits.view(np.int8)
    signs *= -2
    signs += 1
    exponential *= signs  # a tenth of the time of `np.negative` where there is a bit
    return exponential.reshape(shape)


def unit_normal(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """N(0, 1) draws."""
    return rng.standard_normal(shape)


def unit_gumbel_downwards(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """−Gumbel(0, 1) draws."""
    return -rng.gumbel(size=shape)


def unit_k_norm(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """(rows, d) rows with density proportional to exp(−‖b‖₂): a uniform direction times Gamma(d, 1)."""
    rows, dimension = shape
    direction = rng.standard_normal(shape)
    length = rng.standard_gamma(dimension, (rows, 1))
    return np.asarray(direction * (length / np.linalg.norm(direction, axis=1, keepdims=True)))

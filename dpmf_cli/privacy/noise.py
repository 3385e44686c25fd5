"""Noise for a complete ε grid, and the draws of its unit. `mechanisms` draw the noise, and `release` applies it.

*Keyed noise* is computed when it is needed, for more numbers than can be kept: one unit draw for each. SplitMix64
(Steele, Lea, Flood 2014) of a number's position gives a sign and a uniform V in (0, 1]. The magnitude is −ln V. The
unit draw X of a position then has the law Laplace(1), is independent of all other draws, and is the same whenever it
is computed.

V is a multiple of 2⁻⁵³, and |X| is 36.7 at most. A cell of a grid (`privacy.grid`) is more than 2⁻¹¹ wide in X, and
its probability is off by 2⁻⁵² at most. Where |X| is below 12 this is a factor 1 ± 2⁻²². In all cells beyond, it is
2⁻³⁵ together.

*What this assumes.* The key has 63 bits (`mechanisms.keyed_laplace`), though the seed that it is drawn from has
256. SplitMix64 is a bijection of 64 bits that anybody can invert, and no pseudorandom function. So the ε of a
method that draws its noise here is computational: it holds against somebody who cannot try 2⁶³ keys on a model.
The exact noise of one cell shows 54 of its 64 bits, which leaves 1,024 keys, and the key gives all noise. A
release does not show exact noise: noisy numbers are rounded to their grid, and a factorisation follows. A cipher
in place of SplitMix64 would end this, and would change every result of unbounded input perturbation.

*Drawn noise* is drawn once per fit in its *unit* form, scaled for every ε of the grid (docs/design.md, "Lanes"), and
then rounded to the model's own `grid`. Only one of a grid's models may ever be released.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.privacy.grid import FINEST, grid_of, on_grid
from dpmf_cli.privacy.local_mechanisms import LocalMechanism

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_EXAMPLE = np.uint64(0x123456789ABCDEF0)
"""The key of the examples on which machine code is checked."""


@compiled(inline="always")
def cell_bits(key: np.uint64, cell: int) -> np.uint64:
    """64 random bits for a cell: SplitMix64's output number `cell` from the state `key`."""
    z = key + np.uint64(cell + 1) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@compiled(inline="always")
def magnitude_uniform(bits: np.uint64) -> float:
    """V in (0, 1], from the upper 53 bits; the magnitude of the unit noise is −ln V."""
    return (np.float64(bits >> np.uint64(11)) + 1.0) * 2.0**-53


@compiled(lambda kinds: {"key": _EXAMPLE, "cells": np.arange(5)})
def uniforms_of_cells(key: np.uint64, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) uniform draws in [0, 1), one for each of `cells` (n,), the same in every call."""
    out = np.empty(len(cells))
    for x in range(len(cells)):
        out[x] = np.float64(cell_bits(key, cells[x]) >> np.uint64(11)) * 2.0**-53
    return out


@compiled(error_model="numpy")
def minus_log(signed, out, count):  # type: ignore[no-untyped-def]
    """Writes −ln|v| with the sign of v to `out`, for the first `count` v of `signed`: float64 in [−1, 1] without 0.

    |v| = m·2^e with m in [√½, √2), and ln m = 2·artanh(s) with s = (m − 1)/(m + 1) and |s| < 0.1716. The series of
    artanh to s¹⁵ has an error below 1e-13. There are only IEEE operations, in one order, so every machine gives the
    same bits, which the logarithm of a mathematical library does not. LLVM can vectorise the loops: NumPy's error
    model leaves out a test for a zero divisor, which would prevent that.
    """
    bits, mantissas = signed.view(np.int64), out.view(np.int64)
    for k in range(count):
        mantissas[k] = (bits[k] & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000
    for k in range(count):
        exponent = ((bits[k] >> 52) & 0x7FF) - 1023
        mantissa = out[k]
        large = mantissa > 1.4142135623730951
        mantissa = 0.5 * mantissa if large else mantissa
        power = np.float64(exponent + 1 if large else exponent)
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        series = 1 / 13 + z * (1 / 15)
        series = 1 / 11 + z * series
        series = 1 / 9 + z * series
        series = 1 / 7 + z * series
        series = 1 / 5 + z * series
        series = 1 / 3 + z * series
        magnitude = -(power * 0.6931471805599453 + 2.0 * s * (1.0 + z * series))
        out[k] = magnitude if signed[k] > 0 else -magnitude


@compiled(lambda kinds: {"key": _EXAMPLE, "first": 3, "count": 5})
def unit_of_cells(key: np.uint64, first: int, count: int) -> NDArray[np.float64]:
    """(count,) the unit noise of the cells `first`, `first` + 1, …"""
    signed, out = np.empty(count), np.empty(count)
    for y in range(count):
        bits = cell_bits(key, first + y)
        v = magnitude_uniform(bits)
        signed[y] = v if bits & np.uint64(1) else -v
    minus_log(signed, out, count)
    return out


Law = Callable[[tuple[int, ...], np.random.Generator], NDArray[np.float64]]
"""A function that draws unit noise for numbers of a shape."""


def silence(shape: tuple[int, ...], rng: np.random.Generator | None = None) -> NDArray[np.float64]:
    return np.zeros(shape)


Scales = NDArray[np.float64]
"""(E,) the scale of noise for each ε, in units of the measurement; 0 where ε = inf."""


@dataclass(frozen=True)
class LaneNoise:
    """Noise for a complete ε grid: element k for ε number e is unit[k]·scale[e].

    unit     (...) float64, one draw of the unit distribution per measured number
    law      the law of the unit draw, for audits
    rounded  whether noisy numbers are rounded to the `grid`: always, unless the noisy numbers themselves never leave
    """

    unit: NDArray[np.float64]
    scale: Scales
    law: Law = silence
    rounded: bool = True

    @property
    def grid(self) -> NDArray[np.float64]:
        """(E,) the power of two, for each ε, whose multiples the released numbers are: `privacy.grid`."""
        return grid_of(self.scale) if self.rounded else np.full_like(self.scale, FINEST)

    def added_to(self, values: ArrayLike) -> NDArray[np.float64]:
        """(..., E) `values` plus the noise, on the grid; `values` is (...), common to all ε, or (..., E)."""
        values = np.asarray(values, dtype=np.float64)
        if values.ndim == self.unit.ndim:
            values = values[..., None]
        return on_grid(values + self.unit[..., None] * self.scale, self.grid)

    def of_models(self, lanes: slice) -> Self:
        """The noise of the models `lanes`, from the same unit draw."""
        return replace(self, scale=self.scale[lanes])

    def of_numbers(self, first: int, count: int) -> Self:
        """The noise of `count` numbers from `first` on."""
        return replace(self, unit=self.unit[first : first + count])

    def drawn_again(self, count: int, rng: np.random.Generator) -> Self:
        return replace(self, unit=self.law((count, *self.shape[1:]), rng).reshape(count, -1)[:, 0])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.unit.shape


@dataclass(frozen=True)
class LaterNoise:
    """The noise of `LaneNoise`, for kernels only, whose unit is drawn for each group of models that asks for it, and
    is not kept. It is the same each time, because `again` gives the step's generator at its beginning."""

    law: Law
    shape: tuple[int, ...]
    again: Callable[[], np.random.Generator]
    scale: Scales

    def of_models(self, lanes: slice) -> LaneNoise:
        return LaneNoise(self.law(self.shape, self.again()), self.scale[lanes], self.law)


@dataclass(frozen=True)
class KeyedNoise:
    """Laplace noise for more numbers than can be kept: number c has the unit noise that `unit_of_cells` computes from
    (key, c) whenever it is asked for. `key` is the state of SplitMix64."""

    key: int
    scale: Scales

    @property
    def grid(self) -> NDArray[np.float64]:
        return grid_of(self.scale)

    def of_models(self, lanes: slice) -> Self:
        return replace(self, scale=self.scale[lanes])

    def of_numbers(self, first: int, count: int) -> LaneNoise:
        return LaneNoise(unit_of_cells(np.uint64(self.key), first, count), self.scale)

    def drawn_again(self, count: int, rng: np.random.Generator) -> LaneNoise:
        return replace(self, key=int(rng.integers(2**63))).of_numbers(0, count)


@dataclass(frozen=True)
class DeviceNoise:
    """The noise that devices draw for themselves, and how they perturb the numbers that they send.

    epsilons  (E,) the ε that the randomiser gets for each ε of the grid
    """

    rng: np.random.Generator
    randomiser: LocalMechanism
    epsilons: NDArray[np.float64]

    def perturbed(self, numbers: NDArray[np.floating]) -> NDArray[np.float64]:
        """(n, E) the received messages for numbers (n, …); draws go on where the call before stopped."""
        drawn = self.rng.random((len(numbers), self.randomiser.uniforms))
        # At 0 the logarithms of an inverse CDF are infinite.
        return self.randomiser.decoded(numbers.astype(np.float64), np.maximum(drawn, 2.0**-54), self.epsilons)


AnyNoise = LaneNoise | LaterNoise | KeyedNoise | DeviceNoise
"""All kinds of noise that a release can hold."""


def unit_laplace(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Laplace(1) draws: exponentials with a random sign, in float64, since `privacy.grid` relies on 53 bits."""
    count = int(np.prod(shape))
    exponential = rng.standard_exponential(count)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), dtype=np.uint8), count=count)
    signs = bits.view(np.int8)
    signs *= -2
    signs += 1
    exponential *= signs  # a tenth of the time of `np.negative` where a bit is set
    return exponential.reshape(shape)


def unit_normal(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.standard_normal(shape)


def unit_gumbel_downwards(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    return -rng.gumbel(size=shape)


def unit_k_norm(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """(rows, d) rows with density proportional to exp(−‖b‖₂): a uniform direction times Gamma(d, 1)."""
    rows, dimension = shape
    direction = rng.standard_normal(shape)
    length = rng.standard_gamma(dimension, (rows, 1))
    return np.asarray(direction * (length / np.linalg.norm(direction, axis=1, keepdims=True)))

"""Noise that is computed from a key when it is needed, for more numbers than can be kept: one unit draw for each.

SplitMix64 (Steele, Lea, Flood 2014) of a number's position gives a sign and a uniform V in (0, 1]. The magnitude is
−ln V. So the unit draw X of a position has the law Laplace(1), is independent of all other draws, and is the same
whenever it is computed.

V is a multiple of 2⁻⁵³, and |X| is 36.7 at most. A cell of a grid (`privacy.grid`) is more than 2⁻¹¹ wide in X, and
its probability is off by 2⁻⁵² at most. Where |X| is below 12 this is a factor 1 ± 2⁻²². In all cells beyond, it is
2⁻³⁵ together.

*What this assumes.* The key has 63 bits (`mechanisms.keyed_laplace`), though the seed that it is drawn from has 256.
SplitMix64 is a bijection of 64 bits that anybody can invert, and no pseudorandom function. So the ε of a method that
draws its noise here is computational: it holds against somebody who cannot try 2⁶³ keys on a model. The exact noise
of one cell shows 54 of its 64 bits, which leaves 1,024 keys, and the key gives all noise. A release does not show
exact noise: noisy numbers are rounded to their grid, and a factorisation follows. A cipher in place of SplitMix64
would end this, and would change every result of unbounded input perturbation.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_EXAMPLE = np.uint64(0x123456789ABCDEF0)
"""The key of the examples on which machine code is checked."""


@compiled(inline="always")
def cell_bits(key: np.uint64, cell: int) -> np.uint64:
    """Returns 64 random bits for a cell: SplitMix64's output number `cell` from the state `key`."""
    z = key + np.uint64(cell + 1) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@compiled(inline="always")
def magnitude_uniform(bits: np.uint64) -> float:
    """Returns V in (0, 1], from the upper 53 bits; the magnitude of the unit noise is −ln V."""
    return (np.float64(bits >> np.uint64(11)) + 1.0) * 2.0**-53


@compiled(lambda kinds: {"key": _EXAMPLE, "cells": np.arange(5)})
def uniforms_of_cells(key: np.uint64, cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns (n,) uniform draws in [0, 1), one for each of `cells` (n,). A cell's draw is the same in every call."""
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
    """Returns (count,) the unit noise of the cells `first`, `first` + 1, …"""
    signed, out = np.empty(count), np.empty(count)
    for y in range(count):
        bits = cell_bits(key, first + y)
        v = magnitude_uniform(bits)
        signed[y] = v if bits & np.uint64(1) else -v
    minus_log(signed, out, count)
    return out
